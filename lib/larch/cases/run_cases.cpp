// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/run_cases.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <filesystem>
#include <map>
#include <mutex>
#include <set>
#include <stdexcept>
#include <utility>

#include "larch/app/failures.h"
#include "larch/cases/status_rows.h"
#include "larch/cases/status_table.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"

namespace larch::cases {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

void check_id(const std::string& id) {
  const bool bad = id.empty() || id.front() == '.' || id.find('/') != std::string::npos ||
                   std::any_of(id.begin(), id.end(), [](unsigned char c) { return c < 32; });
  if (bad) {
    throw InputError("the id '" + id +
                     "' cannot be a file name (it starts with a dot, or holds a slash or a control "
                     "character); give a column 'id' with other names");
  }
}

std::string figure_text(const FigureColumn& column, double value) {
  if (!std::isfinite(value)) return "";
  if (column.is_count) return std::to_string(static_cast<int64_t>(std::clamp(value, -1e15, 1e15)));
  char text[32];
  std::snprintf(text, sizeof text, "%.6g", value);
  return text;
}

/// The figures of a case, as its outputs tell them.
std::map<std::string, double> metrics_of(const Outputs& outputs) {
  std::map<std::string, double> metrics;
  for (const Outputs::Text& metric : outputs.metrics) {
    char* end = nullptr;
    const double value = std::strtod(metric.text.c_str(), &end);
    if (end != metric.text.c_str()) metrics[metric.name] = value;  // "null" is no figure
  }
  return metrics;
}

/// Columns of the status table beside those of every program.
std::vector<std::string> column_names(const CaseFolder& folder) {
  std::vector<std::string> names;
  for (const FigureColumn& column : folder.figures) names.push_back(column.name);
  names.insert(names.end(), folder.carried.begin(), folder.carried.end());
  return names;
}

/// The bodies of the stages.
class CaseRunner {
 public:
  CaseRunner(const CaseRun& run, const detail::AnySteps& steps, const Context& context)
      : run_(run),
        steps_(steps),
        context_(context),
        compute_(context),
        jobs_(run.cases.size()),
        needs_(run.cases.size()),
        seconds_(run.cases.size(), 0) {
    // Signals are looked at between the cases only.
    compute_.progress_sink = {};
    compute_.stop = nullptr;
    side_ = compute_;
    if (run.folder) table_.emplace(run.folder->path, column_names(*run.folder), context);
  }

  Outputs run() {
    const StageLimits limits = plan();
    Stages stages{[this](size_t i) { return need(i); }, [this](size_t i) { return read(i); },
                  [this](size_t i) { return compute(i); }, [this](size_t i) { return survey(i); },
                  [this](size_t i, const Grow& grow) { return finish(i, grow); }};
    if (!steps_.survey) stages.survey = {};
    StageTimes times;
    try {
      times = run_stages(jobs_.size(), stages, limits,
                         [this] { return context_.stop_requested() || has_failed_; });
    } catch (...) {
      finish_table_after_failure();
      throw;
    }
    if (table_) table_->finish();
    if (!failures_.empty()) rethrow_first_failure();
    if (context_.stop_requested()) {
      throw Stopped(
          "stopped after " + std::to_string(over_) + " of " + std::to_string(jobs_.size()) +
              " cases" +
              (table_ ? "; --skip-existing goes on from there" : "; no output was written"),
          static_cast<ExitCode>(context_.stop->load()));
    }
    return outcome(times);
  }

 private:
  /// Threads and memory of the stages; the computing one keeps context.threads.
  StageLimits plan() {
    StageLimits limits;
    const int threads = context_.threads;
    give_memory_back(run_.memory_bytes);
    const bool alone = threads == 1 && !context_.device.is_cuda();
    limits.readers = alone ? 0 : std::clamp(threads / 2, 1, 8);
    limits.finishers = alone ? 0 : std::clamp(threads, 1, 32);
    limits.ahead = static_cast<size_t>(limits.readers) + 2;
    limits.behind = static_cast<size_t>(limits.finishers) + 1;
    limits.bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2);
    if (run_.memory_bytes > 0) limits.bytes = std::min(limits.bytes, run_.memory_bytes);
    if (!alone) side_.threads = std::max(1, threads / std::max(2, limits.finishers));
    return limits;
  }

  MemoryNeed need(size_t i) {
    try {
      needs_[i] = steps_.bytes(i);
      return *needs_[i];
    } catch (const std::exception&) {
      return {};  // reading tries it again, and says what is wrong
    }
  }

  /// What is said of memory names no file: the case is named for it.
  [[noreturn]] void rethrow_first_failure() const {
    const auto& [i, error] = *failures_.begin();
    try {
      std::rethrow_exception(error);
    } catch (const MemoryError& lack) {
      throw MemoryError("case '" + run_.cases[i].id + "': " + lack.what());
    }
  }

  void finish_table_after_failure() {
    if (!table_) return;
    try {
      table_->finish();
    } catch (const OutputError& second) {
      context_.warn(second.what());
    }
  }

  /// Runs a step of a case; false, with a row of the table, if it fails.
  template <class F>
  bool attempt(size_t i, F&& step) {
    const auto start = Clock::now();
    try {
      step();
      seconds_[i] += seconds_since(start);
      return true;
    } catch (const DeviceError&) {
      jobs_[i] = nullptr;  // others are still finished
      throw;
    } catch (...) {
      seconds_[i] += seconds_since(start);
      fail(i, std::current_exception());
      return false;
    }
  }

  void fail(size_t i, const std::exception_ptr& error) {
    if (!table_) {
      jobs_[i] = nullptr;
      const std::lock_guard lock(failing_);
      failures_.emplace(i, error);
      has_failed_ = true;
      return;
    }
    const larch::detail::Failure failure = larch::detail::failure_of(error);
    std::string message = failure.expected ? "" : "unexpected: ";
    for (const std::string& part : failure.chain) {
      message += (&part == &failure.chain.front() ? "" : ": ") + part;
    }
    if (failure.code == ExitCode::kMemory) ++lacked_memory_;
    record_failure(i, {run_.cases[i].id, CaseStatus::kFailed, message, seconds_[i]});
  }

  void record_failure(size_t i, const CaseRow& row) {
    context_.log(LogLevel::kError, "case '" + row.id + "' failed: " + row.message);
    record(i, row);
  }

  void record(size_t i, const CaseRow& row) {
    jobs_[i] = nullptr;
    if (table_) table_->add(with_carried(i, row));
    const size_t over = ++over_;
    context_.progress(static_cast<double>(over) / static_cast<double>(jobs_.size()),
                      "case '" + row.id + "' " + to_string(row.counted()));
  }

  CaseRow with_carried(size_t i, CaseRow row) const {
    row.figures.resize(run_.folder->figures.size());
    for (const std::string& column : run_.folder->carried) {
      row.figures.push_back(run_.cases[i].further.at(column));
    }
    return row;
  }

  bool is_over(size_t i) {
    if (!run_.folder) return false;
    const Case& c = run_.cases[i];
    const EarlierOutputs earlier = earlier_of(run_, c);
    if (earlier.state == EarlierOutputs::State::kSkip) record(i, skipped_row(c, earlier));
    if (earlier.state == EarlierOutputs::State::kOther) {
      record_failure(i, refused_row(c, earlier));
    }
    return earlier.state != EarlierOutputs::State::kCompute;
  }

  bool read(size_t i) {
    bool over = false;
    if (!attempt(i, [&] { over = is_over(i); }) || over) return false;
    return attempt(i, [&] {
      if (!needs_[i]) needs_[i] = steps_.bytes(i);  // no case goes on without a bound
      require_least(*needs_[i], run_.memory_bytes);
      jobs_[i] = steps_.read(i, side_);
    });
  }

  bool compute(size_t i) {
    if (!attempt(i, [&] { steps_.compute(i, jobs_[i].get(), compute_); })) return false;
    if (!steps_.finish) record(i, {run_.cases[i].id});
    return static_cast<bool>(steps_.finish);
  }

  /// What finishing takes, or -1 with a row of the table.
  int64_t survey(size_t i) {
    int64_t bytes = -1;
    return attempt(i, [&] { bytes = steps_.survey(i, jobs_[i].get(), side_); }) ? bytes : -1;
  }

  /// False if the case does not fit beside the others: nothing of it is left then.
  bool finish(size_t i, const Grow& grow) {
    CaseRow row{run_.cases[i].id};
    std::optional<Outputs> outputs;
    const bool finished = attempt(i, [&] {
      const auto start = Clock::now();
      outputs = steps_.finish(i, jobs_[i], grow, side_);
      if (!outputs || !run_.folder) return;
      const CaseFolder& folder = *run_.folder;
      for (const RunInput& input : folder.inputs(run_.cases[i])) outputs->input(input);
      folder.writer.write(*outputs, seconds_[i] + seconds_since(start));
      if (outputs->status_word == "rejected") row.status = CaseStatus::kRejected;
      row.message = outputs->status_reason;
      row.figures = figures(metrics_of(*outputs));
    });
    if (!finished) return true;
    if (!outputs) {
      context_.debug("case '" + row.id + "' is done again alone: it needs more memory");
      jobs_[i] = nullptr;
      return false;
    }
    row.seconds = seconds_[i];
    outputs.reset();
    record(i, row);
    return true;
  }

  std::vector<std::string> figures(const std::map<std::string, double>& metrics) const {
    std::vector<std::string> cells;
    for (const FigureColumn& column : run_.folder->figures) {
      const auto found = metrics.find(column.name);
      cells.push_back(found == metrics.end() ? "" : figure_text(column, found->second));
    }
    return cells;
  }

  /// A result that its sidecars confirm is one, whenever it was computed; what the name alone tells
  /// of is not. A rejected one stays rejected; one that is good was not computed by this run.
  CaseRow skipped_row(const Case& c, const EarlierOutputs& earlier) const {
    if (!earlier.is_confirmed) return {c.id, CaseStatus::kSkipped, earlier.what};
    CaseRow row = row_of_result(c, earlier, "computed by an earlier run");
    if (!earlier.is_rejected) row.counts_as = CaseStatus::kSkipped;
    return row;
  }

  /// The case fails, since its outputs may not be replaced. Where they are a result of the case,
  /// with other settings, the table goes on to say so; where they are missing or changed it cannot.
  CaseRow refused_row(const Case& c, const EarlierOutputs& earlier) const {
    if (!earlier.has_other_settings) return {c.id, CaseStatus::kFailed, earlier.what};
    CaseRow row = row_of_result(c, earlier, earlier.what);
    row.counts_as = CaseStatus::kFailed;
    return row;
  }

  CaseRow row_of_result(const Case& c, const EarlierOutputs& earlier,
                        const std::string& message) const {
    CaseRow row{c.id, CaseStatus::kOk, message};
    row.seconds = std::clamp(earlier.seconds, 0.0, 1e9);
    if (earlier.is_rejected) {
      row.status = CaseStatus::kRejected;
      row.message = earlier.reason + " (" + message + ")";
    }
    row.figures = figures(earlier.metrics);
    return row;
  }

  Outputs outcome(const StageTimes& times) const {
    Outputs outputs;
    if (!table_) return outputs;
    outputs.metric("cases", static_cast<double>(jobs_.size()));
    for (const CaseStatus status :
         {CaseStatus::kOk, CaseStatus::kRejected, CaseStatus::kFailed, CaseStatus::kSkipped}) {
      outputs.metric(to_string(status), static_cast<double>(table_->count(status)));
    }
    const auto done = static_cast<double>(jobs_.size() - table_->count(CaseStatus::kSkipped));
    outputs.metric("cases_per_second", done / times.seconds)
        .metric("share_waiting_for_reading", times.waited_for_reading / times.seconds)
        .metric("share_waiting_for_writing", times.waited_for_finishing / times.seconds);
    const size_t failed = table_->count(CaseStatus::kFailed);
    const size_t rejected = table_->count(CaseStatus::kRejected);
    if (failed + rejected == 0) return outputs;
    const std::string count = std::to_string(failed) + " of " + std::to_string(jobs_.size());
    const std::string see = "; see '" + status_table(run_.folder->path) + "'";
    if (failed == lacked_memory_ && rejected == 0) {
      // The one failure that the same command can overcome, with more memory and --skip-existing.
      const size_t free = free_memory_bytes(Device::cpu());
      return outputs.status("rejected",
                            count + " cases failed for want of memory or threads, with " +
                                std::to_string(free) + " bytes free" + see,
                            ExitCode::kMemory);
    }
    const std::string and_rejected =
        rejected > 0 ? " and in " + std::to_string(rejected) + " " + run_.folder->rejection : "";
    outputs.status("rejected", count + " cases failed" + and_rejected + see);
    return outputs;
  }

  const CaseRun& run_;
  const detail::AnySteps& steps_;
  const Context& context_;
  Context compute_, side_;
  std::vector<std::shared_ptr<void>> jobs_;       // of the cases in flight
  std::vector<std::optional<MemoryNeed>> needs_;  // of each case, once it is known
  std::vector<double> seconds_;
  std::atomic<size_t> over_{0};
  std::atomic<size_t> lacked_memory_{0};  // cases that failed for it
  std::optional<StatusTable> table_;
  std::mutex failing_;
  std::atomic<bool> has_failed_{false};            // without a table: the run ends
  std::map<size_t, std::exception_ptr> failures_;  // by the number of the case
};

/// The names of what the cases write, and of what they are made from.
void check_names(const CaseRun& run) {
  std::set<std::string> inputs, outputs;
  for (const Case& c : run.cases) {
    inputs.insert(resolved_name(c.image));
    if (!c.label.empty()) inputs.insert(resolved_name(c.label));
  }
  const auto add = [&](const std::string& name) {
    const std::string path = resolved_name(name);
    if (inputs.contains(path)) {
      throw UsageError("'" + name +
                       "' is an image or label map of the list and would be replaced; give another "
                       "--output-dir");
    }
    if (!outputs.insert(path).second) {
      throw UsageError("'" + name + "' would be written for two cases; give them other ids");
    }
  };
  add(status_table(run.folder->path));
  add((std::filesystem::path(run.folder->path) / "larch.json").string());
  for (const Case& c : run.cases) {
    check_id(c.id);
    const CaseFiles files = run.folder->files(c);
    for (const CaseOutput& output : files.outputs) {
      add(output.path);
      add(output.path + ".json");
    }
    for (const std::string& name : files.companions) add(name);
  }
}

void check_carried(const CaseRun& run) {
  std::set<std::string> taken{"id", "status", "message", "seconds", "ended"};
  for (const FigureColumn& column : run.folder->figures) taken.insert(column.name);
  if (taken.size() + run.folder->carried.size() > kMostStatusColumns) {
    throw UsageError("--carry: status.tsv would have more than " +
                     std::to_string(kMostStatusColumns) + " columns; name fewer");
  }
  for (const std::string& column : run.folder->carried) {
    if (!taken.insert(column).second) {
      throw UsageError("--carry: status.tsv has a column '" + column + "' already");
    }
    const auto lacks = [&](const Case& c) { return !c.further.contains(column); };
    if (std::any_of(run.cases.begin(), run.cases.end(), lacks)) {
      throw UsageError("--carry: the list has no column '" + column +
                       "', beside id and the columns that this program reads");
    }
  }
}

}  // namespace

void check_cases(const CaseRun& run) {
  if (!run.folder) return;
  check_names(run);
  check_carried(run);
  if (!run.folder->writer.require_free) return;
  CaseFiles all;
  for (const Case& c : run.cases) {
    const CaseFiles files = run.folder->files(c);
    all.outputs.insert(all.outputs.end(), files.outputs.begin(), files.outputs.end());
    all.companions.insert(all.companions.end(), files.companions.begin(), files.companions.end());
  }
  run.folder->writer.require_free(all);
}

EarlierOutputs earlier_of(const CaseRun& run, const Case& c) {
  return run.folder->writer.earlier(run.folder->files(c), run.folder->inputs(c));
}

Outputs detail::run_any_cases(const CaseRun& run, const AnySteps& steps, const Context& context) {
  if (run.folder && !steps.finish)
    throw std::logic_error("cases with a folder and nothing to write");
  check_cases(run);
  return CaseRunner(run, steps, context).run();
}

}  // namespace larch::cases
