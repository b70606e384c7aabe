// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <map>
#include <string>
#include <vector>

namespace larch::cases {

/// "c2" before "c10": runs of digits are compared as numbers. A strict order of all texts.
struct NaturalOrder {
  bool operator()(const std::string& a, const std::string& b) const;
};

/// Rows of status tables, united: one for each id, whatever columns its table had.
struct StatusRows {
  std::vector<std::string> columns;  ///< id and status among them
  /// By id; cells in the order of `columns`, those at the end may be missing.
  std::map<std::string, std::vector<std::string>, NaturalOrder> rows;
};

/// The text of a table is taken up to this size, and this many rows, columns and cells.
constexpr size_t kMostStatusBytes = size_t{64} << 20;
constexpr size_t kMostStatusRows = 500'000;
constexpr size_t kMostStatusColumns = 64;

/// Adds the rows of a table: tab-separated, the first line names the columns. Of two rows with one
/// id a result (ok, rejected, failed) stays before a skipped one; among equals the one with the
/// later time in the column `ended` stays. The outcome does not depend on the order of the calls,
/// but for the order of columns. Returns what could not be understood, or "": lines without the
/// right number of cells are left out, and nothing is taken from what is not a table.
std::string add_status_rows(const std::string& text, StatusRows& to);

/// The table: rows in natural order of their ids, "n/a" where a cell is not known.
std::string status_text(const StatusRows& table);

}  // namespace larch::cases
