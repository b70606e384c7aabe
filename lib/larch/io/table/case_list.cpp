// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/table/case_list.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "larch/files/file.h"
#include "larch/io/image/message.h"
#include "larch/io/table/table.h"

namespace larch {
namespace {
namespace fs = std::filesystem;

constexpr const char* kId = "id";

std::string resolved(const std::string& list, const std::string& name) {
  return (fs::path(list).parent_path() / name).lexically_normal().string();
}

std::string id_of(const std::string& image) {
  std::string path = image;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string name = fs::path(path).filename().string();
  return is_folder(image) ? name : name.substr(0, name.size() - file_extension(name).size());
}

/// All columns that a program knows but the id: image and label come first.
std::vector<CaseColumn> known_columns(const CaseColumns& wanted) {
  std::vector<CaseColumn> known{{wanted.image, /*is_file=*/true, /*required=*/true},
                                {wanted.label, /*is_file=*/true, wanted.label_required}};
  known.insert(known.end(), wanted.more.begin(), wanted.more.end());
  return known;
}

void require_columns(const Table& table, const std::vector<CaseColumn>& known) {
  for (const CaseColumn& column : known) {
    if (!column.required || table.find(column.name)) continue;
    std::string names;
    for (const CaseColumn& one : known) names += one.name + ", ";
    bad_line(table.path, table.header_line,
             "no column '" + column.name + "'; the first line names the columns (" + names + kId +
                 "), parted by " + (file_extension(table.path) == ".csv" ? "commas" : "tabs"));
  }
}

/// The cell of a column; of a file, as it can be opened. Empty where it may be missing and is.
std::string cell_of(const Table& table, const Table::Row& row, const CaseColumn& column,
                    bool file_exists) {
  const auto place = table.find(column.name);
  std::string text = place ? row.cells[*place] : "";
  if (text.empty() && column.required) {
    bad_line(table.path, row.line,
             "the " + column.name + " is empty; " + (column.is_file ? "name a file" : "give one"));
  }
  if (text.empty() || !column.is_file) return text;
  std::string file = resolved(table.path, text);
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
    if (table.find(column.name) || column.required) {
      found.further[column.name] = cell_of(table, row, column, files_exist);
    }
  }
  const auto take = [&found](const std::string& column) {
    auto node = found.further.extract(column);
    return node.empty() ? std::string() : std::move(node.mapped());
  };
  found.image = take(known[0].name);
  found.label = take(known[1].name);
  found.id = table.find(kId) ? take(kId) : id_of(found.image);
  if (found.id.empty()) {
    bad_line(table.path, row.line, "the id is empty; give one, or drop the column");
  }
  return found;
}

}  // namespace

std::vector<Case> read_case_list(const std::string& path, const CaseColumns& columns) {
  const Table table = read_table(path);
  const std::vector<CaseColumn> known = known_columns(columns);
  require_columns(table, known);
  if (table.rows.empty()) {
    io::bad(path, "the list has a header line but no cases; add some");
  }
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

}  // namespace larch
