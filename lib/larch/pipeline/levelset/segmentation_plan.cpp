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
#include "larch/pipeline/survey.h"

namespace larch::pipeline {
namespace {

const std::vector<std::string> kColumns{"id", "voxels", "spacing_mm", "image"};

struct Looked {
  std::vector<std::string> row{};  ///< of the table
  std::vector<int32_t> labels{};
};

/// Checks one image, and adds its files and its need of memory.
Looked look_at(const std::string& id, const SegmentationRequest& request,
               const levelset::LevelsetConfig& config, const Context& context, Plan& plan) {
  const ImageInfo info = probe_image(request.image, request.read);
  check_files_hold(request.files, info.grid);
  check_on_grid(request.seeds, config, request.image, info.grid, request.read);
  ReadOptions quiet = request.read;
  quiet.warn = nullptr;  // the headers' warnings were given
  const std::vector<int32_t> labels = find_labels(request.seeds, quiet);
  const SegmentationMemory memory = segmentation_memory(
      info, request, config, static_cast<int64_t>(labels.size()), context.device.is_cuda());
  require_memory(memory, info.grid, context.device);
  plan.memory_bytes = std::max(plan.memory_bytes, memory.host.most());
  const auto add = [&](const std::string& path, int64_t bytes) {
    if (path.empty()) return;
    plan.files.push_back({path, bytes * info.grid.voxels(), file_extension(path) != ".nii"});
  };
  add(request.files.labels, labels.empty() || labels.back() < 256 ? 1 : 2);
  for (const std::string& path : {request.files.level_set, request.files.distance}) {
    add(path, 4);
    if (!request.files.by_label || path.empty()) continue;
    for (const int32_t label : labels) add(name_of_label(path, label), 4);
  }
  return {{id, size_cell(info.grid), spacing_cell(info.grid), request.image}, labels};
}

}  // namespace

Plan plan_segmentation(const SegmentationRequest& request, const levelset::LevelsetConfig& config,
                       const CaseWriter& writer, const Context& context) {
  Plan plan;
  const std::string name = std::filesystem::path(request.image).filename().string();
  const Looked looked = look_at(name, request, config, context, plan);
  require_label_files_free(request, looked.labels, {}, writer);
  plan.table = {kColumns, looked.row};
  return plan;
}

Plan plan_segmentation_batch(const SegmentationBatch& batch, const levelset::LevelsetConfig& config,
                             const CaseWriter& writer, const Context& context) {
  check_batch(batch, writer);
  const cases::CaseRun run = batch.run(writer);
  std::vector<std::vector<std::string>> table{kColumns};
  const auto look = [&](size_t i, Plan& plan) {
    const Case& c = batch.images.cases[i];
    Plan own;
    const SegmentationRequest request = batch.request_of(c);
    const Looked looked = look_at(c.id, request, config, context, own);
    require_label_files_free(request, looked.labels, run.folder->inputs(c), writer);
    table.push_back(looked.row);
    cases::MemoryNeed need;
    need.least = own.memory_bytes;
    cases::require_least(need, batch.images.memory_bytes);
    plan.memory_bytes = std::max(plan.memory_bytes, own.memory_bytes);
    plan.files.insert(plan.files.end(), own.files.begin(), own.files.end());
  };
  Plan plan = cases::plan_cases(run, look, context);
  plan.table = table;
  plan.notes.push_back(std::to_string(batch.images.cases.size()) +
                       " cases; memory is that of the largest by itself");
  return plan;
}

}  // namespace larch::pipeline
