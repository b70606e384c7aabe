// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/status_table.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "larch/app/records/case_record.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;
using larch::detail::stamp_of;
namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::seconds(30);
constexpr int kPausePerWrite = 100;
constexpr const char* kRecordEnding = ".larch.json";
constexpr const char* kFailedEnding = ".failed.larch.json";
constexpr const char* kUnknown = "n/a";
constexpr size_t kMaximumOthers = 512;  // columns beside its own that the table takes of records

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

/// Returns the digits at `at` without leading zeros; `at` is moved behind them.
std::string take_number(const std::string& text, size_t& at) {
  while (at < text.size() && text[at] == '0') ++at;
  const size_t begin = at;
  while (at < text.size() && is_digit(text[at])) ++at;
  return text.substr(begin, at - begin);
}

std::string cell(const std::string& text) {
  std::string safe = text.empty() ? kUnknown : text;
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return safe;
}

/// The first line of every table that this class writes.
bool is_status_table(const std::string& path) {
  const auto text = read_untrusted(path, size_t{1} << 30);
  return text && text->starts_with("id\tstatus\tmessage\tseconds\t") &&
         text->substr(0, text->find('\n')).find("\tended") != std::string::npos;
}

/// Returns the row of a record, which begins and ends on lines of its own: to parse the rest too
/// would take most of the time of the table.
CaseCells row_of(const std::string& path) {
  constexpr std::string_view kBegin = "\n    \"Row\": ", kEnd = "\n    }";
  CaseCells row;
  const std::string text =
      read_untrusted(path, larch::detail::kMaximumRecordBytes).value_or(std::string());
  const size_t begin = text.find(kBegin), end = text.find(kEnd, begin);
  if (begin == std::string::npos || end == std::string::npos) return row;
  try {
    const size_t from = begin + kBegin.size();
    const config::Json cells = config::parse(text.substr(from, end + kEnd.size() - from), path);
    for (const auto& [column, cell] : cells.items()) {
      if (cell.is_string()) row.emplace_back(column, cell.get<std::string>());
    }
  } catch (const UsageError&) {  // NOLINT(bugprone-empty-catch): it is no record
  }
  return row;
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

std::string status_table(const std::string& folder) {
  return (fs::path(folder) / "status.tsv").string();
}

StatusTable::StatusTable(const std::string& folder, std::vector<std::string> columns)
    : folder_(folder),
      path_(status_table(folder)),
      columns_(std::move(columns)),
      next_(Clock::now() + kPause) {
  std::error_code ignored;
  const bool is_free = fs::symlink_status(path_, ignored).type() == fs::file_type::not_found;
  if (is_free || is_status_table(path_)) return;
  throw OutputError("'" + path_ +
                    "' is no status table of Larch, and would be replaced; move it away or give "
                    "another --output-dir");
}

bool StatusTable::look() {
  bool is_new = false;
  std::set<std::string> there;
  std::error_code error;
  for (fs::directory_iterator at(folder_, error), end; !error && at != end; at.increment(error)) {
    const std::string name = at->path().filename().string();
    if (!name.ends_with(kRecordEnding) || name.starts_with(".")) continue;
    there.insert(name);
    Record& known = records_[name];
    const std::string stamp = stamp_of(at->path().string());
    if (known.stamp == stamp) continue;
    is_new = true;
    known = {stamp, row_of(at->path().string())};
  }
  const size_t gone =
      std::erase_if(records_, [&](const auto& record) { return !there.contains(record.first); });
  return is_new || gone > 0;
}

std::string StatusTable::text() const {
  std::vector<std::string> columns = columns_;
  std::map<std::string, std::map<std::string, std::string>, NaturalOrder> rows;
  const auto add = [&](const CaseCells& row) {
    std::map<std::string, std::string> cells;
    for (const auto& [column, text] : row) {
      cells[column] = text;
      const bool is_known = std::find(columns.begin(), columns.end(), column) != columns.end();
      if (!is_known && columns.size() < columns_.size() + kMaximumOthers) columns.push_back(column);
    }
    const std::string id = cells["id"];
    rows[id] = std::move(cells);
  };
  for (const bool failed : {false, true}) {
    for (const auto& [name, record] : records_) {
      if (name.ends_with(kFailedEnding) == failed && !record.row.empty()) add(record.row);
    }
  }
  for (const CaseCells& row : failures_) add(row);
  std::string table;
  for (const std::string& column : columns) table += (table.empty() ? "" : "\t") + cell(column);
  table += "\n";
  for (auto& [id, cells] : rows) {
    for (const std::string& column : columns) {
      table += (&column == &columns.front() ? "" : "\t") + cell(cells[column]);
    }
    table += "\n";
  }
  return table;
}

void StatusTable::write_now_and_then() {
  const std::unique_lock lock(mutex_, std::try_to_lock);
  const auto start = Clock::now();
  if (!lock || start < next_) return;
  try {
    look();
    const FolderLock names(folder_, 0);
    if (names.is_busy()) return;
    look();
    write_file(path_, text());
  } catch (const OutputError&) {
    // The end of the run tries again, and says why if it fails.
  }
  next_ = Clock::now() + std::max<Clock::duration>(kPause, kPausePerWrite * (Clock::now() - start));
}

void StatusTable::add_failure(const CaseCells& row) {
  const std::lock_guard lock(mutex_);
  failures_.push_back(row);
}

void StatusTable::finish() {
  constexpr int kTries = 100;
  const std::lock_guard lock(mutex_);
  look();
  // Under the lock nobody gives names to records, so that the run which comes last has all rows.
  // Where there is no lock the folder is listed again once the table has its name.
  const FolderLock names(folder_, kLockSeconds);
  look();
  for (int i = 0; i < kTries; ++i) {
    write_file(path_, text());
    if (!look()) return;
  }
}

}  // namespace larch::cases
