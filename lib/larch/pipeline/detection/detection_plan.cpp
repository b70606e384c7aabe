// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/detection_plan.h"

#include <algorithm>
#include <filesystem>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/image/preprocess.h"
#include "larch/pbt/evaluate/slabs.h"
#include "larch/pipeline/detection/detection_memory.h"
#include "larch/pipeline/survey.h"

namespace larch::pipeline {
namespace {

/// Checks one image of which the grid is known, and adds its files and its need of memory.
void add_case(const pbt::Model& model, const DetectConfig& config, const DetectionFiles& files,
              const ImageInfo& image, bool roi, int64_t memory_bytes, bool is_of_batch,
              const Context& context, Plan& plan) {
  check_files_hold(files, image.grid);
  check_structure(config, files.wanted(), image.grid);
  const DetectionMemory memory =
      detection_memory(model, config, files.wanted(), image, memory_bytes, context.device);
  if (is_of_batch) {
    // Of a list --memory is the share of a whole case, not that of the evaluation alone.
    cases::require_least(memory.need, memory_bytes);
    memory_bytes = memory.evaluation;
  }
  pbt::SlabProblem problem{image::model_grid(image.grid, model.space).size};
  problem.roi = roi;
  problem.on_gpu = context.device.is_cuda();
  problem.memory_bytes =
      memory_bytes > 0 ? memory_bytes : pbt::default_memory_bytes(context.device);
  pbt::plan_slabs(model, problem);
  plan.memory_bytes = std::max(plan.memory_bytes, memory.need.most());
  const int64_t voxels = image.grid.voxels();
  const auto add = [&](const std::string& path, int64_t bytes) {
    if (!path.empty()) plan.files.push_back({path, bytes, file_extension(path) != ".nii"});
  };
  add(files.labels, voxels * (model.info.class_value > 255 ? 2 : 1));
  add(files.probability, voxels * static_cast<int64_t>(pbt::bytes_of(config.probability_type)));
}

/// Whether nothing would be computed for a case, because an earlier run did it. Throws if that is
/// why the case would fail.
bool is_over(const cases::CaseRun& run, const Case& c, SurveyedCase& surveyed) {
  const EarlierOutputs earlier = cases::earlier_of(run, c);
  if (earlier.state == EarlierOutputs::State::kOther) throw OutputError(earlier.what);
  if (earlier.state != EarlierOutputs::State::kSkip) return false;
  surveyed.problem.clear();  // the image is not read
  if (earlier.is_rejected) throw Error(ExitCode::kRejected, earlier.reason + " by an earlier run");
  return true;
}

/// Of a batch with problems: the other cases would be done.
ExitCode code_of(const std::vector<SurveyedCase>& surveyed) {
  const bool lack_memory = std::all_of(surveyed.begin(), surveyed.end(), [](const SurveyedCase& s) {
    return s.problem.empty() || s.code == ExitCode::kMemory;
  });
  return lack_memory ? ExitCode::kMemory : ExitCode::kRejected;
}

}  // namespace

Plan plan_batch(const pbt::Model& model, const DetectConfig& config, const BatchRequest& request,
                const CaseWriter& writer, const Context& context) {
  pbt::check_config(config.evaluate);
  check_batch(request, writer);
  const cases::CaseRun run = run_of(request, writer);
  SurveyRequest headers;
  headers.read = request.read;
  std::vector<SurveyedCase> surveyed = survey(request.cases, headers, context);
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm", "image"}};
  for (size_t i = 0; i < request.cases.size(); ++i) {
    const Case& c = request.cases[i];
    SurveyedCase& s = surveyed[i];
    plan.table.push_back({c.id, size_cell(s.image.grid), spacing_cell(s.image.grid), c.image});
    try {
      if (is_over(run, c, s) || !s.problem.empty()) continue;
      add_case(model, config, files_of(request, c), s.image, false, request.memory_bytes,
               /*is_of_batch=*/true, context, plan);
    } catch (const Error& error) {
      s.problem = error.what();
      s.code = error.code();
    }
  }
  add_problems(request.cases, surveyed, plan);
  if (!plan.problems.empty()) plan.code = code_of(surveyed);
  plan.notes.push_back(std::to_string(request.cases.size()) +
                       " cases; memory is that of the largest by itself");
  return plan;
}

Plan plan_detection(const pbt::Model& model, const DetectConfig& config,
                    const DetectionRequest& request, const Context& context) {
  pbt::check_config(config.evaluate);
  SurveyRequest headers;
  headers.read = request.read;
  // The region of interest has to be on the grid of the image, as a label map has.
  headers.labels = !request.roi.empty();
  const std::string name = std::filesystem::path(request.image).filename().string();
  const std::vector<Case> one{{name, request.image, request.roi}};
  const SurveyedCase s = survey(one, headers, context).front();
  if (!s.problem.empty()) throw Error(s.code, s.problem);
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm", "image"},
                {name, size_cell(s.image.grid), spacing_cell(s.image.grid), request.image}};
  add_case(model, config, request.files, s.image, !request.roi.empty(), request.memory_bytes,
           /*is_of_batch=*/false, context, plan);
  return plan;
}

}  // namespace larch::pipeline
