// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/experts/atlases_math.h"
#include "larch/experts/experts.h"

namespace larch::experts {

/// Cuts an atlas out of a case: what is around its structures, whose frame has the signs of the
/// axes of `experts`. It is empty if the case has no structure. `image` is in model space and
/// `part` the structure of each voxel, or below 0; `steps`: the integer that the high end of
/// intensities maps to.
Atlas make_atlas(const Experts& experts, const Volume<int16_t>& image, const Volume<int8_t>& part,
                 int steps, const Context& context);

/// Registers the atlases of `experts` to an image, lets them vote by the likeness of patches, and
/// joins their votes with what experts have `said`, a probability of each part. Nothing changes
/// where those have no frame. `left_out` tells for each atlas that it may not vote; empty: all may.
/// Throws MemoryError, and Stopped.
void ask_atlases(const Experts& experts, const Resident& resident, const Volume<int16_t>& image,
                 int steps, const std::vector<bool>& left_out, int64_t memory_bytes,
                 std::vector<Volume<float>>& said, const Context& context);

constexpr const char* kStopped = "stopped while atlases voted";
namespace cpu {
void fuse(const FuseJob& job, const Context& context);
}  // namespace cpu
namespace cuda {
void fuse(const FuseJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::experts
