// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/dsa/sequence.h"

namespace larch::dsa {

/// A batch of frames as they are compared and subtracted, on the context's device.
struct SampledFrames {
  SampleFrames values{};
  SampleFrames samples{};
  SampleFrames at_zero{};       ///< by filter_at_zero
  std::vector<Vec3i> shifts{};  ///< the rigid translation of each frame, Q16
};

/// Block matching in all passes of the configuration, and flexible pixel shift from its result for
/// Method::kFlex. The vectors of each pass are solved for together (motion_solve.h), or judged by
/// their neighbours in the literal method. The next pass refines the dense field by up to 4 pixels,
/// always over the original mask. A frame of whose differences more than 5 % are beyond the bins is
/// matched again with bins of twice the width, up to three times, but not in the literal method.
/// Returns the matches of blocks, or of nodes, by frame and block of last_grid; fills
/// FrameFigures::bin_shift and edge_hits of each frame.
std::vector<BlockMatch> register_frames(const SequenceMask& mask, const SampledFrames& frames,
                                        const DsaConfig& config, std::span<FrameFigures> figures,
                                        const Context& context);

/// Returns the vectors of matches, Q16, in their order.
std::vector<Vec3i> vectors_of(std::span<const BlockMatch> matches);

/// Tells whether the dense field of frames of this size is a spline. Rigid shifts have one vector
/// for all pixels.
bool takes_spline(const DsaConfig& config, const Vec3i& size);

/// Holds the vectors between which the dense field of frames is interpolated, on a device: those of
/// blocks, or those of a spline at every pixel.
struct DenseVectors {
  BlockGrid grid{};
  Buffer<Vec3i> vectors{};  ///< by frame and block of the grid, Q16
};
/// `vectors`: by frame and block of `grid`, on the host.
DenseVectors dense_vectors(const BlockGrid& grid, std::span<const Vec3i> vectors,
                           const DsaConfig& config, const Context& context);

/// Returns the grid of a pass over an image.
BlockGrid grid_of_pass(const Pass& pass, const Vec3i& size);

}  // namespace larch::dsa
