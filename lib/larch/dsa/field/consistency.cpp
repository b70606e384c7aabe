// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/consistency.h"

#include <cmath>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const ConsistencyJob&, const Context&)> kReplaceInconsistent{
    "dsa::replace_inconsistent", cpu::replace_inconsistent,
    LARCH_CUDA_FN(cuda::replace_inconsistent)};
constexpr Dispatch<void(const VectorsJob&, const Context&)> kFieldVectors{
    "dsa::field_vectors", cpu::field_vectors, LARCH_CUDA_FN(cuda::field_vectors)};

void check_count(const Buffer<BlockMatch>& matches, const BlockGrid& grid, int64_t frames) {
  if (static_cast<int64_t>(matches.size()) != frames * grid.blocks()) {
    throw UsageError("the number of matches is not that of the blocks of all frames");
  }
}

/// Q12 weights of a Gaussian by distance, up to three standard deviations.
std::vector<int32_t> gaussian_weights(double sigma) {
  std::vector<int32_t> weights;
  const int reach = static_cast<int>(std::ceil(3 * sigma));
  for (int i = 0; i <= reach; ++i) {
    weights.push_back(
        static_cast<int32_t>(std::floor(4096 * std::exp(-0.5 * i * i / (sigma * sigma)) + 0.5)));
  }
  return weights;
}

}  // namespace

void replace_inconsistent(Buffer<BlockMatch>& matches, const BlockGrid& grid, int64_t frames,
                          const DsaConfig& config, const Context& context) {
  check_count(matches, grid, frames);
  const FieldGrid places = make_field_grid(grid, context.device);
  Buffer<int32_t> known_since(context.device, matches.size());
  ConsistencyJob job;
  for (int axis = 0; axis < 3; ++axis) job.axes[axis] = places.axes[axis];
  job.matches = matches.data();
  job.frames = frames;
  job.rule = config.outlier;
  job.iterations = config.outlier_iterations;
  job.tolerates = config.outlier_tolerance;
  job.drops_unreliable = config.outlier_unreliable;
  job.known_since = known_since.data();
  kReplaceInconsistent(context.device, job, context);
}

Buffer<Vec3i> field_vectors(const Buffer<BlockMatch>& matches, const BlockGrid& grid,
                            int64_t frames, const DsaConfig& config, const Context& context) {
  check_count(matches, grid, frames);
  Buffer<Vec3i> vectors(context.device, matches.size());
  std::vector<int32_t> weights;
  if (config.smooth_field > 0) weights = gaussian_weights(config.smooth_field);
  const Buffer<int32_t> on_device(context.device, weights);
  VectorsJob job;
  for (int axis = 0; axis < 3; ++axis) job.count[axis] = grid.count[axis];
  job.matches = matches.data();
  job.frames = frames;
  job.weights = on_device.data();
  job.reach = weights.empty() ? 0 : static_cast<int32_t>(weights.size()) - 1;
  job.vectors = vectors.data();
  kFieldVectors(context.device, job, context);
  return vectors;
}

}  // namespace larch::dsa
