// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/table/case_list.h"

#include <algorithm>
#include <filesystem>
#include <map>

#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch {
namespace {
namespace fs = std::filesystem;

struct Row {
  int line = 0;
  std::vector<std::string> fields;
};

[[noreturn]] void bad(const std::string& path, int line, const std::string& what) {
  throw InputError("'" + path + "', line " + std::to_string(line) + ": " + what);
}

// One row from `at` on. Quotes (CSV only) may enclose separators and line ends; "" is a quote.
Row take_row(const std::string& path, const std::string& text, size_t& at, int& line) {
  const bool csv = file_extension(path) == ".csv";
  Row row{line, {""}};
  bool quoted = false;
  for (; at < text.size(); ++at) {
    const char c = text[at];
    if (c == '\n') ++line;
    if (quoted) {
      if (c != '"') {
        row.fields.back() += c;
      } else if (at + 1 < text.size() && text[at + 1] == '"') {
        row.fields.back() += text[++at];
      } else {
        quoted = false;
      }
    } else if (csv && c == '"' && row.fields.back().empty()) {
      quoted = true;
    } else if (c == (csv ? ',' : '\t')) {
      row.fields.emplace_back();
    } else if (c == '\n') {
      ++at;
      break;
    } else if (c != '\r') {
      row.fields.back() += c;
    }
  }
  if (quoted) bad(path, row.line, "a quoted field does not end; close the quote");
  return row;
}

std::vector<Row> rows_of(const std::string& path) {
  std::string text = read_file(path);
  if (text.rfind("\xef\xbb\xbf", 0) == 0) text.erase(0, 3);
  if (text.find('\0') != std::string::npos) {
    throw InputError("'" + path + "': not a text file; give a list in UTF-8");
  }
  std::vector<Row> rows;
  int line = 1;
  for (size_t at = 0; at < text.size();) {
    Row row = take_row(path, text, at, line);
    for (std::string& field : row.fields) {
      field.erase(0, field.find_first_not_of(' '));
      field.erase(field.find_last_not_of(' ') + 1);
    }
    if (row.fields.size() > 1 || !row.fields[0].empty()) rows.push_back(std::move(row));
  }
  return rows;
}

std::string resolved(const std::string& list, const std::string& name) {
  return (fs::path(list).parent_path() / name).lexically_normal().string();
}

std::string id_of(const std::string& image) {
  std::string path = image;
  while (path.size() > 1 && path.back() == '/') path.pop_back();
  const std::string name = fs::path(path).filename().string();
  return is_folder(image) ? name : name.substr(0, name.size() - file_extension(name).size());
}

void require_existing(const std::string& path, int line, const std::string& what,
                      const std::string& file) {
  const std::string why = why_missing(file);
  if (why.empty()) return;
  bad(path, line,
      "the " + what + " '" + file + "' " + why + "; paths are relative to the list's folder");
}

struct Columns {
  size_t count = 0, image = 0, label = 0, id = 0;
  bool has_label = false, has_id = false;
};

Columns columns_of(const std::string& path, const Row& header, const CaseColumns& names) {
  Columns columns;
  std::map<std::string, size_t> places;
  for (size_t i = 0; i < header.fields.size(); ++i) {
    if (!places.emplace(header.fields[i], i).second) {
      bad(path, header.line, "the column '" + header.fields[i] + "' stands twice");
    }
  }
  for (const std::string& name : {names.image, names.label}) {
    if (places.contains(name) || (name == names.label && !names.label_required)) continue;
    bad(path, header.line,
        "no column '" + name + "'; the first line names the columns (" + names.image + ", " +
            names.label + ", id), parted by " +
            (file_extension(path) == ".csv" ? "commas" : "tabs"));
  }
  columns.count = header.fields.size();
  columns.image = places[names.image];
  columns.has_label = places.contains(names.label);
  columns.has_id = places.contains("id");
  if (columns.has_label) columns.label = places[names.label];
  if (columns.has_id) columns.id = places["id"];
  return columns;
}

Case case_of(const std::string& path, const Row& row, const Columns& columns,
             const CaseColumns& names) {
  if (row.fields.size() != columns.count) {
    bad(path, row.line,
        std::to_string(row.fields.size()) + " fields, but the first line has " +
            std::to_string(columns.count));
  }
  if (row.fields[columns.image].empty())
    bad(path, row.line, "the " + names.image + " is empty; name a file");
  if (names.label_required && row.fields[columns.label].empty()) {
    bad(path, row.line, "the " + names.label + " is empty; name a file");
  }
  Case found;
  found.image = resolved(path, row.fields[columns.image]);
  if (names.files_exist) require_existing(path, row.line, names.image, found.image);
  if (columns.has_label && !row.fields[columns.label].empty()) {
    found.label = resolved(path, row.fields[columns.label]);
    if (names.files_exist) require_existing(path, row.line, names.label, found.label);
  }
  found.id = columns.has_id ? row.fields[columns.id] : id_of(found.image);
  if (found.id.empty()) bad(path, row.line, "the id is empty; give one, or drop the column");
  return found;
}

}  // namespace

std::vector<Case> read_case_list(const std::string& path, const CaseColumns& names) {
  const std::vector<Row> rows = rows_of(path);
  if (rows.empty()) {
    throw InputError("'" + path + "': the list is empty; give a header line and one line a case");
  }
  const Columns columns = columns_of(path, rows[0], names);
  if (rows.size() == 1) {
    throw InputError("'" + path + "': the list has a header line but no cases; add some");
  }
  std::vector<Case> cases;
  std::map<std::string, int> lines;
  for (size_t i = 1; i < rows.size(); ++i) {
    cases.push_back(case_of(path, rows[i], columns, names));
    const auto [first, is_new] = lines.emplace(cases.back().id, rows[i].line);
    if (!is_new) {
      bad(path, rows[i].line,
          "the id '" + cases.back().id + "' stands in line " + std::to_string(first->second) +
              " already; give a column 'id' with different names");
    }
  }
  return cases;
}

}  // namespace larch
