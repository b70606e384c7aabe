// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/pbt_batch.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <filesystem>
#include <memory>
#include <optional>
#include <set>

#include "larch/app/failures.h"
#include "larch/cases/stages.h"
#include "larch/cases/status_table.h"
#include "larch/config/bytes.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/pipeline/detection/detection_memory.h"
#include "larch/pipeline/image_inputs.h"

namespace larch::pipeline {
namespace {

namespace fs = std::filesystem;

void check_id(const std::string& id) {
  const bool bad = id.empty() || id.front() == '.' || id.find('/') != std::string::npos ||
                   std::any_of(id.begin(), id.end(), [](unsigned char c) { return c < 32; });
  if (bad) {
    throw InputError("the id '" + id +
                     "' cannot be a file name (it starts with a dot, or holds a slash or a control "
                     "character); give a column 'id' with other names");
  }
}

/// As those of a detection on one image.
std::vector<RunInput> inputs_of_case(const Case& c) {
  std::vector<RunInput> inputs{{"input", c.image}};
  for (const RunInput& data : detached_inputs("input", c.image)) inputs.push_back(data);
  return inputs;
}

/// The bodies of the three stages.
class Batch {
 public:
  Batch(const pbt::Model& model, const DetectConfig& config, const BatchRequest& request,
        const CaseWriter& writer, const Context& context)
      : model_(model),
        config_(config),
        request_(request),
        writer_(writer),
        context_(context),
        jobs_(request.cases.size()),
        memory_(request.cases.size()),
        seconds_(request.cases.size(), 0),
        table_(request.folder, {"voxels", "volume_ml"}, context) {}

  Outputs run() {
    const cases::StageLimits limits = plan();
    const cases::Stages stages{
        [this](size_t i) { return need(i); }, [this](size_t i) { return read(i); },
        [this](size_t i) { return compute(i); }, [this](size_t i) { return survey(i); },
        [this](size_t i, const cases::Grow& grow) { return finish(i, grow); }};
    cases::StageTimes times;
    try {
      times = cases::run_stages(jobs_.size(), stages, limits,
                                [this] { return context_.stop_requested(); });
    } catch (...) {
      try {
        table_.finish();
      } catch (const OutputError& second) {
        context_.warn(second.what());
      }
      throw;
    }
    table_.finish();
    if (context_.stop_requested()) {
      throw Stopped("stopped after " + std::to_string(table_.rows()) + " of " +
                        std::to_string(jobs_.size()) + " cases; --skip-existing goes on from there",
                    static_cast<ExitCode>(context_.stop->load()));
    }
    return outcome(times);
  }

 private:
  using Clock = std::chrono::steady_clock;

  /// Threads and memory of the stages; the computing one keeps context.threads.
  cases::StageLimits plan() {
    cases::StageLimits limits;
    const int threads = context_.threads;
    give_memory_back(request_.memory_bytes);
    const bool alone = threads == 1 && !context_.device.is_cuda();
    limits.readers = alone ? 0 : std::clamp(threads / 2, 1, 8);
    limits.finishers = alone ? 0 : std::clamp(threads, 1, 32);
    limits.ahead = static_cast<size_t>(limits.readers) + 2;
    limits.behind = static_cast<size_t>(limits.finishers) + 1;
    limits.bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2);
    if (request_.memory_bytes > 0) limits.bytes = std::min(limits.bytes, request_.memory_bytes);
    // Signals are looked at between the cases only.
    compute_ = context_;
    compute_.progress_sink = {};
    compute_.stop = nullptr;
    side_ = compute_;
    if (!alone) side_.threads = std::max(1, threads / std::max(2, limits.finishers));
    return limits;
  }

  cases::MemoryNeed need(size_t i) {
    try {
      probe(i);
      return memory_[i]->need;
    } catch (const std::exception&) {
      return {};  // reading tries it again, and says what is wrong
    }
  }

  void probe(size_t i) {
    const Case& c = request_.cases[i];
    ReadOptions read = request_.read;
    read.warn = nullptr;  // the reading itself will say it
    memory_[i] =
        detection_memory(model_, config_, files_of(request_, c).wanted(),
                         probe_image(c.image, read), request_.memory_bytes, context_.device);
  }

  /// Runs a step of a case; false, with a row of the table, if it fails.
  template <class F>
  bool attempt(size_t i, F&& step) {
    const auto start = Clock::now();
    try {
      step();
      seconds_[i] += std::chrono::duration<double>(Clock::now() - start).count();
      return true;
    } catch (const DeviceError&) {
      jobs_[i] = nullptr;  // others are still finished
      throw;
    } catch (...) {
      seconds_[i] += std::chrono::duration<double>(Clock::now() - start).count();
      const detail::Failure failure = detail::failure_of(std::current_exception());
      std::string message = failure.expected ? "" : "unexpected: ";
      for (const std::string& part : failure.chain) {
        message += (&part == &failure.chain.front() ? "" : ": ") + part;
      }
      if (failure.code == ExitCode::kMemory) ++lacked_memory_;
      fail(i, {request_.cases[i].id, cases::CaseStatus::kFailed, message, seconds_[i]});
      return false;
    }
  }

  void fail(size_t i, const cases::CaseRow& row) {
    context_.log(LogLevel::kError, "case '" + row.id + "' failed: " + row.message);
    record(i, row);
  }

  void record(size_t i, const cases::CaseRow& row) {
    jobs_[i] = nullptr;
    const size_t over = table_.add(row);
    context_.progress(static_cast<double>(over) / static_cast<double>(jobs_.size()),
                      "case '" + row.id + "' " + cases::to_string(row.counted()));
  }

  bool read(size_t i) {
    const Case& c = request_.cases[i];
    const DetectionFiles files = files_of(request_, c);
    bool is_over = false;
    const bool go_on = attempt(i, [&] {
      const EarlierOutputs earlier = earlier_of(request_, c, writer_);
      is_over = earlier.state != EarlierOutputs::State::kCompute;
      if (earlier.state == EarlierOutputs::State::kSkip) record(i, skipped_row(c, earlier));
      if (earlier.state == EarlierOutputs::State::kOther) {
        fail(i, {c.id, cases::CaseStatus::kFailed, earlier.what});
      }
    });
    if (!go_on || is_over) return false;
    return attempt(i, [&] {
      if (!memory_[i]) probe(i);  // no case goes on without a bound
      require_least(*memory_[i], request_.memory_bytes);
      jobs_[i] = std::make_shared<DetectionJob>();
      jobs_[i]->wanted = files.wanted();
      jobs_[i]->memory_bytes = memory_[i]->evaluation;
      read_input(c.image, "", request_.read, *jobs_[i]);
      check_files_hold(files, jobs_[i]->image.grid());
      prepare(model_, config_, *jobs_[i], side_);
    });
  }

  bool compute(size_t i) {
    return attempt(i, [&] { evaluate(model_, config_, *jobs_[i], compute_); });
  }

  /// What finishing takes, or -1 with a row of the table: more than the promise is not taken.
  int64_t survey(size_t i) {
    int64_t bytes = -1;
    const bool fits = attempt(i, [&] {
      bytes = survey_structure(config_, *jobs_[i], side_);
      if (request_.memory_bytes > 0 && bytes > request_.memory_bytes) {
        throw MemoryError("structure and files of this case take up to " + bytes_text(bytes) +
                          " (" + std::to_string(bytes) + " bytes), --memory allows " +
                          bytes_text(request_.memory_bytes) +
                          "; allow more, or lower structure.graph_cut.max_band_voxels");
      }
    });
    return fits ? bytes : -1;
  }

  /// The memory that a case with its structure takes for its surface. Throws MemoryError if that is
  /// more than the promise.
  int64_t with_surface(size_t i, const DetectionFiles& files) const {
    const DetectionJob& job = *jobs_[i];
    const int64_t bytes = bytes_with_surface(config_, job, files.mesh, side_);
    if (request_.memory_bytes > 0 && bytes > request_.memory_bytes) {
      throw MemoryError("the surface mesh of this case, " + mesh::describe(job.surface_size) +
                        ", takes it up to " + bytes_text(bytes) + " (" + std::to_string(bytes) +
                        " bytes), --memory allows " + bytes_text(request_.memory_bytes) +
                        "; allow more, or leave the mesh out");
    }
    return bytes;
  }

  /// False if the surface does not fit beside the other cases: nothing of the case is left then.
  bool finish(size_t i, const cases::Grow& grow) {
    const Case& c = request_.cases[i];
    cases::CaseRow row{c.id};
    bool fits = true;
    const bool written = attempt(i, [&] {
      const auto start = Clock::now();
      const DetectionFiles files = files_of(request_, c);
      find_structure(model_, config_, *jobs_[i], side_);
      if (jobs_[i]->wanted.surface) fits = grow(with_surface(i, files));
      if (!fits) return;
      find_surface(config_, *jobs_[i], side_);
      Outputs outputs = detection_outputs(model_, config_, files, c.image, jobs_[i]);
      for (const RunInput& input : inputs_of_case(c)) outputs.input(input);
      const std::chrono::duration<double> took = Clock::now() - start;
      writer_.write(outputs, seconds_[i] + took.count());
      if (outputs.status_word == "rejected") row.status = cases::CaseStatus::kRejected;
      row.message = outputs.status_reason;
    });
    if (!fits) {
      context_.debug("case '" + c.id + "' is done again alone: its surface needs more memory");
      jobs_[i] = nullptr;
      return false;
    }
    if (!written) return true;
    row.seconds = seconds_[i];
    row.figures = figures_of(jobs_[i]->found.voxels, jobs_[i]->found.volume_mm3 / 1000);
    record(i, row);
    return true;
  }

  static std::vector<std::string> figures_of(int64_t voxels, double volume_ml) {
    char text[32];
    std::snprintf(text, sizeof text, "%.6g", volume_ml);
    return {std::to_string(voxels), text};
  }

  /// A result that its sidecars confirm is one, whenever it was computed; what the name alone tells
  /// of is not. A rejected one stays rejected; one that is good was not computed by this run.
  static cases::CaseRow skipped_row(const Case& c, const EarlierOutputs& earlier) {
    cases::CaseRow row{c.id, cases::CaseStatus::kSkipped, earlier.what};
    if (!earlier.is_confirmed) return row;
    row.message = "computed by an earlier run";
    row.seconds = std::clamp(earlier.seconds, 0.0, 1e9);
    if (earlier.is_rejected) {
      row.status = cases::CaseStatus::kRejected;
      row.message = earlier.reason + " (" + row.message + ")";
    } else {
      row.status = cases::CaseStatus::kOk;
      row.counts_as = cases::CaseStatus::kSkipped;
    }
    const auto voxels = earlier.metrics.find("voxels"), volume = earlier.metrics.find("volume_ml");
    if (voxels == earlier.metrics.end() || volume == earlier.metrics.end()) return row;
    row.figures =
        figures_of(static_cast<int64_t>(std::clamp(voxels->second, 0.0, 1e15)), volume->second);
    return row;
  }

  Outputs outcome(const cases::StageTimes& times) const {
    Outputs outputs;
    outputs.metric("cases", static_cast<double>(jobs_.size()));
    for (const cases::CaseStatus status :
         {cases::CaseStatus::kOk, cases::CaseStatus::kRejected, cases::CaseStatus::kFailed,
          cases::CaseStatus::kSkipped}) {
      outputs.metric(cases::to_string(status), static_cast<double>(table_.count(status)));
    }
    const auto done = static_cast<double>(jobs_.size() - table_.count(cases::CaseStatus::kSkipped));
    outputs.metric("cases_per_second", done / times.seconds)
        .metric("share_waiting_for_reading", times.waited_for_reading / times.seconds)
        .metric("share_waiting_for_writing", times.waited_for_finishing / times.seconds);
    const size_t failed = table_.count(cases::CaseStatus::kFailed);
    const size_t rejected = table_.count(cases::CaseStatus::kRejected);
    if (failed + rejected == 0) return outputs;
    const std::string count = std::to_string(failed) + " of " + std::to_string(jobs_.size());
    const std::string see = "; see '" + cases::status_table(request_.folder) + "'";
    if (failed == lacked_memory_ && rejected == 0) {
      // The one failure that the same command can overcome, with more memory and --skip-existing.
      const size_t free = free_memory_bytes(Device::cpu());
      return outputs.status("rejected",
                            count + " cases failed for want of memory or threads, with " +
                                std::to_string(free) + " bytes free" + see,
                            ExitCode::kMemory);
    }
    const std::string nothing_in =
        rejected > 0 ? " and in " + std::to_string(rejected) + " nothing was detected" : "";
    outputs.status("rejected", count + " cases failed" + nothing_in + see);
    return outputs;
  }

  const pbt::Model& model_;
  const DetectConfig& config_;
  const BatchRequest& request_;
  const CaseWriter& writer_;
  const Context& context_;
  Context compute_, side_;
  std::vector<std::shared_ptr<DetectionJob>> jobs_;     // of the cases in flight
  std::vector<std::optional<DetectionMemory>> memory_;  // of each case, once it is known
  std::vector<double> seconds_;
  std::atomic<size_t> lacked_memory_{0};  // cases that failed for it
  cases::StatusTable table_;
};

}  // namespace

DetectionFiles files_of(const BatchRequest& request, const Case& c) {
  return files_of_case(request.folder, c.id, request.products, request.image_ending,
                       request.mesh_ending);
}

EarlierOutputs earlier_of(const BatchRequest& request, const Case& c, const CaseWriter& writer) {
  return writer.earlier(files_of(request, c).names(), inputs_of_case(c));
}

void check_batch(const BatchRequest& request) {
  std::set<std::string> inputs, outputs;
  for (const Case& c : request.cases) {
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
  add(cases::status_table(request.folder));
  add((fs::path(request.folder) / "larch.json").string());
  for (const Case& c : request.cases) {
    check_id(c.id);
    const DetectionFiles files = files_of(request, c);
    check_files(files);
    for (const std::string& name : files.all()) {
      add(name);
      add(name + ".json");
    }
    if (!files.labels.empty()) add(files.table());
  }
}

void check_batch(const BatchRequest& request, const CaseWriter& writer) {
  check_batch(request);
  CaseFiles all;
  for (const Case& c : request.cases) {
    const CaseFiles files = files_of(request, c).names();
    all.outputs.insert(all.outputs.end(), files.outputs.begin(), files.outputs.end());
    all.companions.insert(all.companions.end(), files.companions.begin(), files.companions.end());
  }
  writer.require_free(all);
}

Outputs detect_batch(const pbt::Model& model, const DetectConfig& config,
                     const BatchRequest& request, const CaseWriter& writer,
                     const Context& context) {
  check_batch(request, writer);
  return Batch(model, config, request, writer, context).run();
}

}  // namespace larch::pipeline
