// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/context.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa {

/// What a subtracted pixel is made of.
enum class Validity : uint8_t {
  kValid = 0,
  kBeyondMask = 1,  ///< the mask was read beyond its edge: the pixel of the edge was taken
  kSaturated = 2,   ///< in the mask or the contrast frame
};

/// Figures of a subtracted frame.
struct FrameFigures {
  int32_t mode = 0;            ///< what was taken from the differences, in 1/16 of a sample's step
  int32_t least_jacobian = 0;  ///< of x + d, Q16; not above 0: the field folds
  int32_t longest = 0;         ///< longest component of d, Q16 pixels
  uint32_t beyond_mask = 0;    ///< pixels
};

/// What subtraction of a batch of frames takes; pointers are of one device.
struct SubtractJob {
  const DsaConfig* config = nullptr;
  const BlockGrid* grid = nullptr;     ///< of the vectors; of one block: one vector for the frame
  const Vec3i* vectors = nullptr;      ///< by frame and block, Q16; null: 0 everywhere
  const uint16_t* mask = nullptr;      ///< samples, saturated ones with their values
  const uint16_t* contrast = nullptr;  ///< samples of the frames, saturated ones with their values
  Vec3i size{};
  int64_t frames = 0;
  int fraction_bits = 2;  ///< of the samples
  bool is_log = false;
  int16_t* difference = nullptr;    ///< contrast - warped mask - mode, grey values rounded to even;
                                    ///< vessels as configured
  uint8_t* validity = nullptr;      ///< Validity; may be null
  Vec3f* field_px = nullptr;        ///< the dense field in pixels; may be null
  FrameFigures* figures = nullptr;  ///< per frame
};

/// The dense field, the warped mask and the subtracted frames in one pass over the pixels.
void subtract(const SubtractJob& job, const Context& context);

}  // namespace larch::dsa
