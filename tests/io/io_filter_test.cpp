// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/filters.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"
#include "tests/unit/box_mask.h"

using namespace larch;
using namespace larch::test;

TEST_CASE("signed distances are Euclidean, in mm, and the same for any number of threads") {
  const auto mask = box_mask({21, 21, 21}, {10, 0, 0}, {20, 20, 20}, {0.5, 1, 2});
  const auto distance = signed_distance_mm(mask);
  CHECK(distance({9, 5, 5}) == Approx(0.5));
  CHECK(distance({0, 5, 5}) == Approx(5));
  CHECK(distance({10, 5, 5}) == Approx(0).margin(1e-6));
  CHECK(distance({20, 5, 5}) == Approx(-5));
  const auto point = box_mask({15, 15, 15}, {7, 7, 7}, {7, 7, 7}, {1, 1, 3});
  const auto around = signed_distance_mm(point);
  CHECK(around({10, 3, 7}) == Approx(5));
  CHECK(around({7, 11, 8}) == Approx(5));
  set_io_threads(1);
  const auto one = signed_distance_mm(mask);
  set_io_threads(3);
  const auto three = signed_distance_mm(mask);
  CHECK(same_values(one, three));
  CHECK_THAT(message_of<InputError>([&] { signed_distance_mm(Volume<uint8_t>(mask.grid())); }),
             Catch::Contains("empty"));
  CHECK_THAT(message_of<InputError>([&] { signed_distance_mm(Volume<uint8_t>(mask.grid(), 1)); }),
             Catch::Contains("full"));
}
