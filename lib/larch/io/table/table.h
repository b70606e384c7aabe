// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

namespace larch {

/// A table of texts whose first line names the columns.
struct Table {
  struct Row {
    int line = 0;                    ///< of the file, counted from 1
    std::vector<std::string> cells;  ///< one per column
  };
  std::string path;
  int header_line = 1;
  std::vector<std::string> columns;  ///< each once
  std::vector<Row> rows;

  /// The place of a column; none if there is no such column.
  std::optional<size_t> find(const std::string& column) const;
};

/// Reads a TSV, or a CSV if the path ends so. Cells are without the blanks around them; those of a
/// CSV may stand in double quotes. A byte order mark, CR LF line ends and empty lines are accepted.
/// Throws InputError, with the line number: a file without a line, a column that stands twice, a
/// row with another number of cells, a quote without an end, or what is no text.
Table read_table(const std::string& path);

/// Throws InputError that names the line of a table.
[[noreturn]] void bad_line(const std::string& path, int line, const std::string& what);

}  // namespace larch
