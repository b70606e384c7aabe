// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/samples.h"

namespace larch::dsa {

/// Says what a subtracted pixel is made of. Of those that hold, the highest number.
enum class Validity : uint8_t {
  kValid = 0,
  kBeyondMask = 1,  ///< the mask was read beyond its edge: the pixel of the edge was taken
  kSaturated = 2,  ///< in the contrast frame, or at the nearest pixel of the mask, or covered there
  kOutside = 3,    ///< of the region of interest
};
constexpr int kValidities = 4;

/// Holds what was counted while a frame was subtracted.
struct SubtractFigures {
  int32_t mode = 0;      ///< what was taken from the differences, in 1/16 of a sample's step
  uint32_t clipped = 0;  ///< pixels whose difference does not fit into 16 bits
  uint32_t pixels[kValidities] = {};  ///< by Validity
};

/// A sample's step has so many parts in a difference.
constexpr int kDifferenceBits = 4;
/// Weights of the taps that the output is sampled with.
constexpr int kWarpBits = 14;
/// Taps along an axis for the pixels at -1, 0, 1 and 2 from the whole part of a place.
struct WarpTaps {
  int16_t w[4] = {0, 1 << kWarpBits, 0, 0};
};
/// By fraction, in units of 1/kUnit pixel from 0 on.
struct WarpTable {
  WarpTaps at[kUnit];
};
/// Catmull-Rom (a = -1/2), or linear in the literal method; sums are exactly 2^kWarpBits.
WarpTable warp_taps(bool literal);

/// Frames of one size that are subtracted; pointers are of one device.
struct SubtractJob {
  const uint16_t* mask_values = nullptr;       ///< by to_values: every pixel has one
  const uint16_t* mask_samples = nullptr;      ///< kNoSample where it does not count
  const uint16_t* contrast_values = nullptr;   ///< frame after frame
  const uint16_t* contrast_samples = nullptr;  ///< kNoSample where it does not count
  const uint8_t* region = nullptr;             ///< of one frame: pixels that count; null: all
  Vec3i size{};                                ///< of a picture on CUDA
  int64_t frames = 0;
  const Vec3i* vectors = nullptr;  ///< by frame and block, Q16; null: 0 everywhere
  BorderField border = BorderField::kClamp;
  int16_t* out = nullptr;              ///< contrast - warped mask - mode, grey values rounded to
                                       ///< even; vessels as configured
  uint8_t* validity = nullptr;         ///< Validity; may be null
  Vec3f* field_px = nullptr;           ///< the dense field, pixels; may be null
  SubtractFigures* figures = nullptr;  ///< per frame; may be null

  // By subtract().
  FieldAxis axes[3]{};
  const WarpTable* taps = nullptr;
  bool takes_mode = true;
  int32_t sign = 1;                ///< of the output
  int32_t shift = 6;               ///< a grey value is 2^shift differences
  int32_t* differences = nullptr;  ///< by pixel: 1/16 of a sample's step
};

/// The dense field between the vectors of `grid`, the warped mask and the subtracted frames, on the
/// context's device. The mask is sampled from `mask_values` at the field rounded to 1/kUnit pixel,
/// and differences are exact up to one rounding to 1/16 of a sample's step before the mode is taken
/// off.
///
/// The mode of a frame (Normalize::kMode) is that of its differences at valid pixels: the middle of
/// the fullest window of 2 h + 1 steps of a sample, h = 1.4826 MAD / 4 rounded down, refined by a
/// parabola through it and the windows on both sides; the first of equally full ones.
void subtract(SubtractJob job, const BlockGrid& grid, const SampleTable& table,
              const DsaConfig& config, const Context& context);

namespace cuda {
void subtract(const SubtractJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::dsa
