// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/pair_list.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <sstream>

#include "larch/core/error.h"

namespace larch::metrics {
namespace {
namespace fs = std::filesystem;

[[noreturn]] void bad(const std::string& path, int line, const std::string& what) {
  throw InputError("'" + path + "', line " + std::to_string(line) + ": " + what);
}

std::vector<std::string> split(const std::string& line, char separator) {
  std::vector<std::string> fields{""};
  for (const char c : line) {
    if (c == separator) {
      fields.emplace_back();
    } else if (c != '\r') {
      fields.back() += c;
    }
  }
  return fields;
}

}  // namespace

std::vector<Pair> parse_pair_list(const std::string& path, const std::string& text) {
  const char separator = path.ends_with(".csv") ? ',' : '\t';
  const bool has_mark = text.starts_with("\xef\xbb\xbf");
  std::istringstream lines(has_mark ? text.substr(3) : text);
  std::vector<std::string> header;
  std::vector<Pair> pairs;
  std::set<std::string> ids;
  int number = 0;
  for (std::string line; std::getline(lines, line);) {
    ++number;
    const std::vector<std::string> fields = split(line, separator);
    if (fields.size() == 1 && fields[0].empty()) continue;
    const bool is_header = header.empty();
    if (is_header) header = fields;
    const auto column = [&](const std::string& name) {
      return static_cast<size_t>(std::find(header.begin(), header.end(), name) - header.begin());
    };
    for (const std::string name : {"prediction", "reference"}) {
      if (column(name) == header.size()) {
        bad(path, number,
            "no column '" + name + "'; the first line names the columns prediction and reference");
      }
    }
    if (is_header) continue;
    if (fields.size() != header.size()) {
      bad(path, number,
          std::to_string(fields.size()) + " fields, but the first line has " +
              std::to_string(header.size()));
    }
    const auto file = [&](const std::string& name) {
      const std::string& field = fields[column(name)];
      if (field.empty()) bad(path, number, "the " + name + " is empty; name a file");
      return (fs::path(path).parent_path() / field).lexically_normal().string();
    };
    Pair pair{"", file("prediction"), file("reference")};
    const size_t id = column("id");
    pair.id = id < header.size() ? fields[id] : fields[column("prediction")];
    if (pair.id.empty() || !ids.insert(pair.id).second) {
      bad(path, number,
          "the id '" + pair.id +
              "' is empty or stands there twice; give a column 'id' with names "
              "that differ");
    }
    pairs.push_back(pair);
  }
  if (pairs.empty()) throw InputError("'" + path + "': the list has no cases; add some");
  return pairs;
}

}  // namespace larch::metrics
