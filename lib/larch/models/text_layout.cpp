// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/text_layout.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "larch/core/escaped.h"
#include "larch/core/number_text.h"
#include "larch/models/container.h"

namespace larch::models {
namespace {

constexpr size_t kWidth = 96;
constexpr size_t kTitle = 16;  // characters before the first phrase

std::string words(std::string name) {
  std::replace(name.begin(), name.end(), '_', ' ');
  return name;
}

/// The part of a name after its last "_".
std::string suffix_of(const std::string& name) {
  const size_t at = name.rfind('_');
  return at == std::string::npos ? "" : name.substr(at + 1);
}

std::string without_suffix(const std::string& name) {
  return name.substr(0, name.rfind('_'));
}

void add_phrases(const Json& json, const std::string& path, std::vector<std::string>& phrases) {
  if (!json.is_object()) {
    phrases.push_back(path + " " + (json.is_string() ? json.get<std::string>() : json.dump()));
    return;
  }
  for (const auto& [key, value] : json.items()) {
    add_phrases(value, path.empty() ? key : path + "/" + key, phrases);
  }
}

/// "box 3", "edge-x 5": how often each choice was made, in the order of their first appearance.
std::vector<std::string> counted_choices(const std::vector<MemberTexts>& rows) {
  std::map<std::string, size_t> count;
  std::vector<std::string> order, phrases;
  for (const MemberTexts& row : rows) {
    for (const std::string& choice : row.choices) {
      if (count[choice]++ == 0) order.push_back(choice);
    }
  }
  for (const std::string& choice : order) {
    phrases.push_back(choice + " " + std::to_string(count[choice]));
  }
  return phrases;
}

std::string cut(std::string line) {
  while (!line.empty() && line.back() == ' ') line.pop_back();
  return line.size() > kWidth ? line.substr(0, kWidth - 3) + "..." : line;
}

/// The words of a column's name, last in the last of `rows` lines.
std::vector<std::string> heading(const std::string& name) {
  std::vector<std::string> lines;
  size_t start = 0;
  for (size_t at = name.find(' '); at != std::string::npos; at = name.find(' ', start)) {
    lines.push_back(name.substr(start, at - start));
    start = at + 1;
  }
  lines.push_back(name.substr(start));
  return lines;
}

std::string right_aligned(const std::string& text, size_t width) {
  return std::string(width - std::min(width, text.size()), ' ') + text;
}

}  // namespace

std::string decimal(double value) {
  return number_text(value, 6);
}

Shown shown(const std::string& name, const std::string& value) {
  if (suffix_of(name) != "mm") return {words(name), value};
  return {words(without_suffix(name)), value + " mm"};
}

Shown shown_fixed_point(const std::string& name, double value) {
  const std::string suffix = suffix_of(name);
  const bool is_fixed_point = suffix.size() > 1 && suffix[0] == 'q' &&
                              suffix.find_first_not_of("0123456789", 1) == std::string::npos;
  if (!is_fixed_point) return {};
  const int bits = std::atoi(suffix.c_str() + 1);
  return {words(without_suffix(name)), decimal(std::ldexp(value, -bits))};
}

std::string phrase_line(const std::string& title, const std::vector<std::string>& phrases) {
  std::string out = words(title);
  out.resize(std::max(kTitle, out.size()), ' ');
  out += ' ';
  if (phrases.empty()) return out + "none\n";
  size_t column = out.size();
  for (size_t i = 0; i < phrases.size(); ++i) {
    const std::string piece = escaped(phrases[i]) + (i + 1 < phrases.size() ? ", " : "");
    if (column > kTitle + 1 && column + piece.size() > kWidth) {
      while (!out.empty() && out.back() == ' ') out.pop_back();
      out += "\n" + std::string(kTitle + 1, ' ');
      column = kTitle + 1;
    }
    out += piece.substr(0, kWidth - kTitle - 1);
    column += piece.size();
  }
  return out + "\n";
}

std::vector<std::string> json_phrases(const Json& json) {
  std::vector<std::string> phrases;
  add_phrases(json, "", phrases);
  return phrases;
}

std::string table(std::vector<Column> columns) {
  std::vector<std::vector<std::string>> headings;
  std::vector<size_t> widths;
  size_t heading_lines = 0, rows = 0;
  for (Column& column : columns) {
    std::ranges::transform(column.cells, column.cells.begin(), escaped);
    headings.push_back(heading(column.name));
    size_t width = 0;
    for (const std::string& word : headings.back()) width = std::max(width, word.size());
    for (const std::string& cell : column.cells) width = std::max(width, cell.size());
    widths.push_back(width);
    heading_lines = std::max(heading_lines, headings.back().size());
    rows = std::max(rows, column.cells.size());
  }
  std::string out;
  for (size_t line = 0; line < heading_lines + rows; ++line) {
    std::string text;
    for (size_t c = 0; c < columns.size(); ++c) {
      const auto& cells = line < heading_lines ? headings[c] : columns[c].cells;
      const size_t skipped = heading_lines - headings[c].size();
      const size_t row =
          line < heading_lines ? line - std::min(line, skipped) : line - heading_lines;
      const bool empty = row >= cells.size() || (line < heading_lines && line < skipped);
      text += (c > 0 ? " " : "") + right_aligned(empty ? "" : cells[row], widths[c]);
    }
    out += cut(text) + "\n";
  }
  return out;
}

std::string MemberTexts::as_lines(const std::string& title) const {
  std::vector<std::string> phrases;
  for (const Shown& member : members) phrases.push_back(member.name + " " + member.value);
  return (phrases.empty() ? "" : phrase_line(title, phrases)) + lines;
}

std::string MemberTexts::as_phrase() const {
  std::string phrase;
  for (const Shown& member : members) {
    const bool first = phrase.empty();
    if (!first) phrase += ' ';
    phrase += first || member.name == "value" ? member.value : member.name + " " + member.value;
  }
  return phrase;
}

void Describer::kind(const Kind& kind) {
  out_ += phrase_line(
      "model",
      {std::string(kind.doc), std::string("kind ") + kind.name + " " + std::to_string(kind.version),
       "format " + std::to_string(kMajorVersion) + "." + std::to_string(kMinorVersion)});
  for (const auto& [title, phrases] : facts_.lines) out_ += phrase_line(title, phrases);
}

void Describer::show_list(const std::string& name, size_t size,
                          const std::vector<MemberTexts>& rows, Show show) {
  if (show == Show::kTable) {
    tables_ += "\n" + words(name) + "\n" + table(columns_of(name, rows));
    return;
  }
  std::vector<std::string> phrases;
  if (show == Show::kPhrases) {
    for (const MemberTexts& row : rows) phrases.push_back(row.as_phrase());
  } else {
    phrases = counted_choices(rows);
    phrases.insert(phrases.begin(), std::to_string(size));
  }
  out_ += phrase_line(name, phrases);
}

std::vector<Column> Describer::columns_of(const std::string& section,
                                          const std::vector<MemberTexts>& rows) const {
  std::vector<Column> columns{{"", {}}};
  const auto computed = facts_.columns.find(section);
  if (computed != facts_.columns.end()) {
    columns.insert(columns.end(), computed->second.begin(), computed->second.end());
  }
  const size_t first = columns.size();
  for (size_t r = 0; r < rows.size(); ++r) {
    const std::vector<Shown>& members = rows[r].members;
    columns[0].cells.push_back(std::to_string(r));
    columns.resize(first + members.size());
    for (size_t m = 0; m < members.size(); ++m) {
      columns[first + m].name = members[m].name;
      columns[first + m].cells.push_back(members[m].value);
    }
  }
  return columns;
}

}  // namespace larch::models
