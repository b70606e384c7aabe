// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/angiography_batch.h"

#include <algorithm>
#include <filesystem>
#include <memory>
#include <optional>

#include "larch/cases/plan_cases.h"
#include "larch/core/error.h"
#include "larch/dsa/sequence.h"
#include "larch/files/file.h"
#include "larch/pipeline/angiography/outputs/native_output.h"
#include "larch/pipeline/survey.h"

namespace larch::pipeline {
namespace {

/// Bytes per pixel of the difference, a vector of the field and the validity.
constexpr int64_t kDifference = 2, kField = 8, kValidity = 1;

/// What a sequence takes; its pixels are not read.
struct SequenceLook {
  Grid grid{};
  int64_t frames = 0, subtracted = 0;
  std::string mask;
  BatchPlan batches{};
};

SequenceLook look_at(const SequenceRequest& request, const dsa::DsaConfig& config,
                     const Context& context) {
  AngiographyInput input = request.input;
  const bool is_auto = input.mask_frames.empty() && input.mask == MaskChoice::kAuto;
  if (is_auto) input.mask = MaskChoice::kFirst;  // the frames are not read now
  OpenAngiogram open = open_angiogram(input, config, context);
  const Angiogram& about = open.reader.about();
  SequenceLook look;
  look.grid = about.grid;
  look.frames = about.frames;
  look.subtracted = static_cast<int64_t>(open.plan.frames().size());
  look.mask = is_auto ? "auto" : open.plan.source;
  check_angiography_files_hold(request.files, about.grid, look.subtracted);
  check_native(about, request.files.native);
  require_masks_fit(request, open.plan, about.grid);
  look.batches = plan_batches(request, config, about.grid.size, look.subtracted, context);
  return look;
}

void add_to_plan(const SequenceRequest& request, const SequenceLook& look, Plan& plan) {
  const int64_t pixels = look.grid.voxels() * look.subtracted;
  const auto add = [&](const std::string& path, int64_t bytes) {
    if (!path.empty()) plan.files.push_back({path, pixels * bytes, path.ends_with(".gz")});
  };
  add(request.files.difference, kDifference);
  add(request.files.field, kField);
  add(request.files.validity, kValidity);
  if (!request.files.native.empty()) {
    plan.files.push_back({request.files.native, 2 * look.grid.voxels() * look.frames, false});
  }
  plan.memory_bytes = std::max(plan.memory_bytes, look.batches.bytes);
}

std::vector<std::string> row_of(const std::string& id, const SequenceLook& look,
                                const std::string& image) {
  return {id,
          std::to_string(look.grid.size.x) + "x" + std::to_string(look.grid.size.y),
          std::to_string(look.frames),
          std::to_string(look.subtracted),
          look.mask,
          image};
}

const std::vector<std::string> kPlanColumns{"id",         "pixels", "frames",
                                            "subtracted", "mask",   "image"};

/// Warnings of headers are those of the run itself.
Context silent(const Context& context) {
  Context quiet = context;
  quiet.log_sink = nullptr;
  return quiet;
}

}  // namespace

SequenceRequest AngiographyBatch::request_of(const Case& c) const {
  SequenceRequest request = each;
  request.input.path = c.image;
  request.files =
      angiography_files_of_case(images.folder, c.id, images.products, images.image_ending);
  return request;
}

cases::CaseRun AngiographyBatch::run(const CaseWriter& writer) const {
  cases::CaseFolder folder{images.folder, writer,
                           [this](const Case& c) { return request_of(c).files.names(); }};
  folder.figures = {{"frames", /*is_count=*/true},
                    {"unreliable", /*is_count=*/true},
                    {"edge_hits", /*is_count=*/true},
                    {"rms_uncorrected"},
                    {"rms_shift"},
                    {"rms_corrected"}};
  folder.carried = images.carried;
  return {images.cases, images.memory_bytes, folder};
}

void check_batch(const AngiographyBatch& batch, const CaseWriter& writer) {
  cases::check_cases(batch.run(writer));
  for (const Case& c : batch.images.cases) {
    check_angiography_files(batch.request_of(c).files, /*is_volume=*/false);
  }
}

Outputs subtract_batch(const AngiographyBatch& batch, const dsa::DsaConfig& config,
                       const CaseWriter& writer, const Context& context) {
  check_batch(batch, writer);
  const std::vector<Case>& all = batch.images.cases;
  cases::CaseSteps<std::optional<Outputs>> steps;
  steps.bytes = [&](size_t i) {
    cases::MemoryNeed need;
    need.computing = look_at(batch.request_of(all[i]), config, silent(context)).batches.bytes;
    need.least = need.computing;
    return need;
  };
  // Frames are read while others are computed: all of it belongs to one step.
  steps.read = [](size_t, const Context&) { return std::optional<Outputs>(); };
  steps.compute = [&](size_t i, std::optional<Outputs>& outputs, const Context& step) {
    outputs = subtract_sequence(batch.request_of(all[i]), config, step);
  };
  steps.finish = [](size_t, const std::shared_ptr<std::optional<Outputs>>& outputs,
                    const cases::Grow&, const Context&) { return std::move(*outputs); };
  return cases::run_cases(batch.run(writer), steps, context);
}

Plan plan_angiography_batch(const AngiographyBatch& batch, const dsa::DsaConfig& config,
                            const CaseWriter& writer, const Context& context) {
  check_batch(batch, writer);
  std::vector<std::vector<std::string>> table{kPlanColumns};
  const auto look = [&](size_t i, Plan& plan) {
    const Case& c = batch.images.cases[i];
    const SequenceRequest request = batch.request_of(c);
    const SequenceLook found = look_at(request, config, context);
    table.push_back(row_of(c.id, found, c.image));
    add_to_plan(request, found, plan);
  };
  Plan plan = cases::plan_cases(batch.run(writer), look, context);
  plan.table = table;
  return plan;
}

Plan plan_sequence(const SequenceRequest& request, const dsa::DsaConfig& config,
                   const Context& context) {
  const SequenceLook found = look_at(request, config, context);
  Plan plan;
  const std::string name = std::filesystem::path(request.input.path).filename().string();
  plan.table = {kPlanColumns, row_of(name, found, request.input.path)};
  add_to_plan(request, found, plan);
  return plan;
}

}  // namespace larch::pipeline
