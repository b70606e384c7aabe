// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_batch.h"

#include <algorithm>
#include <list>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/pipeline/levelset/input/case_seeds.h"
#include "larch/pipeline/levelset/segmentation_memory.h"

namespace larch::pipeline {
namespace {

using JobPointer = std::shared_ptr<SegmentationJob>;

/// Images that move together at most, and the part of the free device memory that they may take.
constexpr size_t kMostTogether = 16;
constexpr double kMostOfDevice = 0.8;

/// Jobs that are read and not moved yet. Jobs are added by the threads that read; the others are
/// called by the one that computes.
class Waiting {
 public:
  void add(const JobPointer& job) {
    const std::lock_guard lock(mutex_);
    jobs_.push_back(job);
  }
  /// Takes `first`, and as many of the others as fit beside it, up to `most`; none if `first` has
  /// been taken before.
  std::vector<JobPointer> take(const JobPointer& first, int64_t device_free, size_t most) {
    const std::lock_guard lock(mutex_);
    const auto at = std::find(jobs_.begin(), jobs_.end(), first);
    if (at == jobs_.end()) return {};
    std::vector<JobPointer> taken{first};
    jobs_.erase(at);
    int64_t bytes = device_bytes(first->request);
    for (auto job = jobs_.begin(); job != jobs_.end() && taken.size() < most;) {
      const int64_t more = device_bytes((*job)->request);
      if (bytes + more > device_free) {
        ++job;
        continue;
      }
      bytes += more;
      taken.push_back(*job);
      job = jobs_.erase(job);
    }
    return taken;
  }

 private:
  std::mutex mutex_;
  std::list<JobPointer> jobs_;
};

bool is_moved(const SegmentationJob& job) {
  return job.is_started && levelset::is_done(job.run);
}

void start_again(SegmentationJob& job) {
  job.run = {};
  job.is_started = false;
}

/// Starts and moves the jobs together, as many as can be started.
void move_together(const std::vector<JobPointer>& taken, const Context& context) {
  std::vector<SegmentationJob*> jobs;
  for (const JobPointer& job : taken) {
    try {
      start_job(*job, context);
      jobs.push_back(job.get());
    } catch (const DeviceError&) {
      throw;
    } catch (const Error&) {
      start_again(*job);  // its case finds the failure again
    }
  }
  if (!jobs.empty()) move_jobs(jobs, context);
}

/// Moves a job, with others that wait for it if there are any. Those that could not be moved
/// together are moved alone, each when it is its case's turn, so that a failure is that of one
/// case.
void move_with_others(const JobPointer& job, const std::vector<JobPointer>& taken,
                      const Context& context) {
  if (taken.size() > 1) {
    try {
      move_together(taken, context);
    } catch (const DeviceError&) {
      throw;
    } catch (const Error& error) {
      context.debug(std::string("images are segmented one by one: ") + error.what());
      for (const JobPointer& other : taken) start_again(*other);
    }
  }
  if (is_moved(*job)) return;
  start_job(*job, context);
  SegmentationJob* const alone[] = {job.get()};
  move_jobs(alone, context);
}

}  // namespace

SegmentationRequest SegmentationBatch::request_of(const Case& c) const {
  SegmentationRequest request = each;
  request.image = c.image;
  request.read = images.read;
  request.seeds = seeds_of_case(each.seeds, c);
  request.files = segmentation_files_of_case(images.folder, c.id, images.products,
                                             images.image_ending, images.mesh_ending);
  request.files.by_label = each.files.by_label;
  return request;
}

cases::CaseRun SegmentationBatch::run(const CaseWriter& writer) const {
  cases::CaseFolder folder{images.folder, writer, [this](const Case& c) {
                             const SegmentationRequest request = request_of(c);
                             return request.files.names(request.seeds.known_labels());
                           }};
  folder.inputs = [](const Case& c) {
    std::vector<RunInput> inputs = cases::inputs_of_image(c);
    for (RunInput& input : seed_inputs(c)) inputs.push_back(std::move(input));
    return inputs;
  };
  folder.figures = {{"voxels", /*is_count=*/true},
                    {"volume_ml"},
                    {"iterations", /*is_count=*/true},
                    {"touches_border", /*is_count=*/true}};
  folder.carried = images.carried;
  folder.rejection = "nothing is left of the structure";
  return {images.cases, images.memory_bytes, folder};
}

void check_batch(const SegmentationBatch& batch, const CaseWriter& writer) {
  const cases::CaseRun run = batch.run(writer);
  cases::check_cases(run);
  std::vector<SegmentationRequest> requests;
  std::vector<SegmentationFiles> files;
  std::vector<std::string> others;
  for (const Case& c : batch.images.cases) {
    requests.push_back(batch.request_of(c));
    files.push_back(requests.back().files);
    for (const CaseOutput& output : files.back().names().outputs) others.push_back(output.path);
    for (const RunInput& input : run.folder->inputs(c)) others.push_back(input.path);
  }
  check_label_files(files, others);
  for (const SegmentationRequest& request : requests) {
    check_files(request.files);
    if (!request.seeds.has_start()) {
      throw InputError(
          "'" + request.image +
          "' has nothing to start from: give the list a column 'sphere_mm' with seeds or "
          "'label' with a label map to start from, or seeds of all images by "
          "--sphere-mm");
    }
  }
}

Outputs segment_batch(const SegmentationBatch& batch, const levelset::LevelsetConfig& config,
                      const CaseWriter& writer, const Context& context) {
  check_batch(batch, writer);
  const cases::CaseRun run = batch.run(writer);
  const std::vector<Case>& all = batch.images.cases;
  Waiting waiting;
  cases::CaseSteps<JobPointer> steps;
  steps.bytes = [&](size_t i) {
    const SegmentationRequest request = batch.request_of(all[i]);
    ReadOptions read = request.read;
    read.warn = nullptr;  // the reading itself will say it
    const auto labels = static_cast<int64_t>(find_labels(request.seeds, read).size());
    return segmentation_memory(probe_image(all[i].image, read), request, config, labels,
                               context.device.is_cuda())
        .host;
  };
  steps.read = [&](size_t i, const Context& side) {
    const SegmentationRequest request = batch.request_of(all[i]);
    JobPointer job = read_job(request, config, side);
    require_label_files_free(request, labels_of(job->request), run.folder->inputs(all[i]), writer);
    waiting.add(job);
    return job;
  };
  steps.compute = [&](size_t, JobPointer& job, const Context& whole) {
    const bool on_gpu = whole.device.is_cuda();
    const auto device_free =
        on_gpu ? static_cast<int64_t>(kMostOfDevice *
                                      static_cast<double>(free_memory_bytes(whole.device)))
               : int64_t{0};
    move_with_others(job, waiting.take(job, device_free, on_gpu ? kMostTogether : 1), whole);
    finish_job(*job, whole);
  };
  steps.finish = [&](size_t i, const std::shared_ptr<JobPointer>& job, const cases::Grow&,
                     const Context& side) {
    return std::optional(segmentation_outputs(batch.request_of(all[i]).files, *job, side));
  };
  return cases::run_cases(run, steps, context);
}

}  // namespace larch::pipeline
