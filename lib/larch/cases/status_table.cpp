// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/status_table.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "larch/app/records/shared_folder.h"
#include "larch/cases/status_rows.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;
namespace fs = std::filesystem;

constexpr const char* kPrefix = "status-";
constexpr const char* kEnding = ".tsv";
/// The table is rewritten during a run at most this often, and for a small share of the time.
constexpr auto kPause = std::chrono::seconds(10);
constexpr int kPausePerRewrite = 50;

std::string number(const char* format, double value) {
  char text[48];
  std::snprintf(text, sizeof text, format, value);
  return text;
}

std::string utc_with_milliseconds() {
  const auto now = std::chrono::system_clock::now();
  const std::time_t seconds = std::chrono::system_clock::to_time_t(now);
  const auto whole = std::chrono::duration_cast<std::chrono::milliseconds>(now.time_since_epoch());
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32], all[48];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S", &parts);
  std::snprintf(all, sizeof all, "%s.%03dZ", text, static_cast<int>(whole.count() % 1000));
  return all;
}

std::string cell(const std::string& text) {
  std::string safe = text.empty() ? "n/a" : text;
  for (char& c : safe) {
    if (static_cast<unsigned char>(c) < 32) c = ' ';
  }
  return safe;
}

[[noreturn]] void fail_to_write(const std::string& path, int error) {
  throw OutputError("cannot write '" + path + "': " + std::strerror(error) +
                    ": check the free space and the folder's permissions");
}

bool write_whole(int file, const std::string& text) {
  for (size_t done = 0; done < text.size();) {
    const ssize_t wrote = write(file, text.data() + done, text.size() - done);
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    done += static_cast<size_t>(wrote);
  }
  return true;
}

/// Whether the name still belongs to the open file.
bool is_same_file(int file, const std::string& path) {
  struct stat open_file {
  }, named{};
  return fstat(file, &open_file) == 0 && lstat(path.c_str(), &named) == 0 &&
         open_file.st_dev == named.st_dev && open_file.st_ino == named.st_ino;
}

/// The part file of another run. `file` holds its lock if that run is no more.
struct OtherPart {
  std::string path;
  int file = -1;

  explicit OtherPart(const std::string& name)
      : path(name), file(open(name.c_str(), O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK)) {
    struct stat status {};
    if (file < 0) return;  // of another user, or not a file: it is read if that is possible
    const bool is_over = fstat(file, &status) == 0 && S_ISREG(status.st_mode) &&
                         flock(file, LOCK_EX | LOCK_NB) == 0 && is_same_file(file, path);
    if (!is_over) release();
  }
  OtherPart(OtherPart&& other) noexcept
      : path(std::move(other.path)), file(std::exchange(other.file, -1)) {}
  OtherPart(const OtherPart&) = delete;
  OtherPart& operator=(const OtherPart&) = delete;
  ~OtherPart() { release(); }

  void remove() const {
    if (file >= 0 && is_same_file(file, path)) unlink(path.c_str());
  }
  /// Puts aside what cannot be understood, unless a living run is still writing it.
  void give_up(const std::string& problem, const Context& context) {
    if (file < 0) return;
    const std::string kept = keep_aside(path);
    release();
    if (kept.empty()) return;
    context.warn("'" + path + "' was left by an earlier run and cannot be understood (" + problem +
                 "); it is kept as '" + kept + "'");
  }

 private:
  void release() {
    if (file >= 0) close(file);
    file = -1;
  }
};

/// Adds the rows of the table that stands in the folder.
void add_table(const std::string& path, StatusRows& all, const Context& context) {
  std::error_code ignored;
  if (!fs::exists(path, ignored)) return;
  const auto text = read_untrusted(path, kMostStatusBytes);
  const std::string problem = text ? add_status_rows(*text, all) : "it cannot be read or is huge";
  if (problem.empty()) return;
  const std::string kept = keep_aside(path);
  if (kept.empty()) throw OutputError("'" + path + "' cannot be replaced: " + problem);
  context.warn("'" + path + "' is not a status table that can be understood (" + problem +
               "); what could be read was taken over, and it is kept as '" + kept + "'");
}

/// The rows of a run, with the line that names the columns, and the part that has them too.
struct OwnRows {
  const std::string& header;
  const std::string& text;
  const std::string& part;
};

struct United {
  std::vector<OtherPart> parts{};
  std::string left_out{};  ///< what is wrong with the own rows, or ""
  bool is_new = false;     ///< the table was not this union already
};

/// Makes the table the union of what it has, of all parts and of this run's rows.
United write_union(const std::string& folder, const OwnRows& own, const Context& context) {
  const std::string path = status_table(folder);
  StatusRows all;
  add_status_rows(own.header, all);  // the columns of this version come first
  add_table(path, all, context);
  United united;
  for (const std::string& name : parts_in(folder, kPrefix, kEnding)) {
    if (name == own.part) continue;
    united.parts.emplace_back(name);
    // A part may end in the middle of a line: its run was killed there, or is still writing.
    std::string text = read_untrusted(name, kMostStatusBytes).value_or("x\n");
    text.erase(text.rfind('\n') + 1);
    const std::string problem = text.empty() ? "" : add_status_rows(text, all);
    if (!problem.empty()) united.parts.back().give_up(problem, context);
  }
  united.left_out = add_status_rows(own.text, all);
  const std::string text = status_text(all);
  united.is_new = read_untrusted(path, kMostStatusBytes) != text;
  if (united.is_new) write_file(path, text);
  return united;
}

}  // namespace

const char* to_string(CaseStatus status) {
  constexpr const char* kNames[] = {"ok", "rejected", "failed", "skipped"};
  return kNames[static_cast<size_t>(status)];
}

std::string status_table(const std::string& folder) {
  return (fs::path(folder) / "status.tsv").string();
}

StatusTable::StatusTable(const std::string& folder, std::vector<std::string> figures,
                         const Context& context)
    : folder_(folder),
      path_(status_table(folder)),
      figures_(std::move(figures)),
      context_(context),
      next_rewrite_(Clock::now() + kPause) {
  std::error_code ignored;
  if (fs::exists(path_, ignored) && !fs::is_regular_file(path_, ignored)) {
    throw OutputError("cannot write '" + path_ + "': it is not a regular file; remove it");
  }
  start_part();
}

StatusTable::~StatusTable() {
  if (file_ >= 0) close(file_);
}

void StatusTable::start_part() {
  constexpr int kTries = 100;
  for (int i = 0; file_ < 0 && i < kTries; ++i) {
    part_ = parts_folder(folder_) + "/" + kPrefix + random_hex() + kEnding;
    file_ = open(part_.c_str(), O_RDWR | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file_ < 0) fail_to_write(part_, errno);
    // Between the two calls another run may have taken the empty file for one that was left
    // behind. Where there are no locks nobody removes it.
    const bool is_busy = flock(file_, LOCK_EX | LOCK_NB) != 0 && errno == EWOULDBLOCK;
    if (!is_busy && is_same_file(file_, part_)) break;
    close(file_);
    file_ = -1;
  }
  if (file_ < 0) fail_to_write(part_, EWOULDBLOCK);
  errno = ENOSPC;
  if (!write_whole(file_, header())) {
    const int error = errno;
    unlink(part_.c_str());
    fail_to_write(part_, error);
  }
}

std::string StatusTable::header() const {
  std::string text = "id\tstatus\tmessage\tseconds";
  for (const std::string& name : figures_) text += "\t" + name;
  return text + "\tended\n";
}

std::string StatusTable::line_of(const CaseRow& row) const {
  std::string text = cell(row.id) + "\t" + to_string(row.status) + "\t" + cell(row.message) + "\t" +
                     number("%.3f", row.seconds);
  for (size_t i = 0; i < figures_.size(); ++i) {
    text += "\t" + cell(i < row.figures.size() ? row.figures[i] : "");
  }
  return text + "\t" + utc_with_milliseconds() + "\n";
}

size_t StatusTable::add(const CaseRow& row) {
  const std::string line = line_of(row);
  size_t rows = 0;
  {
    const std::lock_guard lock(mutex_);
    keep(line);
    text_ += line;
    ++counts_[row.counted()];
    for (const auto& [status, count] : counts_) rows += count;
  }
  rewrite_now_and_then();
  return rows;
}

/// A row that does not go in whole, on a full disk, must not spoil the next one.
void StatusTable::keep(const std::string& line) {
  if (file_ < 0 || !part_is_whole_) return;
  const off_t end = lseek(file_, 0, SEEK_END);
  if (write_whole(file_, line)) return;
  // Without it the part has the rows so far; the table gets them all from `text_`.
  if (end < 0 || ftruncate(file_, end) != 0) part_is_whole_ = false;
}

void StatusTable::rewrite_now_and_then() {
  const std::unique_lock lock(rewriting_, std::try_to_lock);
  const auto start = Clock::now();
  if (!lock || start < next_rewrite_) return;
  try {
    rewrite(0, /*is_last=*/false);
  } catch (const OutputError&) {
    // The end of the run tries again, and says why if it fails.
  }
  next_rewrite_ =
      Clock::now() + std::max<Clock::duration>(kPause, kPausePerRewrite * (Clock::now() - start));
}

/// False if another run holds the lock all the time.
bool StatusTable::rewrite(double wait_seconds, bool is_last) {
  constexpr int kTries = 5;
  const FolderLock lock(folder_, wait_seconds);
  if (lock.state() == FolderLock::State::kBusy) return false;
  const std::string first_line = header();
  std::string text = first_line;
  {
    const std::lock_guard rows(mutex_);
    text += text_;
  }
  const OwnRows own{first_line, text, part_};
  United united = write_union(folder_, own, context_);
  if (lock.state() != FolderLock::State::kTaken) {
    // Nobody knows what is read by whom: all parts stay, and every run unites them. Of runs that
    // write at the same time the last one finds the rows of the others when it looks again.
    for (int i = 1; i < kTries && united.is_new; ++i) united = write_union(folder_, own, context_);
    return true;
  }
  for (const OtherPart& part : united.parts) part.remove();
  if (!is_last) return true;
  if (!united.left_out.empty()) {
    context_.warn("'" + path_ + "' has not all rows of this run (" + united.left_out +
                  "); they are in '" + part_ + "'");
  } else if (is_same_file(file_, part_)) {
    unlink(part_.c_str());
  }
  return true;
}

void StatusTable::finish() {
  const std::lock_guard lock(rewriting_);
  if (!rewrite(kLockSeconds, /*is_last=*/true)) {
    context_.warn("another run holds the lock of '" + folder_ + "' and does not let it go: '" +
                  path_ + "' has not the rows of this run yet; they are in '" + part_ +
                  "', and the next run into the folder takes them over");
  }
}

size_t StatusTable::rows() const {
  const std::lock_guard lock(mutex_);
  size_t rows = 0;
  for (const auto& [status, count] : counts_) rows += count;
  return rows;
}

size_t StatusTable::count(CaseStatus status) const {
  const std::lock_guard lock(mutex_);
  const auto found = counts_.find(status);
  return found == counts_.end() ? 0 : found->second;
}

}  // namespace larch::cases
