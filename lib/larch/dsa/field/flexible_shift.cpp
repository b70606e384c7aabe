// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/flexible_shift.h"

#include <algorithm>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/dsa/similarity/entropy.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const FlexibleJob&, const uint64_t*, const Context&)> kFlexibleShift{
    "dsa::flexible_shift", cpu::flexible_shift, LARCH_CUDA_FN(cuda::flexible_shift)};

/// Blocks, and so pitches, are at most so many pixels.
constexpr int64_t kMostPitch = 255;

}  // namespace

BlockGrid make_node_grid(const Vec3i& size, int32_t pitch) {
  return make_block_grid(size, {1, 1, 1}, {pitch, pitch, pitch});
}

void flexible_shift(const FlexibleJob& job, const Context& context) {
  const Vec3i& size = job.nodes->image;
  if (size.z > 1) {
    throw UsageError("flexible pixel shift is for pictures; use --method block for volumes");
  }
  Buffer<uint64_t> terms;
  if (job.config->metric == Metric::kEntropy) {
    const int64_t most =
        std::min(static_cast<int64_t>(size.x) * size.y, 4 * kMostPitch * kMostPitch);
    const auto on_host = entropy_terms(static_cast<uint32_t>(most));
    terms = Buffer<uint64_t>(context.device, std::span<const uint64_t>(on_host));
  }
  kFlexibleShift(context.device, job, terms.data(), context);
}

}  // namespace larch::dsa
