// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/core/host_device.h"
#include "larch/data/volume.h"

namespace larch::pbt {

/// A voxel and its probability.
struct Candidate {
  int64_t voxel = 0;  ///< linear index
  float probability = 0;
};

/// Whether `a` comes before `b` in a list of candidates: by descending probability, then ascending
/// index.
LARCH_HD bool comes_before(const Candidate& a, const Candidate& b) {
  return a.probability != b.probability ? a.probability > b.probability : a.voxel < b.voxel;
}

/// The `count` best candidates of a volume, in order; all of its voxels if it has no more. Takes
/// time linear in the voxels and memory for 2 `count` candidates.
std::vector<Candidate> top_candidates(const Volume<float>& probability, int64_t count);

/// The same for probabilities that are on context.device, as evaluate_resident leaves them, at
/// their place: on a CUDA device the candidates alone are read back. Throws UsageError if the
/// probabilities are elsewhere, and on a CUDA device for 2^32 voxels and more (2^31 if it was
/// built with a CUDA toolkit before 13).
std::vector<Candidate> top_candidates(const Buffer<float>& probability, int64_t count,
                                      const Context& context);

/// What one implementation receives.
struct CandidatesJob {
  const float* probability = nullptr;  ///< on the device of the implementation
  int64_t voxels = 0;
  int64_t count = 0;  ///< from 1 to voxels
};
namespace cpu {
std::vector<Candidate> top_candidates(const CandidatesJob& job, const Context& context);
}
namespace cuda {
std::vector<Candidate> top_candidates(const CandidatesJob& job, const Context& context);
}

}  // namespace larch::pbt
