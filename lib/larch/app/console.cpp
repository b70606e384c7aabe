// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/console.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdio>

#include <spdlog/sinks/basic_file_sink.h>
#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include "larch/app/process.h"
#include "larch/config/json_text.h"
#include "larch/config/text.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/atomic_file.h"

namespace larch::detail {
namespace {

constexpr double kSecondsPerBar = 0.1;
constexpr const char* kLevels[] = {"error", "warning", "info", "debug"};  // by LogLevel

std::string level_name(LogLevel level) {
  return kLevels[static_cast<int>(level)];
}

/// Tells the lines of this process from those of all others that share a log.
const std::string& run_id() {
  static const std::string id = [] {
    std::array<char, 65> host{};
    gethostname(host.data(), host.size() - 1);
    return utc_now() + " " + host.data() + " " + std::to_string(getpid());
  }();
  return id;
}

std::string coloured(LogLevel level, const std::string& text) {
  if (level == LogLevel::kError) return "\033[1;31m" + text + "\033[0m";
  if (level == LogLevel::kWarning) return "\033[1;33m" + text + "\033[0m";
  return text;
}

}  // namespace

LogFields& log_fields() {
  thread_local LogFields fields;
  return fields;
}

Console::Console(const ConsoleSettings& settings)
    : settings_(settings), last_shown_(std::chrono::steady_clock::now()) {
  const bool is_for_people = isatty(STDERR_FILENO) == 1 && settings_.format == LogFormat::kText;
  colour_ = is_for_people && variable("NO_COLOR") == nullptr;
  if (settings_.progress == ProgressMode::kAuto) {
    settings_.progress = is_for_people ? ProgressMode::kBar : ProgressMode::kLines;
  }
  terminal_ = std::make_shared<spdlog::logger>(settings_.app,
                                               std::make_shared<spdlog::sinks::stderr_sink_mt>());
  terminal_->set_pattern("%v");
  if (settings_.log_file.empty()) return;
  try {
    // spdlog would make the folder; a name that is mistyped should not.
    if (access(folder_of(settings_.log_file).c_str(), F_OK) != 0) {
      throw spdlog::spdlog_ex("no folder");
    }
    file_ = std::make_shared<spdlog::logger>(
        settings_.app, std::make_shared<spdlog::sinks::basic_file_sink_mt>(settings_.log_file));
  } catch (const spdlog::spdlog_ex&) {
    throw OutputError("log file '" + settings_.log_file +
                      "' cannot be written; is its folder there, and writable?");
  }
  const bool json = settings_.format == LogFormat::kJson;
  file_->set_pattern(json ? "%v" : "%Y-%m-%dT%H:%M:%S.%e%z %v");
  file_->flush_on(spdlog::level::info);
}

Console::~Console() {
  clear_bar();
}

void Console::log(LogLevel level, std::string_view text) {
  const std::lock_guard lock(mutex_);
  line(level, std::string(text), {});
}

void Console::error(const std::vector<std::string>& chain) {
  const std::lock_guard lock(mutex_);
  if (!chain.empty()) line(LogLevel::kError, chain[0], {chain.begin() + 1, chain.end()});
}

void Console::line(LogLevel level, const std::string& text,
                   const std::vector<std::string>& causes) {
  if (level > settings_.level) return;
  clear_bar();
  std::string shown, kept;
  if (settings_.format == LogFormat::kJson) {
    config::Json json{{"time", utc_now()}, {"level", level_name(level)}, {"app", settings_.app}};
    json["run"] = run_id();
    const auto& [case_id, code] = log_fields();
    if (!case_id.empty()) json["case"] = case_id;
    if (code) json["code"] = *code;
    json["message"] = text;
    if (!causes.empty()) json["caused_by"] = causes;
    shown = kept = json_text(json);
  } else {
    const std::string start = settings_.app + ": ";
    const std::string word = level == LogLevel::kInfo ? "" : level_name(level) + ": ";
    std::string tail = escaped(text);
    for (const std::string& cause : causes) tail += "\ncaused by: " + escaped(cause);
    shown = start + (colour_ ? coloured(level, word) : word) + tail;
    kept = start + word + tail;
  }
  terminal_->info("{}", shown);
  if (file_) file_->info("{}", kept);
}

void Console::progress(double fraction, std::string_view phrase) {
  const std::lock_guard lock(mutex_);
  if (!(fraction >= 0)) fraction = 0;
  fraction = std::min(fraction, 1.0);
  if (fraction < last_fraction_) last_fraction_ = 0;  // a new stage
  const auto now = std::chrono::steady_clock::now();
  const double seconds = std::chrono::duration<double>(now - last_shown_).count();
  if (settings_.progress == ProgressMode::kSlicer) {
    if (fraction < 1 && seconds < kSecondsPerBar) return;
    std::printf("<filter-progress>%.3f</filter-progress>\n", fraction);
    std::fflush(stdout);
  } else if (settings_.progress == ProgressMode::kNone || settings_.level < LogLevel::kInfo) {
    return;
  } else if (settings_.progress == ProgressMode::kBar) {
    if (bar_shown_ && fraction < 1 && seconds < kSecondsPerBar) return;
    draw_bar(fraction, phrase);
  } else {
    if (!progress_line_is_due(fraction, last_fraction_, seconds)) return;
    line(LogLevel::kInfo, std::to_string(std::lround(fraction * 100)) + " % " + std::string(phrase),
         {});
  }
  last_fraction_ = fraction;
  last_shown_ = now;
}

void Console::draw_bar(double fraction, std::string_view phrase) {
  constexpr int kWidth = 30;
  const int filled = static_cast<int>(std::floor(fraction * kWidth));
  const std::string bar = std::string(filled, '#') + std::string(kWidth - filled, '.');
  std::fprintf(stderr, "\r\033[K[%s] %3ld %% %.40s", bar.c_str(), std::lround(fraction * 100),
               escaped(phrase).c_str());
  std::fflush(stderr);
  bar_shown_ = true;
}

void Console::clear_bar() {
  if (bar_shown_) std::fprintf(stderr, "\r\033[K");
  bar_shown_ = false;
}

void Console::finish() {
  const std::lock_guard lock(mutex_);
  clear_bar();
}

bool progress_line_is_due(double fraction, double last_fraction, double seconds_since_last) {
  return seconds_since_last >= 30 && fraction - last_fraction >= 0.1 - 1e-9;
}

LogLevel choose_log_level(bool quiet, int verbosity) {
  if (quiet && verbosity > 0) throw UsageError("--quiet and --verbose exclude each other");
  if (quiet) return LogLevel::kWarning;
  if (verbosity > 0) return LogLevel::kDebug;
  const char* wanted = variable("LARCH_LOGLEVEL");
  if (wanted == nullptr) return LogLevel::kInfo;
  const std::string word = wanted;
  for (const LogLevel level :
       {LogLevel::kError, LogLevel::kWarning, LogLevel::kInfo, LogLevel::kDebug}) {
    if (word == level_name(level)) return level;
  }
  throw UsageError("LARCH_LOGLEVEL: '" + word + "' is not a level" +
                   config::not_allowed(word, {std::begin(kLevels), std::end(kLevels)}));
}

}  // namespace larch::detail
