// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/dsa/match/match.h"
#include "tests/parity/cuda_context.h"

// Sequences that both devices subtract.
namespace larch::dsa::test {

using larch::test::cpu_context;

/// The four ways in which blocks are matched: by each metric, as usual and literally.
inline std::vector<DsaConfig> matched_configs() {
  std::vector<DsaConfig> all;
  for (const Metric metric : {Metric::kEhd, Metric::kEntropy}) {
    for (const bool literal : {false, true}) {
      DsaConfig& config = all.emplace_back();
      config.metric = metric;
      config.literal = literal;
    }
  }
  return all;
}

/// Stored frames, the mask first, and which of their pixels count.
struct Sequence {
  std::string name{};
  Vec3i size{};
  StoredValues stored{};
  std::vector<uint16_t> mask{}, frames{};
  std::vector<uint8_t> region{};
  int64_t count() const { return static_cast<int64_t>(frames.size() / mask.size()); }
};

/// A pattern that moves from frame to frame, with noise; `scale` of its values.
inline Sequence moving_pattern(const std::string& name, const Vec3i& size, int bits, int frames) {
  Sequence s{name, size, {}, {}, {}, {}};
  s.stored.bits = bits;
  const double scale = std::ldexp(1.0, bits - 12);
  const auto draw = [&](double dx, double dy, uint64_t stream, std::vector<uint16_t>& out) {
    for (int y = 0; y < size.y; ++y) {
      for (int x = 0; x < size.x; ++x) {
        const double u = x + dx, v = y + dy;
        double value =
            2000 + 500 * std::sin(u / 19) * std::cos(v / 23) + 200 * std::sin(u / 5 + v / 7);
        const auto index =
            static_cast<uint64_t>(y) * static_cast<uint64_t>(size.x) + static_cast<uint64_t>(x);
        value += 60 * (hash_unit(7, stream, 2 * index) + hash_unit(7, stream, 2 * index + 1) - 1);
        if ((x / 40 + y / 30) % 9 == 0) value -= stream > 0 ? 150 : 0;  // vessels
        if ((x * 13 + y * 7) % 1009 == 0) value = 5000;                 // saturated
        const double most = std::ldexp(1.0, bits) - 1;
        out.push_back(static_cast<uint16_t>(std::min(std::floor(value * scale), most)));
      }
    }
  };
  draw(0, 0, 0, s.mask);
  for (int f = 1; f <= frames; ++f) {
    draw(1.3 * f - 3.1, 2.4 - 0.9 * f, static_cast<uint64_t>(f), s.frames);
  }
  return s;
}

/// Three of them, the last two of them as small cases: plain; of odd size with a region of
/// interest; smaller than a block in 8 bits.
inline std::vector<Sequence> sequences() {
  using larch::test::sized;
  std::vector<Sequence> all;
  if (!larch::test::small_tests()) {
    all.push_back(moving_pattern("plain", {160, 140, 1}, 12, 3));
  }
  all.push_back(moving_pattern("odd size, region of interest",
                               sized<Vec3i>({131, 97, 1}, {67, 49, 1}), 14, sized(2, 1)));
  Sequence& odd = all.back();
  for (int y = 0; y < odd.size.y; ++y) {
    for (int x = 0; x < odd.size.x; ++x) {
      odd.region.push_back(x + y > 60 && (x - 90) * (x - 90) + (y - 40) * (y - 40) > 300 ? 1 : 0);
    }
  }
  all.push_back(moving_pattern("narrow, 8 bits", sized<Vec3i>({41, 203, 1}, {22, 71, 1}), 8, 2));
  return all;
}

/// What is compared on a device.
struct Prepared {
  SampleTable table{};
  SampleFrames mask{}, mask_at_zero{}, frames{}, at_zero{};
};

inline Prepared prepare(const Sequence& s, const DsaConfig& config, const Context& context) {
  Prepared p;
  p.table = make_sample_table(s.stored, config);
  const Device& device = context.device;
  const Buffer<uint8_t> region(device, s.region);
  p.mask = to_samples(Buffer<uint16_t>(device, s.mask), s.size, p.table, {}, context);
  p.mask_at_zero = filter_at_zero(p.mask, config, context);
  p.frames = to_samples(Buffer<uint16_t>(device, s.frames), s.size, p.table, region, context);
  p.at_zero = filter_at_zero(p.frames, config, context);
  return p;
}

}  // namespace larch::dsa::test
