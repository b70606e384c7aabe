// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// When contrast agent arrives.
#include <vector>

#include <catch2/catch.hpp>

#include "larch/dsa/preparation.h"
#include "tests/unit/dsa/dsa_fixtures.h"

using namespace larch;
using namespace larch::dsa;

namespace {

/// A difference of noise with a dark or bright line from x = 60 to 140.
std::vector<int16_t> difference(const Vec3i& size, int line) {
  std::vector<int16_t> frame;
  for (int y = 0; y < size.y; ++y) {
    for (int x = 0; x < size.x; ++x) {
      const bool is_line = x >= 60 && x < 140 && y >= 100 && y < 106;
      frame.push_back(static_cast<int16_t>(std::lround(20 * fixtures::normal(7, 1, frame.size())) +
                                           (is_line ? line : 0)));
    }
  }
  return frame;
}

}  // namespace

TEST_CASE("a vessel is dark among what is around it, and edges of regions do not count") {
  const Vec3i size{256, 256, 1};
  std::vector<uint8_t> validity(256 * 256);
  const Extremes noise = extremes_of(difference(size, 0), validity, size);
  CHECK(noise.dark == Approx(noise.bright).epsilon(0.1));
  const Extremes vessel = extremes_of(difference(size, -100), validity, size);
  CHECK(vessel.dark > 3 * vessel.bright);
  const Extremes edge = extremes_of(difference(size, 100), validity, size);
  CHECK(edge.bright > 3 * edge.dark);
  // The whole frame darker, or darker to one side, is no vessel.
  std::vector<int16_t> slope = difference(size, 0);
  for (size_t p = 0; p < slope.size(); ++p)
    slope[p] = static_cast<int16_t>(slope[p] - 500 - p % 256);
  const Extremes darker = extremes_of(slope, validity, size);
  CHECK(darker.dark < 1.3 * darker.bright);
  // Behind a collimator, and beside it.
  for (size_t p = 0; p < validity.size(); ++p) validity[p] = p / 256 < 104 ? 3 : 0;
  const Extremes covered = extremes_of(difference(size, -100), validity, size);
  CHECK(covered.dark < 1.3 * covered.bright);
  const Extremes none = extremes_of(difference(size, 0), std::vector<uint8_t>(256 * 256, 3), size);
  CHECK((none.dark == 0 && none.bright == 0));
}

TEST_CASE("the onset is the first frame of darkening that lasts") {
  const Extremes calm{10, 10}, dark{20, 10}, moved{80, 75};
  std::vector<Extremes> frames(6, calm);
  frames[2] = dark;  // passes
  frames.insert(frames.end(), 4, moved);
  frames.insert(frames.end(), 12, dark);
  CHECK(find_onset(frames, true) == 10U);
  // Known as soon as ten frames are dark, and before that only if none follow.
  CHECK(find_onset(std::span(frames).first(20), false) == 10U);
  CHECK(!find_onset(std::span(frames).first(19), false));
  CHECK(find_onset(std::span(frames).first(12), true) == 10U);
  CHECK(!find_onset(std::span(frames).first(11), true));
  CHECK(!find_onset(std::span(frames).first(10), true));
  CHECK(!find_onset({}, true));
  // One frame that moves more does not end it.
  frames[14] = moved;
  CHECK(find_onset(frames, true) == 10U);
}
