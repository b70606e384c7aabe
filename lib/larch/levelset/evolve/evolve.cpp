// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/evolve.h"

#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::levelset {
namespace {

using Evolve = void(EvolveJob& job, int64_t steps, const Context& context);
constexpr Dispatch<Evolve> kBuffers{"levelset::evolve_buffers", cpu::evolve_buffers,
                                    LARCH_CUDA_FN(cuda::evolve_buffers)};
constexpr Dispatch<Evolve> kBricks{"levelset::evolve_bricks", cpu::evolve_bricks,
                                   LARCH_CUDA_FN(cuda::evolve_bricks)};

}  // namespace

void check_voxels_fit(const BrickLayout& layout) {
  if (layout.stored_voxels() < int64_t{kNoVoxel}) return;
  throw UsageError("levelset.tracker buffers: an image of " +
                   std::to_string(layout.stored_voxels()) +
                   " voxels, and lists can have 4294967294; take levelset.tracker brick");
}

void stop_before_steps(EvolveJob& job, bool is_empty) {
  if (is_empty) {
    job.progress.stop = Stop::kAtRest;
  } else if (job.progress.iterations >= job.stops.max_iterations) {
    job.progress.stop = Stop::kIterations;
  }
}

void evolve(EvolveJob& job, int64_t steps, const Context& context) {
  if (job.progress.stop != Stop::kNone) return;
  const size_t fields = job.fields.size();
  job.inside.resize(fields);
  job.active.resize(fields);
  job.history.resize(fields);
  if (!job.is_active_known) {
    for (std::vector<uint32_t>& items : job.active) items.clear();
  }
  const auto& tracker = job.tracker == Tracker::kBrick ? kBricks : kBuffers;
  tracker(context.device, job, steps, context);
  job.is_active_known = job.progress.stop == Stop::kNone;
  if (!job.is_active_known) job.active.assign(fields, {});
}

}  // namespace larch::levelset
