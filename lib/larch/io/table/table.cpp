// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/table/table.h"

#include <algorithm>
#include <set>
#include <utility>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/message.h"

namespace larch {
namespace {

/// One row from `at` on. Quotes (CSV only) may enclose separators and line ends; "" is a quote.
Table::Row take_row(const std::string& path, const std::string& text, size_t& at, int& line) {
  const bool csv = file_extension(path) == ".csv";
  Table::Row row{line, {""}};
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        row.cells.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        row.cells.back() += text[++at];
      } else {
        quoted = false;
      }
    } else if (csv && c == '"' && row.cells.back().empty()) {
      quoted = true;
    } else if (c == (csv ? ',' : '\t')) {
      row.cells.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      row.cells.back() += c;
    }
  }
  if (quoted) bad_line(path, row.line, "a quoted field does not end; close the quote");
  return row;
}

}  // namespace

void bad_line(const std::string& path, int line, const std::string& what) {
  throw InputError("'" + path + "', line " + std::to_string(line) + ": " + what);
}

std::optional<size_t> Table::find(const std::string& column) const {
  const auto at = std::find(columns.begin(), columns.end(), column);
  if (at == columns.end()) return std::nullopt;
  return static_cast<size_t>(at - columns.begin());
}

Table read_table(const std::string& path) {
  std::string text = read_file(path);
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  if (text.find('\0') != std::string::npos) {
    io::bad(path, "not a text file; give a list in UTF-8");
  }
  Table table;
  table.path = path;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    Table::Row row = take_row(path, text, at, line);
    for (std::string& cell : row.cells) {
      cell.erase(0, cell.find_first_not_of(' '));
      cell.erase(cell.find_last_not_of(' ') + 1);
    }
    if (row.cells.size() == 1 && row.cells[0].empty()) continue;
    if (table.columns.empty()) {
      table.header_line = row.line;
      table.columns = std::move(row.cells);
      continue;
    }
    if (row.cells.size() != table.columns.size()) {
      bad_line(path, row.line,
               std::to_string(row.cells.size()) + " fields, but the first line has " +
                   std::to_string(table.columns.size()));
    }
    table.rows.push_back(std::move(row));
  }
  if (table.columns.empty()) {
    io::bad(path, "the list is empty; give a header line and one line for each case");
  }
  std::set<std::string> names;
  for (const std::string& name : table.columns) {
    if (!names.insert(name).second) {
      bad_line(path, table.header_line, "the column '" + name + "' stands twice");
    }
  }
  return table;
}

}  // namespace larch
