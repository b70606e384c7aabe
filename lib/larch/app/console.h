// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "larch/app/command_line.h"
#include "larch/core/context.h"

namespace spdlog {
class logger;
}

namespace larch::detail {

struct ConsoleSettings {
  std::string app;
  LogLevel level = LogLevel::kInfo;
  LogFormat format = LogFormat::kText;
  ProgressMode progress = ProgressMode::kAuto;
  std::string log_file{};
};

/// Holds the further fields of the JSON lines that a thread logs: the case that it works on, if
/// any, and on the last line of a case or a run its exit code.
struct LogFields {
  std::string case_id{};
  std::optional<int> code{};
};
/// Returns the fields of the thread that calls.
LogFields& log_fields();

/// Sets the fields of this thread while it lives.
class LogScope {
 public:
  explicit LogScope(LogFields fields) : before_(std::exchange(log_fields(), std::move(fields))) {}
  ~LogScope() { log_fields() = std::move(before_); }
  LogScope(const LogScope&) = delete;
  LogScope& operator=(const LogScope&) = delete;

 private:
  LogFields before_;
};

/// Log lines and progress on stderr; they share the line of the bar, so they share a lock. May be
/// used from several threads. Progress for Slicer goes to stdout, as Slicer reads it there.
class Console {
 public:
  /// Throws OutputError if the log file cannot be opened.
  explicit Console(const ConsoleSettings& settings);
  ~Console();
  Console(const Console&) = delete;
  Console& operator=(const Console&) = delete;

  void log(LogLevel level, std::string_view text);
  /// The chain of an error, the outermost first.
  void error(const std::vector<std::string>& chain);
  void progress(double fraction, std::string_view phrase);
  /// Takes the bar away.
  void finish();

 private:
  void line(LogLevel level, const std::string& text, const std::vector<std::string>& causes);
  void draw_bar(double fraction, std::string_view phrase);
  void clear_bar();

  ConsoleSettings settings_;
  std::mutex mutex_;
  std::shared_ptr<spdlog::logger> terminal_, file_;
  bool colour_ = false, bar_shown_ = false;
  double last_fraction_ = 0;
  std::chrono::steady_clock::time_point last_shown_;
};

/// Without a terminal a line is due after 10 % or 30 s, whichever is later.
bool progress_line_is_due(double fraction, double last_fraction, double seconds_since_last);

/// Returns the level that flags and LARCH_LOGLEVEL (error, warning, info, debug) ask for; a flag
/// wins. Throws UsageError for another word in the variable.
LogLevel choose_log_level(bool quiet, int verbosity);

}  // namespace larch::detail
