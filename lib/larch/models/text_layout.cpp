// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/text_layout.h"

#include <algorithm>

#include "larch/core/text.h"
#include "larch/models/container.h"

namespace larch::models {
namespace {

constexpr size_t kWidth = 99;
constexpr size_t kShortList = 60,
                 kCell = 24;              // characters of a list among other values, in a table
constexpr size_t kWhole = 8, kFirst = 4;  // longer lists show their first entries
constexpr size_t kRows = 32;              // the same of tables
constexpr size_t kPairs = 256;            // the same of structs with two members

using Phrases = std::vector<std::string>;

std::string indented(size_t depth) {
  return std::string(2 * std::min<size_t>(depth, 16), ' ');
}

std::string line_of(std::string text) {
  while (!text.empty() && text.back() == ' ') text.pop_back();
  return (text.size() > kWidth ? text.substr(0, kWidth - 3) + "..." : text) + "\n";
}

/// Phrases with commas between them, broken before column 100; `title` stands before the first.
std::string wrapped(size_t depth, const std::string& title, const Phrases& phrases) {
  std::string out, line = indented(depth) + escaped(title);
  for (size_t i = 0; i < phrases.size(); ++i) {
    const std::string piece = escaped(phrases[i]) + (i + 1 < phrases.size() ? "," : "");
    if (line.size() + 1 + piece.size() > kWidth && line.find_first_not_of(' ') != line.npos) {
      out += line_of(line);
      line = indented(depth + (title.empty() ? 0 : 1));
    }
    line += (line.empty() || line.back() == ' ' ? "" : " ") + piece;
  }
  return out + line_of(line);
}

std::string counted(const std::string& name, const Json& list) {
  return name + " (" + std::to_string(list.size()) + ")";
}

/// Returns a value in a few characters: of lists that take more, their length.
std::string short_text(const Json& value, size_t most = kShortList) {
  if (value.is_string()) return value.get<std::string>().empty() ? "-" : value.get<std::string>();
  if (value.is_number_float()) return number_text(value.get<double>(), 6);
  if (!value.is_array()) return value.is_object() ? "{}" : value.dump();
  std::string text;
  for (const Json& entry : value) {
    if (entry.is_structured() || text.size() > most) return counted("", value).substr(1);
    text += (text.empty() ? "" : ", ") + short_text(entry);
  }
  return text.size() > most ? counted("", value).substr(1) : "[" + text + "]";
}

/// The values of a struct and of those in it, by the path of the struct, and its longer lists.
struct Members {
  std::vector<std::pair<std::string, Phrases>> structs;
  std::vector<std::pair<std::string, const Json*>> lists;

  void add(const std::string& path, const Json& value) {
    const size_t at = structs.size();
    structs.push_back({path, {}});
    for (const auto& [key, member] : value.items()) {
      const std::string below = path.empty() ? key : path + "/" + key;
      const std::string text = short_text(member);
      if (member.is_object()) {
        add(below, member);
      } else if (member.is_array() && text[0] == '(') {
        lists.emplace_back(below, &member);
      } else {
        structs[at].second.push_back(key + " " + text);
      }
    }
  }
};

bool is_pair(const Json& value) {
  return value.is_object() && value.size() == 2 &&
         std::none_of(value.begin(), value.end(), [](const Json& m) { return m.is_structured(); });
}

/// Returns the values of a struct, with their names where the values alone do not tell.
std::string pair_text(const Json& pair) {
  std::string text;
  for (const auto& [key, member] : pair.items()) {
    if (!text.empty()) text += key == "value" ? " " : " " + key + " ";
    text += short_text(member);
  }
  return text;
}

/// Returns the first rows of a list of structs, texts to the left and numbers to the right.
std::string table(const Json& list, size_t rows, size_t depth) {
  std::vector<Phrases> cells(rows + 1);
  std::vector<size_t> widths;
  std::vector<bool> is_text;
  for (const auto& [key, member] : list[0].items()) {
    cells[0].push_back(escaped(key));
    is_text.push_back(member.is_string());
  }
  for (size_t r = 0; r < rows; ++r) {
    for (const Json& member : list[r]) cells[r + 1].push_back(escaped(short_text(member, kCell)));
  }
  std::string out;
  for (const Phrases& row : cells) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], row[c].size());
  }
  for (const Phrases& row : cells) {
    std::string line = indented(depth);
    for (size_t c = 0; c < row.size(); ++c) {
      const std::string space(widths[c] - row[c].size(), ' ');
      line +=
          (c > 0 ? " " : "") + (c < is_text.size() && is_text[c] ? row[c] + space : space + row[c]);
    }
    out += line_of(line);
  }
  return out;
}

std::string struct_text(const Json& value, size_t depth);

/// Returns a list that is not empty, under its title. Its entries have the members of the first
/// one.
std::string list_text(const std::string& title, const Json& list, size_t depth) {
  const bool of_pairs = is_pair(list[0]);
  if (of_pairs || !list[0].is_object()) {
    const size_t most = of_pairs ? kPairs : list.size() <= kWhole ? kWhole : kFirst;
    Phrases phrases;
    for (const Json& entry : list) {
      phrases.push_back(phrases.size() == most ? "..."
                        : entry.is_object()    ? pair_text(entry)
                                               : short_text(entry));
      if (phrases.size() > most) break;
    }
    return wrapped(depth, title, phrases);
  }
  std::string out;
  if (!title.empty()) out = line_of(indented(depth++) + escaped(title));
  const size_t rows = list.size() <= kRows ? list.size() : kFirst;
  const bool is_deep = std::any_of(list[0].begin(), list[0].end(),
                                   [](const Json& member) { return member.is_object(); });
  if (!is_deep) out += table(list, rows, depth);
  for (size_t i = 0; i < rows && is_deep; ++i) {
    out += indented(depth) + std::to_string(i) + "\n" + struct_text(list[i], depth + 1);
  }
  return out + (rows < list.size() ? indented(depth) + "...\n" : "");
}

std::string struct_text(const Json& value, size_t depth) {
  Members members;
  members.add("", value);
  std::string out;
  for (const auto& [path, phrases] : members.structs) {
    if (!phrases.empty()) out += wrapped(depth, path.empty() ? "" : path + ":", phrases);
  }
  for (const auto& [path, list] : members.lists) {
    out += list_text(counted(path, *list) + ":", *list, depth);
  }
  return out;
}

}  // namespace

void Describer::kind(const Kind& kind) {
  out_ = std::string(kind.doc) + ", kind " + kind.name + " " + std::to_string(kind.version) +
         ", format " + std::to_string(kMajorVersion) + "." + std::to_string(kMinorVersion) + "\n";
}

void Describer::add(const std::string& name, const char* doc, const Json& value) {
  const size_t slash = name.rfind('/');
  if (slash != std::string::npos) {
    const std::string part = name.substr(0, slash);
    if (parts_.empty() || parts_.back().first != part) parts_.push_back({part, {}});
    const std::string below = name.substr(slash + 1);
    Phrases& phrases = parts_.back().second;
    if (!value.is_object()) {
      phrases.push_back(below + " " + short_text(value, kCell));
    } else {
      for (const auto& [key, member] : value.items()) {
        phrases.push_back(below + "/" + key + " " + short_text(member, kCell));
      }
    }
    return;
  }
  out_ += "\n" + (value.is_array() ? counted(name, value) : name) + ": " + doc + "\n";
  if (value.is_object()) {
    out_ += struct_text(value, 1);
  } else if (value.is_array()) {
    out_ += value.empty() ? "" : list_text("", value, 1);
  } else {
    out_ += wrapped(1, "", {short_text(value)});
  }
}

std::string Describer::finish() && {
  for (const auto& [part, phrases] : parts_) out_ += "\n" + wrapped(0, part + ":", phrases);
  return std::move(out_);
}

}  // namespace larch::models
