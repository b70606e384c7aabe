// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Several frames that may be the mask: moved to each other, and chosen for each frame.
#include "larch/dsa/mask_frames.h"

#include <algorithm>
#include <numeric>

#include <catch2/catch.hpp>

#include "tests/unit/dsa/dsa_fixtures.h"

using namespace larch;
using namespace larch::dsa;
using fixtures::Image;

namespace {

constexpr Vec3i kSize{192, 160, 1};
constexpr double kNoise = 20;  // steps of a sample; 5 grey values

/// Logarithms of 14 bits: the texture of the fixtures in steps of a sample.
SampleTable table() {
  return make_sample_table({14, false, true, Domain::kLog}, {});
}

/// What is drawn in grey values from a function of the place, with noise.
template <class Body>
Image frame_of(const Body& body, uint64_t stream) {
  Image frame;
  for (int32_t y = 0; y < kSize.y; ++y) {
    for (int32_t x = 0; x < kSize.x; ++x) {
      const double noise = kNoise * fixtures::normal(3, stream, frame.size());
      frame.push_back(static_cast<uint16_t>(std::lround((body(x, y) + noise) / 4)));
    }
  }
  return frame;
}

Image moved(double dx, double dy, uint64_t stream) {
  return frame_of([&](double x, double y) { return fixtures::texture(x + dx, y + dy); }, stream);
}

MaskInput input_of(const std::vector<Image>& frames) {
  MaskInput input{kSize, {frames.begin(), frames.end()}, table(), {}, {}};
  return input;
}

Image mean_of(const std::vector<Image>& frames) {
  std::vector<Image> samples;
  samples.reserve(frames.size());
  for (const Image& frame : frames) {
    samples.push_back(
        to_values(Buffer<uint16_t>(Device::cpu(), frame), kSize, table(), fixtures::context_of())
            .values.to_vector());
  }
  return mean_of_samples(std::vector<std::span<const uint16_t>>(samples.begin(), samples.end()));
}

/// Root mean square of a mask less the body at rest, in steps of a sample, off the edges.
double rms_of(const Image& mask) {
  double sum = 0, count = 0;
  for (int32_t y = 16; y < kSize.y - 16; ++y) {
    for (int32_t x = 16; x < kSize.x - 16; ++x) {
      const int32_t pixel = y * kSize.x + x;
      const double off = mask[static_cast<size_t>(pixel)] - fixtures::texture(x, y);
      sum += off * off;
      ++count;
    }
  }
  return std::sqrt(sum / count);
}

}  // namespace

TEST_CASE("frames of a mask that move are moved to the last one before their mean is taken") {
  const std::vector<Image> frames{moved(3.3, -2.4, 1), moved(-1.6, 0.7, 2), moved(0.4, 1.5, 3),
                                  moved(0, 0, 4)};
  const Context context = fixtures::context_of(2);
  const SequenceMask mask = make_mask(input_of(frames), {}, context);
  CHECK(rms_of(mean_of(frames)) > 80);
  CHECK(rms_of(mask.values.to_vector()) < 0.6 * kNoise);  // of four frames
  CHECK(mask.samples.to_vector() == mask.values.to_vector());
  CHECK(make_mask(input_of(frames), {}, fixtures::context_of(1)).values.to_vector() ==
        mask.values.to_vector());

  SECTION("but not by the literal method, nor by those without blocks") {
    for (const auto& [method, literal] :
         {std::pair(Method::kBlock, true), std::pair(Method::kShift, false),
          std::pair(Method::kNone, false)}) {
      DsaConfig config;
      config.method = method;
      config.literal = literal;
      CHECK_FALSE(registers_masks(config, kSize));
      CHECK(make_mask(input_of(frames), config, context).values.to_vector() == mean_of(frames));
    }
  }
}

TEST_CASE("frames of a mask at rest are not touched") {
  std::vector<Image> frames;
  for (uint64_t stream = 1; stream <= 4; ++stream) frames.push_back(moved(0, 0, stream));
  const SequenceMask mask = make_mask(input_of(frames), {}, fixtures::context_of(2));
  CHECK(mask.values.to_vector() == mean_of(frames));
}

TEST_CASE("saturated pixels of a mask's frame do not count where they are moved to") {
  std::vector<Image> frames{moved(4, 0, 1), moved(0, 0, 2)};
  const auto at = [](int32_t x, int32_t y) {
    const int32_t pixel = y * kSize.x + x;
    return static_cast<size_t>(pixel);
  };
  for (int32_t y = 60; y < 70; ++y) std::fill_n(frames[0].begin() + at(80, y), 10, 16383);
  const Image samples = make_mask(input_of(frames), {}, fixtures::context_of()).samples.to_vector();
  CHECK(samples[at(89, 65)] == kNoSample);  // moved by 4 pixels to 84 ... 93
  CHECK(samples[at(92, 65)] == kNoSample);
  CHECK(samples[at(81, 65)] != kNoSample);
  CHECK(samples[at(2, 100)] != kNoSample);  // read from beyond the edge: that of the last frame
}
