// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/consistency.h"

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const ConsistencyJob&, const Context&)> kReplaceInconsistent{
    "dsa::replace_inconsistent", cpu::replace_inconsistent,
    LARCH_CUDA_FN(cuda::replace_inconsistent)};
constexpr Dispatch<void(const VectorsJob&, const Context&)> kFieldVectors{
    "dsa::field_vectors", cpu::field_vectors, LARCH_CUDA_FN(cuda::field_vectors)};

}  // namespace

void replace_inconsistent(Buffer<BlockMatch>& matches, const BlockGrid& grid, int64_t frames,
                          const DsaConfig& config, const Context& context) {
  if (static_cast<int64_t>(matches.size()) != frames * grid.blocks()) {
    throw UsageError("the number of matches is not that of the blocks of all frames");
  }
  const FieldGrid places = make_field_grid(grid, context.device);
  Buffer<int32_t> known_since(context.device, matches.size());
  ConsistencyJob job;
  for (int axis = 0; axis < 3; ++axis) job.axes[axis] = places.axes[axis];
  job.matches = matches.data();
  job.frames = frames;
  job.tolerates = config.outlier_tolerance;
  job.drops_unreliable = config.outlier_unreliable;
  job.known_since = known_since.data();
  kReplaceInconsistent(context.device, job, context);
}

Buffer<Vec3i> field_vectors(const Buffer<BlockMatch>& matches, const Context& context) {
  Buffer<Vec3i> vectors(context.device, matches.size());
  const VectorsJob job{matches.data(), static_cast<int64_t>(matches.size()), vectors.data()};
  kFieldVectors(context.device, job, context);
  return vectors;
}

}  // namespace larch::dsa
