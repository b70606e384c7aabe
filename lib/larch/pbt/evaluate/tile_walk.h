// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/pbt/evaluate/evaluate.h"

namespace larch::pbt::cpu {

/// The voxels of a tile visit a node together, left subtree first; a subtree that no voxel of the
/// tile reaches is skipped.
void tile_walk(const EvaluateJob& job, const Context& context);

/// Writes the posterior of voxel `i` in the type of the job.
inline void store_probability(const EvaluateJob& job, int64_t i, uint64_t q60) {
  switch (job.type) {
    case ProbabilityType::kFloat32:
      static_cast<float*>(job.host_out)[i] = tree::probability_float(q60);
      break;
    case ProbabilityType::kUint16:
      static_cast<uint16_t*>(job.host_out)[i] = tree::probability_uint16(q60);
      break;
    case ProbabilityType::kUint8:
      static_cast<uint8_t*>(job.host_out)[i] = tree::probability_uint8(q60);
      break;
  }
}

}  // namespace larch::pbt::cpu
