// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/dsa/match/match.h"

namespace larch::dsa::fixtures {

inline Context context_of(int threads = 1) {
  Context context;
  context.threads = threads;
  return context;
}

/// A standard normal number.
inline double normal(uint64_t seed, uint64_t stream, uint64_t index) {
  const double u = 1 - hash_unit(seed, stream, 2 * index);
  return std::sqrt(-2 * std::log(u)) *
         std::cos(2 * 3.14159265358979323846 * hash_unit(seed, stream, 2 * index + 1));
}

/// Texture without noise at any place, in steps of a sample around 16000: waves of many directions.
inline double texture(double x, double y, uint64_t seed = 1) {
  double sum = 16000;
  for (uint64_t k = 0; k < 24; ++k) {
    const double length = 6 + 40 * hash_unit(seed, 10, k),
                 turn = 6.2831853 * hash_unit(seed, 11, k);
    const double phase = 6.2831853 * hash_unit(seed, 12, k);
    sum += 150 * std::sin((std::cos(turn) * x + std::sin(turn) * y) * 6.2831853 / length + phase);
  }
  return sum;
}

using Image = std::vector<uint16_t>;

/// The texture moved so that motion (dx, dy) is found, with white noise.
inline Image textured(const Vec3i& size, double dx, double dy, double noise = 0,
                      uint64_t seed = 1) {
  Image image;
  for (int32_t y = 0; y < size.y; ++y) {
    for (int32_t x = 0; x < size.x; ++x) {
      const double n = noise > 0 ? noise * normal(seed, 20, image.size()) : 0;
      image.push_back(static_cast<uint16_t>(std::lround(texture(x + dx, y + dy) + n)));
    }
  }
  return image;
}

/// Matches a frame, or some one after the other, to a mask; all are samples.
struct Matching {
  Vec3i size{};
  Image mask{};
  Image frames{};
  DsaConfig config{};
  BlockGrid grid{};
  int32_t shift = 2;       ///< of the bins of the first frame,
  int32_t shift_step = 0;  ///< and so much more from frame to frame
  Vec3i centre{};
  const BlockGrid* base_grid = nullptr;
  std::vector<Vec3i> base{};

  std::vector<BlockMatch> run(int threads = 1) const {
    const Context context = context_of(threads);
    const auto filtered = [&](const Image& image) {
      const auto pixels = static_cast<int64_t>(size.x) * size.y;
      const SampleFrames samples{size, static_cast<int64_t>(image.size()) / pixels,
                                 Buffer<uint16_t>(Device::cpu(), image)};
      return filter_at_zero(samples, config, context);
    };
    const SampleFrames mask_at_zero = filtered(mask), contrast = filtered(frames);
    std::vector<int32_t> shifts;
    shifts.reserve(static_cast<size_t>(contrast.count));
    for (int32_t f = 0; f < contrast.count; ++f) shifts.push_back(shift + f * shift_step);
    const std::vector<Vec3i> centres(static_cast<size_t>(contrast.count), centre);
    std::vector<BlockMatch> out(static_cast<size_t>(contrast.count * grid.blocks()));
    MatchJob job;
    job.config = &config;
    job.grid = &grid;
    job.range = config.range;
    job.mask = mask.data();
    job.mask_at_zero = mask_at_zero.values.data();
    job.contrast = contrast.values.data();
    job.frames = contrast.count;
    job.bin_shift = shifts.data();
    job.centre = centres.data();
    if (base_grid != nullptr) job.base = {base_grid, base.data()};
    job.out = out.data();
    match_blocks(job, context);
    return out;
  }
};

/// One block of 64 pixels in the middle of an image of 128.
inline Matching one_block(Image mask, Image frame) {
  Matching m;
  m.size = {128, 128, 1};
  m.mask = std::move(mask);
  m.frames = std::move(frame);
  m.grid.image = m.size;
  m.grid.block = {64, 64, 1};
  m.grid.count = {1, 1, 1};
  m.grid.starts = {std::vector<int32_t>{32}, std::vector<int32_t>{32}, std::vector<int32_t>{0}};
  return m;
}

inline double pixels(int32_t q16) {
  return q16 / 65536.0;
}
/// A / n^2.
inline double ehd(const Score& s) {
  return static_cast<double>(s.sum) / (static_cast<double>(s.count) * s.count);
}

/// Q16 of a length in pixels, and of a vector.
inline int32_t q16(double pixels) {
  return static_cast<int32_t>(std::lround(pixels * 65536));
}
inline Vec3i vector_of(double x, double y, double z = 0) {
  return {q16(x), q16(y), q16(z)};
}

}  // namespace larch::dsa::fixtures
