// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "tests/unit/experts/experts_fixtures.h"

namespace larch::experts {
namespace {

using fixtures::context_of;
using fixtures::grid_of;
using fixtures::WhiteVoxels;

constexpr int64_t kMuchMemory = int64_t{1} << 30;

std::vector<WhiteVoxels> course(int count, const Vec3d& half = {2.4, 1.3, 0.8}) {
  std::vector<WhiteVoxels> all;
  all.reserve(static_cast<size_t>(count));
  for (int i = 0; i < count; ++i) {
    all.push_back(fixtures::white_voxels(static_cast<uint64_t>(i), half));
  }
  return all;
}

/// Experts that know what is white, which all tests may look at.
const Experts& white_experts() {
  static const Experts trained = fixtures::train_experts(course(6), 1, context_of(2)).all;
  return trained;
}

std::vector<float> values_of(const std::vector<Volume<float>>& parts) {
  std::vector<float> all;
  for (const Volume<float>& part : parts) all.insert(all.end(), part.begin(), part.end());
  return all;
}

TEST_CASE("eight nodes share a voxel, and the outermost ones take what lies beyond") {
  Placement placement;  // an index is a place among the nodes
  const Corners exact = placement.corners({12, 7, 4});
  CHECK(exact.weight_of(0) == kOne);
  CHECK(exact.node_of(0) == 12 + 25 * (7 + 15 * 4));
  CHECK(exact.node_of(7) == 13 + 25 * (8 + 15 * 5));
  placement.offset = {0.25, 0.5, 0};
  const Corners between = placement.corners({3, 2, 1});
  CHECK(between.weight_of(0) == kOne * 3 / 8);
  CHECK(between.weight_of(1) == kOne / 8);
  CHECK(between.weight_of(2) == kOne * 3 / 8);
  CHECK(between.weight_of(4) == 0);
  const Corners before = placement.corners({-50, -9, -1}), after = placement.corners({99, 99, 99});
  CHECK((before.node_of(0) == 0 && before.weight_of(0) == kOne));
  CHECK((after.node_of(7) == kNodeCount - 1 && after.weight_of(7) == kOne));
  placement.offset = {0.123, 0.777, 0.391};
  placement.matrix.m[0][1] = 0.31;
  for (const Vec3i& at : {Vec3i{0, 0, 0}, {3, 9, 2}, {17, 1, 8}, {-3, 4, 30}}) {
    const Corners corners = placement.corners(at);
    int32_t sum = 0;
    for (int c = 0; c < 8; ++c) sum += corners.weight_of(c);
    CHECK(sum <= kOne);
    CHECK(sum > kOne - 8);  // each weight is rounded down
  }
}

TEST_CASE(
    "a frame has the centre, the axes and the spread of an ellipsoid, without what is apart") {
  Grid grid = grid_of({34, 30, 26}, {1, 1.5, 2});
  Volume<float> probability(grid);
  const Vec3d along{0.8, 0.6, 0}, across{-0.6, 0.8, 0}, half{11, 7, 4.5};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3i at = grid.voxel(i);
    const Vec3d d = Vec3d{at.x * 1.0, at.y * 1.5, at.z * 2.0} - Vec3d{17, 21, 26};
    if (fixtures::in_ellipsoid({dot(d, along), dot(d, across), d.z}, half)) probability[i] = 0.9F;
  }
  probability({0, 0, 0}) = probability({1, 0, 0}) = 1;
  const auto frame = frame_of(probability, context_of());
  REQUIRE(frame);
  CHECK(norm(frame->centre_mm - Vec3d{17, 21, 26}) < 0.3);
  CHECK(std::abs(dot(frame->axes.column(0), along)) > 0.99);
  for (int axis = 0; axis < 3; ++axis) {
    const double noise = grid.spacing_mm[axis] * grid.spacing_mm[axis] * 0.1;
    CHECK(frame->spread_mm[axis] ==
          Approx(std::sqrt(half[axis] * half[axis] / 5 + noise)).epsilon(0.06));
  }
  Frame turned = *frame;
  align(turned, {{{-1, 0, 0}, {0, -1, 0}, {0, 0, 1}}});
  CHECK(determinant(turned.axes) == Approx(1));
  CHECK(turned.axes.m[0][0] < -0.7);
}

TEST_CASE("sums of a bin are those of integers, however many samples it has") {
  const Volume<int16_t> image = fixtures::noise_volume({9, 8, 7}, 5);
  const Context context = context_of(3);
  const Piece piece = make_piece(image, kFullIntensity, {0, 0, 0}, {8, 7, 6}, context);
  const Channels channels = piece.channels();
  std::vector<Sample> samples;
  samples.reserve(static_cast<size_t>(channels.voxels()));
  for (int32_t i = 0; i < channels.voxels(); ++i) samples.push_back({0, i, i % 3 - 1});
  std::vector<Share> shares;
  const std::array<int64_t, 4> first{0, 20003, 20003, 20016};  // beyond what is exact at once
  for (int64_t k = 0; k < first.back(); ++k) {
    shares.push_back({static_cast<uint32_t>(k * 7 % channels.voxels()),
                      k < 20000 ? kOne : static_cast<int32_t>(k % 1000)});
  }
  const int parts = 2, width = sums_of(parts);
  std::vector<int64_t> sums(3 * static_cast<size_t>(width), -1), wanted(sums.size(), 0);
  cpu::sum({&channels, samples.data(), shares.data(), first.data(), 3, parts, sums.data()},
           context);
  for (int bin = 0; bin < 3; ++bin) {
    int64_t* to = wanted.data() + bin * width;
    for (int64_t k = first[static_cast<size_t>(bin)]; k < first[static_cast<size_t>(bin) + 1];
         ++k) {
      const Share share = shares[static_cast<size_t>(k)];
      const Sample sample = samples[share.sample];
      std::array<int64_t, kFeatures> f{};
      channels.for_features(voxel_of(sample.voxel, channels.size),
                            [&](int32_t n, int32_t value) { f[static_cast<size_t>(n)] = value; });
      int64_t* next = to;
      for (size_t i = 0; i < kFeatures; ++i) {
        for (size_t j = 0; j <= i; ++j) *next++ += share.weight * f[i] * f[j];
        if (sample.part >= 0) {
          to[kTriangle + sample.part * kFeatures + static_cast<int>(i)] += share.weight * f[i];
        }
      }
    }
  }
  CHECK(sums == wanted);
}

TEST_CASE("experts learn what depends on the image in a line, and say it of another image") {
  CHECK(white_experts().turns == 1);
  const WhiteVoxels one = fixtures::white_voxels(77);
  const auto found = look_again(white_experts(), one.image, kFullIntensity, one.probability,
                                kMuchMemory, context_of());
  REQUIRE(found.size() == 1);
  const Volume<uint8_t> band = band_of(one.probability);
  int64_t right = 0, all = 0;
  for (int64_t i = 0; i < band.voxels(); ++i) {
    CHECK((found[0][i] >= 0 && found[0][i] <= 1));
    if (band[i] == 0) continue;
    ++all;
    right += (found[0][i] > 0.5F) == (one.part[i] == 0);
  }
  CHECK(all > 100);
  CHECK(right >= all * 97 / 100);
}

TEST_CASE("experts have nothing to say where nothing is found") {
  const WhiteVoxels one = fixtures::white_voxels(78);
  const Volume<float> low(one.image.grid(), 0.39F);
  CHECK(look_again(white_experts(), one.image, kFullIntensity, low, kMuchMemory, context_of())
            .empty());
}

TEST_CASE("slabs of little memory give the same bytes, and too little is refused") {
  const WhiteVoxels one = fixtures::white_voxels(79, {2.4, 1.3, 6}, {14, 13, 40});
  const auto look = [&](int64_t bytes, int threads) {
    return values_of(look_again(white_experts(), one.image, kFullIntensity, one.probability, bytes,
                                context_of(threads)));
  };
  const std::vector<float> whole = look(kMuchMemory, 3);
  CHECK(std::ranges::count_if(whole, [](float p) { return p > 0.5F; }) > 100);
  std::string message;
  try {
    look(1000, 1);
  } catch (const MemoryError& error) {
    message = error.what();
  }
  // It says how much a slice takes, with which all is done slice by slice.
  const size_t at = message.find("need ");
  REQUIRE(at != std::string::npos);
  const int64_t needed = std::stoll(message.substr(at + 5));
  CHECK(look(needed, 1) == whole);
  CHECK(look(needed * 21 / 20, 2) == whole);
  CHECK_THROWS_AS(look(needed - 1, 1), MemoryError);
}

TEST_CASE("of structures whose axes scatter, centre and size alone count") {
  std::vector<WhiteVoxels> all = course(6, {1.3, 1.3, 1.3});
  for (size_t i = 0; i < all.size(); ++i) {  // one voxel more, on another side of each
    const Vec3i side{i % 3 == 0 ? 2 : 0, i % 3 == 1 ? 2 : 0, i % 3 == 2 ? 2 : 0};
    all[i].probability(Vec3i{7, 6, 6} + side) = 1;
    all[i].probability(Vec3i{7, 6, 6} - side) = 1;
  }
  std::string told;
  Context context = context_of(2);
  context.log_sink = [&](LogLevel, std::string_view text) { told += text; };
  const Experts experts = fixtures::train_experts(all, 1, context).all;
  CHECK(experts.turns == 0);
  CHECK_THAT(told, Catch::Contains("only its centre and size count"));
  CHECK(look_again(experts, all[0].image, kFullIntensity, all[0].probability, kMuchMemory, context)
            .size() == 1);
}

TEST_CASE("a structure that some cases lack is found where it is, and not where it is not") {
  std::vector<WhiteVoxels> all = course(6, {0.5, 0.5, 0.5});
  const auto divide = [](WhiteVoxels& one) {  // black becomes a structure of its own
    for (int8_t& part : one.part) part = part == 0 ? 0 : 1;
  };
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 3 != 0) {
      divide(all[i]);
    } else {
      std::ranges::fill(all[i].image, int16_t{1023});
      std::ranges::fill(all[i].part, int8_t{0});
    }
  }
  const Experts experts = fixtures::train_experts(all, 2, context_of(2)).all;
  for (const size_t i : {0, 1}) {
    const auto found = look_again(experts, all[i].image, kFullIntensity, all[i].probability,
                                  kMuchMemory, context_of());
    const Volume<uint8_t> band = band_of(all[i].probability);
    for (int64_t k = 0; k < band.voxels(); ++k) {
      if (band[k] == 0) continue;
      CHECK(found[0][k] + found[1][k] <= 1.0001F);
      if (i == 0) CHECK(found[1][k] < 0.3F);
    }
    if (i == 1) CHECK(*std::ranges::max_element(found[1]) > 0.7F);
  }
}

TEST_CASE("cases in which nothing is found are left out, and a fold of such alone is an error") {
  std::vector<WhiteVoxels> all = course(4, {0.5, 0.5, 0.5});
  std::ranges::fill(all[1].probability, 0.0F);
  CHECK_FALSE(fixtures::train_experts(all, 1, context_of(2)).all.empty());
  std::ranges::fill(all[3].probability, 0.0F);
  CHECK_THROWS_AS(fixtures::train_experts(all, 1, context_of(2)), InputError);
}

}  // namespace
}  // namespace larch::experts
