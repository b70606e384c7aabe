// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/evaluate.h"

#include <algorithm>
#include <string>
#include <type_traits>

#include "larch/core/dispatch.h"

namespace larch::pbt {
namespace {

constexpr Dispatch<void(const EvaluateJob&, const Context&)> kEvaluate{
    "pbt::evaluate", cpu::evaluate, LARCH_CUDA_FN(cuda::evaluate)};

/// The work goes to the stream of the context, which is one of its device.
void check_place(const image::IntegralSet& set, const Context& context) {
  if (set.data.device() == context.device) return;
  throw UsageError("pbt::evaluate: the image is on " + to_string(set.data.device()) +
                   ", the context on " + to_string(context.device));
}

void check_fits(const Model& model, const image::IntegralSet& set, const Grid& grid) {
  if (set.size != grid.size) throw UsageError("pbt::evaluate: image and grid differ in size");
  if (set.layouts.size() != model.channels.size()) {
    throw UsageError("pbt::evaluate: the image has other channels than the model");
  }
  for (const image::IntegralLayout& layout : set.layouts) {
    const Vec3i reach = model.reach_along();
    for (int axis = 0; axis < 3; ++axis) {
      if (layout.pad[axis] >= reach[axis]) continue;
      throw UsageError("pbt::evaluate: the image is padded by " + std::to_string(layout.pad[axis]) +
                       " voxels along axis " + std::to_string(axis) + ", the model reaches " +
                       std::to_string(reach[axis]));
    }
  }
}

/// The offsets of a compiled model's taps hold for the strides, padding and levels that it was
/// compiled for; elsewhere they would read other voxels.
void check_layouts(const CompiledModel& model, const image::IntegralSet& set) {
  const auto text = [](const image::IntegralLayout& layout) {
    return "strides " + std::to_string(layout.linear_offset(0, 1, 0)) + " and " +
           std::to_string(layout.linear_offset(0, 0, 1)) + ", padding " +
           std::to_string(layout.pad.x) + " " + std::to_string(layout.pad.y) + " " +
           std::to_string(layout.pad.z) + ", level " + std::to_string(layout.level);
  };
  if (model.layouts.size() != set.layouts.size()) {
    throw Error(ExitCode::kBug,
                "pbt: the model was compiled for " + std::to_string(model.layouts.size()) +
                    " channels, the image has " + std::to_string(set.layouts.size()));
  }
  for (size_t c = 0; c < set.layouts.size(); ++c) {
    const std::string compiled = text(model.layouts[c]), given = text(set.layouts[c]);
    if (compiled != given) {
      throw Error(ExitCode::kBug, "pbt::evaluate: channel " + std::to_string(c) +
                                      " of the model was compiled for " + compiled +
                                      ", that of the image has " + given +
                                      "; compile the model for this image");
    }
  }
}

/// Checks of what a compiled model is used on.
void check_compiled(const CompiledModel& model, const image::IntegralSet& set,
                    const Context& context) {
  check_place(set, context);
  if (!(model.device == context.device)) {
    throw Error(ExitCode::kBug, "pbt::evaluate: the model was compiled for " +
                                    to_string(model.device) + ", the image is on " +
                                    to_string(context.device));
  }
  check_layouts(model, set);
}

template <class T>
EvaluateJob make_job(const CompiledModel& model, const image::IntegralSet& set) {
  EvaluateJob job;
  job.size = set.size;
  job.layouts = set.layouts;
  job.integral = set.data.data();
  job.plan = model.plan.get();
  job.type = std::is_same_v<T, float>      ? ProbabilityType::kFloat32
             : std::is_same_v<T, uint16_t> ? ProbabilityType::kUint16
                                           : ProbabilityType::kUint8;
  return job;
}

}  // namespace

template <class T>
Volume<T> evaluate(const Model& model, const image::IntegralSet& set, const Grid& grid,
                   const EvaluateConfig& config, const Context& context, const Volume<uint8_t>* roi,
                   int64_t queue_items) {
  check_place(set, context);
  check_fits(model, set, grid);
  double share = 1;
  if (roi != nullptr) {
    const auto wanted = std::count_if(roi->begin(), roi->end(), [](uint8_t v) { return v != 0; });
    share = static_cast<double>(wanted) / static_cast<double>(std::max<int64_t>(1, roi->voxels()));
  }
  const CompiledModel compiled = compile(model, set, config, context, share);
  Volume<T> out(grid);
  EvaluateJob job = make_job<T>(compiled, set);
  for (const auto& entry : enum_names(static_cast<Walk*>(nullptr))) {
    if (entry.value == compiled.walk) {
      context.debug("evaluation by the " + std::string(entry.name) + " walk");
    }
  }
  job.roi = roi != nullptr ? roi->data() : nullptr;
  job.queue_items = queue_items;
  job.host_out = out.data();
  kEvaluate(context.device, job, context);
  return out;
}
template Volume<float> evaluate(const Model&, const image::IntegralSet&, const Grid&,
                                const EvaluateConfig&, const Context&, const Volume<uint8_t>*,
                                int64_t);
template Volume<uint16_t> evaluate(const Model&, const image::IntegralSet&, const Grid&,
                                   const EvaluateConfig&, const Context&, const Volume<uint8_t>*,
                                   int64_t);
template Volume<uint8_t> evaluate(const Model&, const image::IntegralSet&, const Grid&,
                                  const EvaluateConfig&, const Context&, const Volume<uint8_t>*,
                                  int64_t);

template <class T>
void evaluate_resident(const CompiledModel& model, const image::IntegralSet& set, Buffer<T>& out,
                       const Context& context) {
  const Grid grid{set.size, {}, {}, {}};
  check_compiled(model, set, context);
  if (!(out.device() == set.data.device()) || out.size() < static_cast<size_t>(grid.voxels())) {
    throw UsageError("pbt::evaluate_resident: the output is too small or on another device");
  }
  EvaluateJob job = make_job<T>(model, set);
  (set.data.device().is_cuda() ? job.device_out : job.host_out) = out.data();
  kEvaluate(context.device, job, context);
}
template void evaluate_resident(const CompiledModel&, const image::IntegralSet&, Buffer<float>&,
                                const Context&);
template void evaluate_resident(const CompiledModel&, const image::IntegralSet&, Buffer<uint16_t>&,
                                const Context&);
template void evaluate_resident(const CompiledModel&, const image::IntegralSet&, Buffer<uint8_t>&,
                                const Context&);

}  // namespace larch::pbt
