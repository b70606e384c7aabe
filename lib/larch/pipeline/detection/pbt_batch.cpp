// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/pbt_batch.h"

#include <memory>
#include <optional>

#include "larch/config/bytes.h"
#include "larch/core/error.h"
#include "larch/pipeline/detection/detection_memory.h"

namespace larch::pipeline {
namespace {

/// The steps of a detection for the cases of a batch.
class BatchSteps {
 public:
  BatchSteps(const pbt::Model& model, const DetectConfig& config, const BatchRequest& request,
             const Device& device)
      : model_(model),
        config_(config),
        request_(request),
        device_(device),
        memory_(request.cases.size()) {}

  cases::CaseSteps<DetectionJob> steps() {
    cases::CaseSteps<DetectionJob> steps;
    steps.bytes = [this](size_t i) { return bytes(i); };
    steps.read = [this](size_t i, const Context& context) { return read(i, context); };
    steps.compute = [this](size_t, DetectionJob& job, const Context& context) {
      evaluate(model_, config_, job, context);
    };
    steps.survey = [this](size_t, DetectionJob& job, const Context& context) {
      return survey(job, context);
    };
    steps.finish = [this](size_t i, const std::shared_ptr<DetectionJob>& job,
                          const cases::Grow& grow,
                          const Context& context) { return finish(i, job, grow, context); };
    return steps;
  }

 private:
  cases::MemoryNeed bytes(size_t i) {
    const Case& c = request_.cases[i];
    ReadOptions read = request_.read;
    read.warn = nullptr;  // the reading itself will say it
    memory_[i] = detection_memory(model_, config_, files_of(request_, c).wanted(),
                                  probe_image(c.image, read), request_.memory_bytes, device_);
    return memory_[i].need;
  }

  DetectionJob read(size_t i, const Context& context) const {
    const Case& c = request_.cases[i];
    const DetectionFiles files = files_of(request_, c);
    DetectionJob job;
    job.wanted = files.wanted();
    job.memory_bytes = memory_[i].evaluation;
    read_input(c.image, "", request_.read, job);
    check_files_hold(files, job.image.grid());
    prepare(model_, config_, job, context);
    return job;
  }

  /// What structure and files of a case take. Throws MemoryError if that is more than the promise.
  int64_t survey(DetectionJob& job, const Context& context) const {
    const int64_t bytes = survey_structure(config_, job, context);
    if (request_.memory_bytes > 0 && bytes > request_.memory_bytes) {
      throw MemoryError("structure and files of this case take up to " + bytes_text(bytes) + " (" +
                        std::to_string(bytes) + " bytes), --memory allows " +
                        bytes_text(request_.memory_bytes) +
                        "; allow more, or lower structure.graph_cut.max_band_voxels");
    }
    return bytes;
  }

  /// The memory that a case with its structure takes for its surface. Throws MemoryError if that is
  /// more than the promise.
  int64_t with_surface(const DetectionJob& job, const DetectionFiles& files,
                       const Context& context) const {
    const int64_t bytes = bytes_with_surface(config_, job, files.mesh, context);
    if (request_.memory_bytes > 0 && bytes > request_.memory_bytes) {
      throw MemoryError("the surface mesh of this case, " + mesh::describe(job.surface_size) +
                        ", takes it up to " + bytes_text(bytes) + " (" + std::to_string(bytes) +
                        " bytes), --memory allows " + bytes_text(request_.memory_bytes) +
                        "; allow more, or leave the mesh out");
    }
    return bytes;
  }

  std::optional<Outputs> finish(size_t i, const std::shared_ptr<DetectionJob>& job,
                                const cases::Grow& grow, const Context& context) const {
    const Case& c = request_.cases[i];
    const DetectionFiles files = files_of(request_, c);
    find_structure(model_, config_, *job, context);
    if (job->wanted.surface && !grow(with_surface(*job, files, context))) return std::nullopt;
    find_surface(config_, *job, context);
    return detection_outputs(model_, config_, files, c.image, job, context.threads);
  }

  const pbt::Model& model_;
  const DetectConfig& config_;
  const BatchRequest& request_;
  const Device& device_;
  std::vector<DetectionMemory> memory_;  // of each case, once it is known
};

/// Throws UsageError if a format cannot be written.
void check_formats(const BatchRequest& request) {
  for (const Case& c : request.cases) check_files(files_of(request, c));
}

}  // namespace

DetectionFiles files_of(const BatchRequest& request, const Case& c) {
  return files_of_case(request.folder, c.id, request.products, request.image_ending,
                       request.mesh_ending);
}

cases::CaseRun run_of(const BatchRequest& request, const CaseWriter& writer) {
  cases::CaseFolder folder{request.folder, writer,
                           [&request](const Case& c) { return files_of(request, c).names(); }};
  folder.figures = {{"voxels", /*is_count=*/true}, {"volume_ml"}};
  folder.carried = request.carried;
  folder.rejection = "nothing was detected";
  return {request.cases, request.memory_bytes, folder};
}

void check_batch(const BatchRequest& request, const CaseWriter& writer) {
  cases::check_cases(run_of(request, writer));
  check_formats(request);
}

Outputs detect_batch(const pbt::Model& model, const DetectConfig& config,
                     const BatchRequest& request, const CaseWriter& writer,
                     const Context& context) {
  check_formats(request);
  BatchSteps batch(model, config, request, context.device);
  return cases::run_cases(run_of(request, writer), batch.steps(), context);
}

}  // namespace larch::pipeline
