// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/detection_plan.h"

#include <algorithm>
#include <filesystem>

#include "larch/cases/memory.h"
#include "larch/cases/plan_cases.h"
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

}  // namespace

Plan plan_batch(const pbt::Model& model, const DetectConfig& config, const BatchRequest& request,
                const CaseWriter& writer, const Context& context) {
  pbt::check_config(config.evaluate);
  check_batch(request, writer);
  SurveyRequest headers;
  headers.read = request.read;
  const std::vector<SurveyedCase> surveyed = survey(request.cases, headers, context);
  const auto look = [&](size_t i, Plan& plan) {
    const SurveyedCase& s = surveyed[i];
    if (!s.problem.empty()) throw Error(s.code, s.problem);
    add_case(model, config, files_of(request, request.cases[i]), s.image, false,
             request.memory_bytes, /*is_of_batch=*/true, context, plan);
  };
  Plan plan = cases::plan_cases(run_of(request, writer), look, context);
  plan.table = {{"id", "voxels", "spacing_mm", "image"}};
  for (size_t i = 0; i < surveyed.size(); ++i) {
    const Case& c = request.cases[i];
    const Grid& grid = surveyed[i].image.grid;
    plan.table.push_back({c.id, size_cell(grid), spacing_cell(grid), c.image});
  }
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
