// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Contrast frames are averaged in the domain of the differences.
#include <catch2/catch.hpp>

#include "larch/dsa/samples.h"

using namespace larch;
using namespace larch::dsa;
using Pixels = std::vector<uint16_t>;

namespace {

Pixels mean_of(const std::vector<Pixels>& frames, const SampleTable& table) {
  FrameSum sum;
  for (const Pixels& frame : frames) add_frame(frame, table, sum);
  Pixels mean(frames.front().size());
  mean_frame(sum, stored_of_samples(table), mean);
  return mean;
}

SampleTable table_of(Domain holds) {
  return make_sample_table({12, false, false, holds, {}}, {});
}

}  // namespace

TEST_CASE("linear values are averaged as logarithms, others as they are") {
  const std::vector<Pixels> frames{{100, 2000, 7}, {400, 500, 7}};
  CHECK(mean_of(frames, table_of(Domain::kLinear)) == Pixels{200, 1000, 7});
  CHECK(mean_of(frames, table_of(Domain::kAuto)) == Pixels{250, 1250, 7});
  CHECK(mean_of(frames, table_of(Domain::kLog)) == Pixels{250, 1250, 7});
}

TEST_CASE("a frame by itself is its mean") {
  for (const Domain holds : {Domain::kLinear, Domain::kAuto, Domain::kLog}) {
    const SampleTable table = table_of(holds);
    Pixels all(4096);
    for (size_t p = 0; p < all.size(); ++p) all[p] = static_cast<uint16_t>(p);
    const Pixels mean = mean_of({all}, table);
    // Large linear values may share a sample: then it is that of both.
    for (size_t p = 0; p < all.size(); ++p) CHECK(table.of_stored[mean[p]] == table.of_stored[p]);
  }
}

TEST_CASE("what is saturated in one frame is so in the mean") {
  const SampleTable table = table_of(Domain::kLinear);
  CHECK(mean_of({{4095, 1000, 0}, {1000, 4095, 1000}}, table) == Pixels{4095, 4095, 0});
  CHECK(mean_of({{0}, {4095}}, table) == Pixels{0});
}
