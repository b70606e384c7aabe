// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <vector>

#include <catch2/catch.hpp>

#include "larch/dsa/match/rigid_shift.h"
#include "tests/unit/dsa/dsa_fixtures.h"

using namespace larch;
using namespace larch::dsa;
using namespace larch::dsa::fixtures;

TEST_CASE("the rigid shift of frames") {
  const Vec3i size{256, 200, 1};
  const Context context = context_of(2);
  const double motions[3][2] = {{0, 0}, {3.27, -2.64}, {-21.4, 17.8}};
  SampleFrames frames{size, 3, Buffer<uint16_t>(Device::cpu(), 3 * 256 * 200)};
  for (size_t f = 0; f < 3; ++f) {
    frames.values.upload(textured(size, motions[f][0], motions[f][1], 20, 2 + f), f * 256 * 200);
  }
  const Image mask = textured(size, 0, 0, 20, 1);
  for (const bool literal : {false, true}) {
    DsaConfig config;
    config.literal = literal;
    const SampleFrames at_zero = filter_at_zero(frames, config, context);
    const SampleFrames mask_at_zero =
        filter_at_zero({size, 1, Buffer<uint16_t>(Device::cpu(), mask)}, config, context);
    const std::vector<Vec3i> shifts = rigid_shifts(mask.data(), mask_at_zero.values.data(), frames,
                                                   at_zero, SampleTable{}, config, context);
    REQUIRE(shifts.size() == 3);
    for (size_t f = 0; f < 3; ++f) {
      const double margin = literal ? 0.1 : 0.03;
      CHECK(pixels(shifts[f].x) == Approx(motions[f][0]).margin(margin));
      CHECK(pixels(shifts[f].y) == Approx(motions[f][1]).margin(margin));
    }
  }
}
