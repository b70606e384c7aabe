// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/dsa/sequence.h"

namespace larch::dsa {

/// A batch of frames as they are compared, on the context's device.
struct ComparedFrames {
  SampleFrames samples{};
  SampleFrames at_zero{};       ///< by filter_at_zero
  std::vector<Vec3i> shifts{};  ///< the rigid translation of each frame, Q16
};

/// Vectors of blocks, or of nodes.
struct Registered {
  Buffer<Vec3i> vectors{};               ///< Q16 by frame and block of last_grid, on the device
  std::vector<BlockMatch> matches{};     ///< the same, on the host
  std::vector<int32_t> bin_shifts{};     ///< per frame
  std::vector<uint8_t> has_wide_bins{};  ///< per frame: 1 if more than planned
  std::vector<int32_t> edge_hits{};      ///< per frame, of the first pass
};

/// Block matching in all passes of the configuration, and flexible pixel shift from its result for
/// Method::kFlex. After each pass inconsistent vectors are replaced; a block of a picture that was
/// filled from its neighbours takes the rigid shift of the frame instead where that makes its
/// differences more alike, unless all of its frame were filled. The next pass refines the dense
/// field by up to 2 pixels, always over the original mask. A frame of whose differences more than
/// 5 % are beyond the bins is matched again with bins of twice the width, up to three times, unless
/// the configuration says how wide bins are.
Registered register_frames(const SequenceMask& mask, const ComparedFrames& frames,
                           const DsaConfig& config, const Context& context);

/// Whether the dense field is a spline. Rigid shifts have one vector for all pixels.
bool takes_spline(const DsaConfig& config);

/// The grid of a pass over an image.
BlockGrid grid_of_pass(const Pass& pass, const Vec3i& size);

}  // namespace larch::dsa
