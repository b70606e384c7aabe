// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/status_table.h"

#include <algorithm>
#include <filesystem>
#include <optional>
#include <set>
#include <string_view>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/files/file.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;
using larch::detail::page_name;
using larch::detail::stamp_of;
namespace fs = std::filesystem;

constexpr auto kPause = std::chrono::seconds(30);
constexpr int kPausePerWrite = 100;
constexpr const char* kRecordEnding = ".larch.json";
constexpr const char* kFailedEnding = ".failed.larch.json";
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

bool is_free(const std::string& path) {
  std::error_code ignored;
  return fs::symlink_status(path, ignored).type() == fs::file_type::not_found;
}

std::string text_of(const std::string& path) {
  return read_untrusted(path, size_t{1} << 30).value_or(std::string());
}

/// The first line of every table that this class writes.
bool is_status_table(const std::string& path) {
  const std::string text = text_of(path);
  return text.starts_with("id\tstatus\tmessage\tseconds\t") &&
         text.substr(0, text.find('\n')).find("\tended") != std::string::npos;
}

[[noreturn]] void refuse(const std::string& path, const char* kind) {
  throw OutputError("'" + path + "' is no " + kind +
                    " of Larch, and would be replaced; move it away or give another --output-dir");
}

/// "out" of "results/out/".
std::string title_of(const std::string& folder) {
  std::error_code error;
  const fs::path whole = fs::absolute(folder, error).lexically_normal();
  return (whole.has_filename() ? whole : whole.parent_path()).filename().string();
}

/// Returns the cells of the row of a record; none if it has no such row.
CaseCells row_of(const config::Json& larch) {
  CaseCells row;
  const auto cells = larch.find("Row");
  if (cells == larch.end() || !cells->is_object()) return row;
  for (const auto& [column, cell] : cells->items()) {
    if (cell.is_string()) row.emplace_back(column, cell.get<std::string>());
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

StatusTable::StatusTable(const std::string& folder, std::vector<std::string> columns,
                         bool makes_pictures)
    : folder_(folder),
      path_(status_table(folder)),
      columns_(std::move(columns)),
      next_(Clock::now() + kPause) {
  const std::string page = page_name(folder);
  may_write_page_ = is_free(page) || is_case_page(text_of(page));
  if (!is_free(path_) && !is_status_table(path_)) refuse(path_, "status table");
  if (makes_pictures && !may_write_page_) refuse(page, "page of cases");
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
    known = {stamp, {}, {}};
    const auto larch = larch::detail::read_record(at->path().string());
    if (larch) known = {stamp, row_of(*larch), story_of(*larch, name)};
  }
  const size_t gone =
      std::erase_if(records_, [&](const auto& record) { return !there.contains(record.first); });
  return is_new || gone > 0;
}

void StatusTable::write() const {
  std::vector<std::string> columns = columns_;
  std::map<std::string, PageCase, NaturalOrder> by_id;
  const auto add = [&](const CaseCells& row, const CaseStory& story) {
    PageCase one{{}, story};
    for (const auto& [column, text] : row) {
      one.cells[column] = text;
      const bool is_known = std::ranges::count(columns, column) > 0;
      if (!is_known && columns.size() < columns_.size() + kMaximumOthers) columns.push_back(column);
    }
    const std::string id = one.cells["id"];
    by_id[id] = std::move(one);
  };
  for (const bool failed : {false, true}) {
    for (const auto& [name, record] : records_) {
      const bool has_row = !record.row.empty();
      if (name.ends_with(kFailedEnding) == failed && has_row) add(record.row, record.story);
    }
  }
  for (const CaseCells& row : failures_) add(row, {});
  std::string table;
  for (const std::string& column : columns) table += (table.empty() ? "" : "\t") + cell(column);
  table += "\n";
  std::vector<PageCase> cases;
  bool has_picture = false;
  for (auto& [id, one] : by_id) {
    for (const std::string& column : columns) {
      table += (&column == &columns.front() ? "" : "\t") + cell(one.cells[column]);
    }
    table += "\n";
    has_picture = has_picture || !one.story.picture.empty();
    cases.push_back(std::move(one));
  }
  write_file(path_, table);
  if (!may_write_page_ || (!has_picture && is_free(page_name(folder_)))) return;
  write_file(page_name(folder_), case_page(title_of(folder_), columns, std::move(cases)));
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
    write();
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
    write();
    if (!look()) return;
  }
}

}  // namespace larch::cases
