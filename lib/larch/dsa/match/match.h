// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/samples.h"
#include "larch/dsa/similarity/difference_math.h"

// Histogram block matching: US 2008/0037845, 0055 to 0063 and claim 1.
namespace larch::dsa {

/// Pixels or voxels that a block has at most: scores of blocks count in 16 bits.
constexpr int64_t kMaximumBlockPixels = 65535;

/// Flags of a block.
enum BlockFlag : uint32_t {
  kBlockOutside = 1,     ///< less than a quarter of it lies in the region of interest: not searched
  kBlockUnreliable = 2,  ///< it shows its motion in no direction
  kBlockAtEdge = 4,      ///< of the window: the motion may be larger than the range
  kBlockReplaced = 8,    ///< its vector is that of its neighbours
  kBlockOfFrame = 16,    ///< its frame is corrected by its shift alone, or by nothing
};

/// Curvature of -ln U at a displacement, with U its EHD; of entropies: of the entropy. Second
/// derivatives, Q20 per square pixel, of the least-squares quadratic through the 5 x 5 (x 5)
/// whole-pixel displacements of the window nearest to it; those that cannot be compared count as
/// equal. 0 for windows of less than two pixels to each side.
struct Bend {
  int32_t xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
};
constexpr int kBendBits = 20, kBendReach = 2;

/// Holds what was found for a block. Lies on devices as it is: no byte of it is padding.
struct BlockMatch {
  Vec3i vector{};         ///< Q16 pixels
  Vec3i found{};          ///< the same before inconsistent vectors are replaced
  Score before{};         ///< at the middle of the window
  Score best{};           ///< at `found`, to the nearest 1/kUnit pixel
  Bend bend{};            ///< around the best whole-pixel displacement, by a full search
  uint32_t counted = 0;   ///< pixels of the block that count at all
  uint32_t overflow = 0;  ///< pixels beyond the bins at `found`
  uint32_t flags = 0;     ///< of BlockFlag
  uint32_t unused = 0;
  float least_deviation_px = 0;  ///< standard deviation of `found` in the direction that shows it
  float most_deviation_px = 0;   ///< most, and least, by solve_motion; infinite: it does not show
};

/// Vectors of an earlier pass, which a pass refines.
struct BaseField {
  const BlockGrid* grid = nullptr;
  const Vec3i* vectors = nullptr;  ///< by frame and block of that grid, Q16, on the device
};

/// Holds what matching of a batch of frames takes. Pointers to samples and vectors are of one
/// device.
///
/// Without a base field, a displacement of whole pixels reads `mask_at_zero`, any other the taps of
/// gain_taps() over `mask`, first along x, then along y (then z), each rounded to a sample. With a
/// base field, every pixel reads the taps over `mask` at base + displacement, which is in units of
/// 1/kUnit pixel. A sample is missing where a tap is, and beyond the image. The literal method has
/// its own rules: literal.h.
struct MatchJob {
  const DsaConfig* config = nullptr;
  const BlockGrid* grid = nullptr;
  int range = 10;                          ///< of this pass
  const uint16_t* mask = nullptr;          ///< unfiltered; sampled between pixels from here
  const uint16_t* mask_at_zero = nullptr;  ///< by filter_at_zero
  const uint16_t* contrast = nullptr;      ///< frame after frame, by filter_at_zero
  int64_t frames = 0;
  const int32_t* bin_shift = nullptr;  ///< per frame: a bin is 2^shift steps of a sample wide
  const Vec3i* centre = nullptr;       ///< per frame: middle of the window, pixels; null: zero
  BaseField base{};                    ///< a displacement adds to it; CUDA: of a pixel_grid
  BlockMatch* out = nullptr;           ///< per frame and block
};

/// Finds the displacement of every block of every frame; blocks have at most kMaximumBlockPixels.
/// Frames that are volumes are searched along x, y and z, fractions by conjugate directions, and on
/// the CPU alone.
void match_blocks(const MatchJob& job, const Context& context);

/// Returns the bin width of each frame as a shift: the largest power of two that is at most one
/// grey value (one step of a sample for linear values of up to 8 bits) or a quarter of 1.4826 MAD
/// of (contrast
/// - mask) over the frame at `centre`, whichever is larger; in the literal method one grey value.
/// `centre` as in MatchJob. On the device of the frames.
Buffer<int32_t> bin_shifts(const SampleFrames& contrast, const uint16_t* mask_at_zero,
                           const Vec3i* centre, const SampleTable& table, const DsaConfig& config,
                           const Context& context);

/// bin_shifts where the frames decide; pointers are of one device.
struct BinShiftJob {
  const uint16_t* mask_at_zero = nullptr;
  const uint16_t* contrast = nullptr;
  Vec3i size{};  ///< of a picture on CUDA
  int64_t frames = 0;
  const Vec3i* centre = nullptr;
  int32_t least_shift = 2;
  int32_t* shifts = nullptr;  ///< per frame, bin_shift_of the lower medians
};

namespace cuda {
void match_blocks(const MatchJob& job, const Context& context);
void bin_shifts(const BinShiftJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::dsa
