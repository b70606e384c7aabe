// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/case_list.h"

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"

namespace larch {
namespace {
namespace fs = std::filesystem;
using io::bad, io::bad_line;

constexpr const char* kId = "id";

/// Returns one row from `at` on. Quotes (CSV only) may enclose separators and line ends; "" is a
/// quote.
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

Table read_table(const std::string& path) {
  std::string text = read_file(path);
  refuse_placeholder(path, text);
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  if (text.find('\0') != std::string::npos) bad(path, "not a text file; give a list in UTF-8");
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
    bad(path, "the list is empty; give a header line and one line for each case");
  }
  std::set<std::string> names;
  for (const std::string& name : table.columns) {
    if (!names.insert(name).second) {
      bad_line(path, table.header_line, "the column '" + name + "' stands twice");
    }
  }
  return table;
}

namespace {

std::string id_of(const std::string& image) {
  std::string path = image;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string name = fs::path(path).filename().string();
  return is_folder(image) ? name : name.substr(0, name.size() - file_extension(name).size());
}

/// Returns all columns that a program knows but the id: image and label come first.
std::vector<CaseColumn> known_columns(const CaseColumns& wanted) {
  std::vector<CaseColumn> known{{wanted.image, /*is_file=*/true, /*required=*/true},
                                {wanted.label, /*is_file=*/true, wanted.label_required}};
  known.insert(known.end(), wanted.more.begin(), wanted.more.end());
  return known;
}

void require_columns(const Table& table, const std::vector<CaseColumn>& known) {
  for (const CaseColumn& column : known) {
    if (!column.required || table.has(column.name)) continue;
    std::string names;
    for (const CaseColumn& one : known) names += one.name + ", ";
    bad_line(table.path, table.header_line,
             "no column '" + column.name + "'; the first line names the columns (" + names + kId +
                 "), parted by " + (file_extension(table.path) == ".csv" ? "commas" : "tabs"));
  }
}

/// Returns the cell of a column; of a file, as it can be opened. Empty where it may be missing and
/// is.
std::string cell_of(const Table& table, const Table::Row& row, const CaseColumn& column,
                    const std::string& text, bool file_exists) {
  if (text.empty() && column.required) {
    bad_line(table.path, row.line,
             "the " + column.name + " is empty; " + (column.is_file ? "name a file" : "give one"));
  }
  if (text.empty() || !column.is_file) return text;
  std::string file = io::beside(table.path, text);
  const std::string why = file_exists ? why_missing(file) : "";
  if (!why.empty()) {
    bad_line(table.path, row.line,
             "the " + column.name + " '" + file + "' " + why +
                 "; paths are relative to the list's folder");
  }
  return file;
}

Case case_of(const Table& table, const Table::Row& row, const std::vector<CaseColumn>& known,
             bool files_exist) {
  Case found;
  for (size_t i = 0; i < table.columns.size(); ++i) {
    found.further[table.columns[i]] = row.cells[i];
  }
  for (const CaseColumn& column : known) {
    const auto at = std::ranges::find(table.columns, column.name);
    if (at == table.columns.end()) continue;
    const std::string& cell = row.cells[static_cast<size_t>(at - table.columns.begin())];
    found.further[column.name] = cell_of(table, row, column, cell, files_exist);
  }
  const auto take = [&found](const std::string& column) {
    auto node = found.further.extract(column);
    return node.empty() ? std::string() : std::move(node.mapped());
  };
  found.image = take(known[0].name);
  found.label = take(known[1].name);
  found.id = table.has(kId) ? take(kId) : id_of(found.image);
  if (found.id.empty()) {
    bad_line(table.path, row.line, "the id is empty; give one, or drop the column");
  }
  return found;
}

}  // namespace

void io::bad_line(const std::string& path, int line, const std::string& what) {
  throw InputError("'" + path + "', line " + std::to_string(line) + ": " + what);
}

std::string io::beside(const std::string& list, const std::string& name) {
  return (fs::path(list).parent_path() / name).lexically_normal().string();
}

std::vector<Case> read_case_list(const std::string& path, const CaseColumns& columns) {
  const Table table = read_table(path);
  const std::vector<CaseColumn> known = known_columns(columns);
  require_columns(table, known);
  if (table.rows.empty()) bad(path, "the list has a header line but no cases; add some");
  std::vector<Case> cases;
  std::map<std::string, int> lines;
  for (const Table::Row& row : table.rows) {
    cases.push_back(case_of(table, row, known, columns.files_exist));
    const auto [first, is_new] = lines.emplace(cases.back().id, row.line);
    if (!is_new) {
      bad_line(path, row.line,
               "the id '" + cases.back().id + "' stands in line " + std::to_string(first->second) +
                   " already; give a column 'id' with different names");
    }
  }
  return cases;
}

LabelTable read_label_table(const std::string& path) {
  const Table table = read_table(path);
  if (!table.has("index")) bad_line(path, table.header_line, "no column 'index' of the labels");
  LabelTable labels;
  for (const Table::Row& row : table.rows) {
    const auto cell = [&](const std::string& column) {
      const auto at = std::ranges::find(table.columns, column) - table.columns.begin();
      const bool is_there = at < std::ssize(table.columns);
      const std::string text = is_there ? row.cells[static_cast<size_t>(at)] : "";
      return text == "n/a" ? "" : text;
    };
    const auto number = [&](const std::string& text, int base, auto& to) {
      const char* end = text.data() + text.size();
      const auto [stop, error] = std::from_chars(text.data(), end, to, base);
      return stop == end && error == std::errc{};
    };
    LabelEntry& entry = labels.emplace_back();
    if (!number(cell("index"), 10, entry.value)) {
      bad_line(path, row.line, "the index '" + cell("index") + "' is no whole number");
    }
    if (std::ranges::count(labels, entry.value, &LabelEntry::value) > 1) {
      bad_line(path, row.line, "the index '" + cell("index") + "' stands twice");
    }
    entry.name = cell("name");
    const std::string colour = cell("color");
    const bool is_colour = colour.size() == 7 && colour[0] == '#';
    for (size_t k = 0; k < 3 && !colour.empty(); ++k) {
      if (is_colour && number(colour.substr(2 * k + 1, 2), 16, entry.rgb[k])) continue;
      bad_line(path, row.line, "the color '" + colour + "' is not of the form #rrggbb");
    }
    for (const auto& [code, prefix] :
         {std::pair(&entry.code, "code_"), std::pair(&entry.category, "category_")}) {
      const std::string start = prefix;
      *code = {cell(start + "scheme"), cell(start + "value"), cell(start + "meaning")};
      const bool is_none = code->scheme.empty() && code->value.empty() && code->meaning.empty();
      const bool is_whole = !code->scheme.empty() && !code->value.empty() && !code->meaning.empty();
      if ((is_none || is_whole) && std::max(code->scheme.size(), code->value.size()) <= 16)
        continue;
      bad_line(path, row.line,
               "give " + start + "scheme and " + start + "value, of 16 characters at most, and " +
                   start + "meaning, or none of them");
    }
  }
  return labels;
}

}  // namespace larch
