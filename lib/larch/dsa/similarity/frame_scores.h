// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/samples.h"
#include "larch/dsa/similarity/difference_math.h"

namespace larch::dsa {

/// round(2^20 h ln h) for h = 0 to `most`: what Ranking sums, made once on the host, since no two
/// devices need agree about logarithms. T[0] is 0.
std::vector<uint64_t> entropy_terms(uint32_t most);

/// Returns the lower median of differences, in whose order nothing is left; 0 of none.
int32_t lower_median(std::vector<int32_t>& differences);

/// Frames made smaller by the mean of cells of kShrink x kShrink pixels; what is left at the right
/// and at the bottom is left out. Pointers are of one device.
constexpr int32_t kShrink = 4;
struct ShrinkJob {
  const uint16_t* samples = nullptr;
  Vec3i size{};  ///< of a frame, at least kShrink along x and y
  int64_t frames = 0;
  uint16_t* shrunk = nullptr;
};

/// The mean of a cell's pixels that count, rounded; kNoSample where they are less than half.
LARCH_HD uint16_t shrunk_sample(const uint16_t* frame, int32_t width, int32_t x, int32_t y) {
  uint32_t sum = 0, count = 0;
  for (int32_t j = 0; j < kShrink; ++j) {
    const uint16_t* row = frame + static_cast<int64_t>(y * kShrink + j) * width + x * kShrink;
    for (int32_t i = 0; i < kShrink; ++i) {
      if (row[i] == kNoSample) continue;
      sum += row[i];
      ++count;
    }
  }
  return 2 * count < kShrink * kShrink ? kNoSample
                                       : static_cast<uint16_t>((sum + count / 2) / count);
}

/// EHD of whole frames at displacements, with bins that wrap. Pointers are of one device.
struct FrameScoresJob {
  bool literal = false;                    ///< `mask` is sampled as the literal method does
  const uint16_t* mask = nullptr;          ///< between pixels; as in MatchJob
  const uint16_t* mask_at_zero = nullptr;  ///< at whole pixels
  const uint16_t* contrast = nullptr;      ///< frame after frame, by filter_at_zero
  Vec3i size{};
  int64_t frames = 0;
  int32_t row_step = 1;                  ///< rows 0, row_step, 2 row_step... are compared
  const int32_t* bin_shift = nullptr;    ///< per frame
  const Vec3i* displacements = nullptr;  ///< by frame and candidate, units of 1/kUnit pixel
  int32_t candidates = 0;                ///< per frame
  Score* scores = nullptr;               ///< by frame and candidate
};

void shrink(const ShrinkJob& job, const Context& context);
void frame_scores(const FrameScoresJob& job, const Context& context);

namespace cuda {
void shrink(const ShrinkJob& job, const Context& context);
void frame_scores(const FrameScoresJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::dsa
