// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include <catch2/catch.hpp>

#include "larch/learning/boost.h"
#include "larch/learning/weak_math.h"

using namespace larch::learning;

TEST_CASE("Weights become integers that keep their sign and never vanish") {
  CHECK(quantised_weight(1.0, true) == 1 << 30);
  CHECK(quantised_weight(0.5, false) == -(1 << 29));
  CHECK(quantised_weight(1e-300, true) == 1);
  CHECK(quantised_weight(1e-300, false) == -1);
  CHECK(candidate_key(5, 300, 7) > candidate_key(5, 254, 9));
  CHECK(candidate_key(uint64_t{1} << 40, 1, 0) >> 32 == 0xffffffff);
}

TEST_CASE("alpha stays within what a model may hold, however small the error") {
  CHECK(alpha_q20(0.5) == 0);
  CHECK(alpha_q20(0.1) == std::llround(0.5 * std::log(9.0) * (1 << kAlphaBits)));
  CHECK(alpha_q20(1e-6) < kMaximumAlphaQ20);
  CHECK(alpha_q20(0.5 / 4.3e6) < kMaximumAlphaQ20);
  CHECK(alpha_q20(0.5 / 4.5e6) == kMaximumAlphaQ20);
  CHECK(alpha_q20(1e-300) == kMaximumAlphaQ20);
}
