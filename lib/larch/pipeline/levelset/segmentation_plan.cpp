// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_plan.h"

#include <algorithm>
#include <filesystem>
#include <vector>

#include "larch/cases/plan_cases.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/pipeline/levelset/segmentation_memory.h"
#include "larch/pipeline/resume.h"
#include "larch/pipeline/survey.h"

namespace larch::pipeline {
namespace {

const std::vector<std::string> kColumns{"id", "voxels", "spacing_mm", "image"};

/// Checks one image, adds its files and its need of memory, and returns its row of the table.
std::vector<std::string> look_at(const std::string& id, const SegmentationRequest& request,
                                 const levelset::LevelsetConfig& config, const Context& context,
                                 Plan& plan) {
  const ImageInfo info = probe_image(request.image, request.read);
  check_files_hold(request.files, info.grid);
  check_on_grid(request.seeds, config, request.image, info.grid, request.read);
  const SegmentationMemory memory =
      segmentation_memory(info, config, request.files, 1, context.device.is_cuda());
  require_memory(memory, info.grid, context.device);
  plan.memory_bytes = std::max(plan.memory_bytes, memory.host.most());
  const auto add = [&](const std::string& path, int64_t bytes) {
    if (path.empty()) return;
    plan.files.push_back({path, bytes * info.grid.voxels(), file_extension(path) != ".nii"});
  };
  add(request.files.labels, 1);
  add(request.files.level_set, 4);
  add(request.files.distance, 4);
  return {id, size_cell(info.grid), spacing_cell(info.grid), request.image};
}

}  // namespace

void note_resume(const SegmentationRequest& request, const std::string& start,
                 const Context& context, Plan& plan) {
  if (!request.resume || !has_checkpoint_to_resume(request.checkpoint, start, context)) return;
  plan.notes.push_back("would go on from '" + request.checkpoint +
                       "', if it is of these images and settings");
}

Plan plan_segmentation(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const Context& context) {
  Plan plan;
  const std::string name = std::filesystem::path(request.image).filename().string();
  plan.table = {kColumns, look_at(name, request, config, context, plan)};
  note_resume(request, "the seeds", context, plan);
  return plan;
}

Plan plan_segmentation_batch(const SegmentationBatch& batch, const levelset::LevelsetConfig& config,
                             const CaseWriter& writer, const Context& context) {
  check_batch(batch, writer);
  std::vector<std::vector<std::string>> table{kColumns};
  const auto look = [&](size_t i, Plan& plan) {
    const Case& c = batch.images.cases[i];
    Plan own;
    table.push_back(look_at(c.id, batch.request_of(c), config, context, own));
    cases::MemoryNeed need;
    need.least = own.memory_bytes;
    cases::require_least(need, batch.images.memory_bytes);
    plan.memory_bytes = std::max(plan.memory_bytes, own.memory_bytes);
    plan.files.insert(plan.files.end(), own.files.begin(), own.files.end());
  };
  Plan plan = cases::plan_cases(batch.run(writer), look, context);
  plan.table = table;
  plan.notes.push_back(std::to_string(batch.images.cases.size()) +
                       " cases; memory is that of the largest by itself");
  return plan;
}

}  // namespace larch::pipeline
