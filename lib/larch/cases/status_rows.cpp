// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/status_rows.h"

#include <algorithm>
#include <optional>
#include <set>
#include <tuple>

namespace larch::cases {
namespace {

constexpr size_t kMostCells = 4'000'000;
constexpr const char* kUnknown = "n/a";

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// The digits at `at` without leading zeros; `at` is moved behind them.
std::string take_number(const std::string& text, size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

std::vector<std::string> cells_of(const std::string& line) {
  std::vector<std::string> cells;
  for (size_t begin = 0;;) {
    const size_t tab = std::min(line.find('\t', begin), line.size());
    cells.push_back(line.substr(begin, tab - begin));
    if (tab == line.size()) return cells;
    begin = tab + 1;
  }
}

/// The next line without its end; `at` is moved behind it. None at the end of the text. Other
/// control characters than tabs become spaces, as in the cells that we write: a row could not be
/// read again otherwise.
std::optional<std::string> take_line(const std::string& text, size_t& at) {
  if (at >= text.size()) return std::nullopt;
  const size_t end = std::min(text.find('\n', at), text.size());
  std::string line = text.substr(at, end - at);
  at = end + 1;
  if (!line.empty() && line.back() == '\r') line.pop_back();
  for (char& c : line) {
    if (static_cast<unsigned char>(c) < 32 && c != '\t') c = ' ';
  }
  return line;
}

size_t place_of(const std::string& column, const std::vector<std::string>& columns) {
  return static_cast<size_t>(std::find(columns.begin(), columns.end(), column) - columns.begin());
}

/// What is wrong with the columns of a table, or "".
std::string problem_of(const std::vector<std::string>& columns) {
  if (columns.size() > kMostStatusColumns) return "it has too many columns";
  const std::set<std::string> names(columns.begin(), columns.end());
  if (names.size() != columns.size()) return "a column stands twice";
  if (!names.contains("id") || !names.contains("status")) {
    return "its first line does not name the columns 'id' and 'status'";
  }
  return "";
}

/// Larger for the row that stays. What is known of the cells decides last, so that every order of
/// additions ends the same, whatever the order of the columns is then.
using Rank = std::tuple<bool, std::string, std::map<std::string, std::string>>;
Rank rank_of(const std::vector<std::string>& cells, const std::vector<std::string>& columns) {
  std::map<std::string, std::string> known;
  for (size_t i = 0; i < cells.size(); ++i) {
    if (cells[i] != kUnknown) known[columns[i]] = cells[i];
  }
  const std::string word = known["status"], time = known["ended"];
  const bool is_result = word == "ok" || word == "rejected" || word == "failed";
  // A time such as 2026-01-31T23:59:59.123Z; anything else counts as older.
  return {is_result, time.starts_with("2") ? time : "", known};
}

}  // namespace

bool NaturalOrder::operator()(const std::string& a, const std::string& b) const {
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    if (is_digit(a[i]) && is_digit(b[j])) {
      const std::string x = take_number(a, i), y = take_number(b, j);
      if (x.size() != y.size()) return x.size() < y.size();
      if (x != y) return x < y;
    } else {
      if (a[i] != b[j]) return static_cast<unsigned char>(a[i]) < static_cast<unsigned char>(b[j]);
      ++i;
      ++j;
    }
  }
  const bool a_ends = i == a.size(), b_ends = j == b.size();
  return a_ends != b_ends ? a_ends : a < b;  // "c01" and "c1" are not the same id
}

std::string add_status_rows(const std::string& text, StatusRows& to) {
  if (text.find('\0') != std::string::npos) return "it is not a text";
  size_t at = text.rfind("\xef\xbb\xbf", 0) == 0 ? 3 : 0;
  const std::vector<std::string> columns = cells_of(take_line(text, at).value_or(""));
  std::string problem = problem_of(columns);
  if (!problem.empty()) return problem;
  std::vector<std::string> all = to.columns;
  for (const std::string& column : columns) {
    if (place_of(column, all) == all.size()) all.push_back(column);
  }
  // The table that is written has to be one that can be read.
  if (all.size() > kMostStatusColumns) return "with the other tables it has too many columns";
  to.columns = std::move(all);
  std::vector<size_t> places;
  places.reserve(columns.size());
  for (const std::string& column : columns) places.push_back(place_of(column, to.columns));
  const size_t id = place_of("id", columns);
  for (size_t number = 2;; ++number) {
    const auto line = take_line(text, at);
    if (!line) return problem;
    if (line->empty()) continue;
    const std::vector<std::string> cells = cells_of(*line);
    if (cells.size() != columns.size() || cells[id].empty()) {
      problem = "line " + std::to_string(number) + " does not have one cell for each column";
      continue;
    }
    if (to.rows.size() >= kMostStatusRows || to.rows.size() * to.columns.size() >= kMostCells) {
      return "it has too many rows";
    }
    std::vector<std::string> placed(to.columns.size(), kUnknown);
    for (size_t i = 0; i < cells.size(); ++i) placed[places[i]] = cells[i];
    std::vector<std::string>& row = to.rows[cells[id]];
    if (row.empty() || rank_of(row, to.columns) < rank_of(placed, to.columns)) row = placed;
  }
}

std::string status_text(const StatusRows& table) {
  std::string text;
  const auto add = [&text](const std::string& cell, bool is_first) {
    text += (is_first ? "" : "\t") + cell;
  };
  for (const std::string& column : table.columns) add(column, &column == &table.columns.front());
  text += "\n";
  for (const auto& [id, cells] : table.rows) {
    for (size_t i = 0; i < table.columns.size(); ++i)
      add(i < cells.size() ? cells[i] : kUnknown, i == 0);
    text += "\n";
  }
  return text;
}

}  // namespace larch::cases
