// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstdint>
#include <string>

#include <catch2/catch.hpp>

#include "larch/core/digest.h"
#include "larch/phantom/head.h"

namespace {

using namespace larch;
using namespace larch::phantom;

HeadConfig small_head() {
  HeadConfig config;
  config.size = {56, 48, 40};
  config.spacing_mm = {1, 1.25, 1.5};
  return config;
}

std::string digest(const HeadCase& c) {
  Sha256 sha;
  sha.update(c.image.data(), c.image.voxels() * sizeof(int16_t));
  sha.update(c.labels.data(), c.labels.voxels() * sizeof(int32_t));
  return hex(sha.digest());
}

struct Intensities {
  double count = 0, mean = 0, deviation = 0;
};

Intensities of_label(const HeadCase& c, int label) {
  double count = 0, sum = 0, squares = 0;
  for (int64_t i = 0; i < c.labels.voxels(); ++i) {
    if (c.labels[i] != label) continue;
    count += 1;
    sum += c.image[i];
    squares += static_cast<double>(c.image[i]) * c.image[i];
  }
  const double mean = sum / count;
  return {count, mean, std::sqrt(squares / count - mean * mean)};
}

}  // namespace

TEST_CASE("a head has white matter inside of folded grey matter, and intensities in this order") {
  HeadConfig config;
  config.snr = 0;
  config.bias = 0;
  const HeadCase c = make_head(config, 0, 0, 2);
  const Intensities white = of_label(c, 1), grey = of_label(c, 2), fluid = of_label(c, 3);
  CHECK(white.mean > 950);
  CHECK(grey.mean == Approx(720).margin(60));
  CHECK(fluid.mean < 450);
  CHECK(white.count > 150000);
  CHECK(grey.count > 0.5 * white.count);
  CHECK(fluid.count > 0.3 * white.count);
  // White matter meets neither fluid of the sulci nor the border: grey matter lies between.
  const Grid& grid = c.labels.grid();
  int64_t at_border = 0;
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    for (int axis = 0; axis < 3; ++axis) {
      at_border += c.labels[i] != 0 && (at[axis] == 0 || at[axis] == grid.size[axis] - 1);
    }
  }
  CHECK(at_border == 0);
}

TEST_CASE("noise and intensity field of a head are as strong as they are said to be") {
  HeadConfig config = small_head();
  config.snr = 0;
  config.bias = 0;
  const HeadCase plain = make_head(config, 3, 0, 2);
  config.bias = 0.2;
  const HeadCase uneven = make_head(config, 3, 0, 2);
  config.bias = 0;
  config.snr = 11;
  const HeadCase noisy = make_head(config, 3, 0, 2);
  double least = 2, most = 0, squares = 0, count = 0, in_air = 0, air = 0;
  for (int64_t i = 0; i < plain.image.voxels(); ++i) {
    if (plain.image[i] < 50) {
      in_air += noisy.image[i];
      air += 1;
    }
    if (plain.labels[i] != 1) continue;
    const double gain = static_cast<double>(uneven.image[i]) / plain.image[i];
    least = std::fmin(least, gain);
    most = std::fmax(most, gain);
    squares += std::pow(noisy.image[i] - plain.image[i], 2);
    count += 1;
  }
  CHECK(least > 0.89);
  CHECK(most < 1.11);
  CHECK(most - least > 0.05);
  CHECK(std::sqrt(squares / count) == Approx(1000 / 11.0).epsilon(0.05));
  CHECK(in_air / air == Approx(1.2533 * 1000 / 11).epsilon(0.03));  // Rayleigh: sqrt(pi / 2)
  CHECK(digest(plain) != digest(noisy));
}
