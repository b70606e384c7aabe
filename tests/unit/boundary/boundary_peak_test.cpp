// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>

#include <catch2/catch.hpp>

#include "larch/boundary/refine_math.h"

namespace larch::boundary {
namespace {

using Row = std::array<float, kDisplacements>;

Row filled(float p) {
  Row row;
  row.fill(p);
  return row;
}

TEST_CASE("displacements reach from one end of the range to the other, evenly, and none is 0") {
  CHECK(displacement(6, 0) == -6);
  CHECK(displacement(6, kDisplacements - 1) == 6);
  for (int j = 0; j < kDisplacements; ++j) {
    CHECK(displacement(6, j) == Approx(-displacement(6, kDisplacements - 1 - j)));
    CHECK(std::abs(displacement(6, j)) >= 6.0 / 31 - 1e-12);
  }
  CHECK(displacement(6, 20) - displacement(6, 19) == Approx(12.0 / 31));
}

TEST_CASE("a clear peak is found between the places that were tried") {
  // A parabola, of which the mean of three neighbours is one with the same place of its top.
  const double range = 5, step = 2 * range / 31;
  const double top = GENERATE(-3.1, -0.05, 0.0, 0.61, 2.9);
  CAPTURE(top);
  Row row;
  for (int j = 0; j < kDisplacements; ++j) {
    const double t = (displacement(range, j) - top) / step;
    row[static_cast<size_t>(j)] = static_cast<float>(0.9 - 0.001 * t * t);
  }
  const Peak peak = find_peak(row.data(), range);
  CHECK(peak.voxels == Approx(top).margin(1e-4));
  CHECK(peak.probability == Approx(0.9).margin(0.002));
}

TEST_CASE("a probability that stands out at one place is a peak there") {
  Row row = filled(0.2F);
  row[20] = 0.9F;
  row[19] = row[21] = 0.8F;
  const Peak peak = find_peak(row.data(), 4);
  CHECK(peak.voxels == Approx(displacement(4, 20)));
  CHECK(peak.probability == Approx(2.5 / 3));
  // The weight is what the peak rises above the median.
  CHECK(peak.weight == Approx(2.5 / 3 - 0.2));
}

TEST_CASE("the median is that of all places before they are averaged") {
  Row row = filled(0.0F);
  for (size_t j = 0; j < 16; ++j) row[j] = 0.4F;
  // Half of the places have 0.4, the others 0: the median is 0.2 between them.
  const Peak peak = find_peak(row.data(), 4);
  CHECK(peak.weight == Approx(0.2));
}

TEST_CASE("weights are 0.01 to 1") {
  const Peak flat = find_peak(filled(0.7F).data(), 4);
  CHECK(flat.weight == kMinimumWeight);
  CHECK(flat.probability == Approx(0.7));
  Row sure = filled(0.0F);
  for (size_t j = 8; j < 12; ++j) sure[j] = 1;
  CHECK(find_peak(sure.data(), 4).weight == Approx(1));
}

TEST_CASE("of equal places the one nearest to the vertex is taken, then the first") {
  Row row = filled(0.0F);
  row[3] = row[18] = 0.9F;
  const double near = find_peak(row.data(), 3.1).voxels;
  CHECK(near > 0);
  CHECK(std::abs(near - displacement(3.1, 18)) < 0.21);

  Row mirrored = filled(0.0F);
  for (const size_t j : {5U, 6U, 7U, 24U, 25U, 26U}) mirrored[j] = 0.9F;
  CHECK(find_peak(mirrored.data(), 3.1).voxels == Approx(displacement(3.1, 6)));
}

TEST_CASE("of neighbours that are as high the middle is taken, wherever the vertex is") {
  Row row = filled(0.1F);
  for (size_t j = 12; j < 25; ++j) row[j] = 1;
  CHECK(find_peak(row.data(), 3.1).voxels == Approx(displacement(3.1, 18)));
  row[25] = 1;
  CHECK(find_peak(row.data(), 3.1).voxels == Approx(displacement(3.1, 18) + 0.1));
  // A flat row draws to no side.
  CHECK(find_peak(filled(0.5F).data(), 3.1).voxels == Approx(0).margin(1e-12));
  CHECK(find_peak(filled(1).data(), 3.1).voxels == Approx(0).margin(1e-12));
}

TEST_CASE("without a boundary a vertex stays, and its weight is the least") {
  Row row = filled(0.05F);
  row[9] = row[10] = row[11] = 0.099F;
  const Peak none = find_peak(row.data(), 4);
  CHECK(none.voxels == 0);
  CHECK(none.weight == kMinimumWeight);
  CHECK(none.probability == Approx(0.099));
  row[9] = row[10] = row[11] = 0.101F;
  const Peak some = find_peak(row.data(), 4);
  CHECK(some.voxels == Approx(displacement(4, 10)));
  CHECK(some.weight == Approx(0.101 - 0.05));
  CHECK(find_peak(filled(0).data(), 4).voxels == 0);
}

TEST_CASE("peaks at the ends of the range stay in it") {
  Row row = filled(0.0F);
  row[0] = row[1] = 1;
  CHECK(find_peak(row.data(), 4).voxels == Approx(-4));
  row = filled(0.0F);
  row[30] = row[31] = 1;
  CHECK(find_peak(row.data(), 4).voxels == Approx(4));
}

}  // namespace
}  // namespace larch::boundary
