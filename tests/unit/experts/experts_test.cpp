// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/experts/atlases.h"
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

/// What experts say of an image, of one structure.
std::vector<float> look(const WhiteVoxels& one, int64_t bytes = kMuchMemory, int threads = 2,
                        const Experts& experts = white_experts(), size_t part = 0) {
  const auto found = look_again(experts, make_resident(experts, Device::cpu()), one.image,
                                kFullIntensity, one.probability, bytes, context_of(threads));
  if (found.empty()) return {};
  return {found[part].begin(), found[part].end()};
}

TEST_CASE("eight nodes share a voxel, and the outermost ones take what lies beyond") {
  Placement placement;  // an index is a place among the nodes
  const Corners exact = placement.corners({12, 7, 4});
  CHECK(exact.weight_of(0) == kOne);
  CHECK(exact.node_of(0) == 12 + 25 * (7 + 15 * 4));
  CHECK(exact.node_of(7) == 13 + 25 * (8 + 15 * 5));
  placement.offset = {0.25, 0.5, 0};
  const Corners between = placement.corners({3, 2, 1});
  CHECK((between.node_of(0) == 3 + 25 * (2 + 15) && between.node_of(7) == 4 + 25 * (3 + 15 * 2)));
  CHECK((between.weight_of(0) == kOne * 3 / 8 && between.weight_of(1) == kOne / 8));
  CHECK((between.weight_of(2) == kOne * 3 / 8 && between.weight_of(4) == 0));
  const Corners before = placement.corners({-50, -9, -1}), after = placement.corners({99, 99, 99});
  CHECK((before.node_of(0) == 0 && before.weight_of(0) == kOne));
  CHECK((after.node_of(7) == kNodeCount - 1 && after.weight_of(7) == kOne));
  placement.offset = {0.123, 0.777, 0.391};
  for (const Vec3i& at : {Vec3i{0, 0, 0}, {3, 9, 2}, {-3, 4, 30}}) {
    int32_t sum = 0;
    for (int c = 0; c < 8; ++c) sum += placement.corners(at).weight_of(c);
    CHECK((sum <= kOne && sum > kOne - 8));  // each weight is rounded down
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
  std::vector<int64_t> sums(3 * static_cast<size_t>(width), 5), wanted = sums;
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
  WhiteVoxels one = fixtures::white_voxels(77);
  const std::vector<float> found = look(one);
  const Volume<uint8_t> band = band_of(one.probability);
  int64_t right = 0;
  for (int64_t i = 0; i < band.voxels(); ++i) {
    right += band[i] != 0 && (found.at(static_cast<size_t>(i)) > 0.5F) == (one.part[i] == 0);
  }
  CHECK(right > 100);
  CHECK(right >= std::ranges::count(band, 1) * 97 / 100);
  std::ranges::fill(one.probability, 0.39F);  // nothing is found
  CHECK(look(one).empty());
}

/// Returns what `use` says that a slice takes, with which all is done slice by slice.
int64_t needed_bytes(const std::function<void()>& use) {
  std::string message = "need 0";
  try {
    use();
  } catch (const MemoryError& error) {
    message = error.what();
  }
  return std::stoll(message.substr(message.find("need ") + 5));
}

TEST_CASE("slabs of little memory give the same bytes, and too little is refused") {
  const WhiteVoxels one = fixtures::white_voxels(79, {2.4, 1.3, 6}, {14, 13, 40});
  const std::vector<float> whole = look(one, kMuchMemory, 3);
  CHECK(std::ranges::count_if(whole, [](float p) { return p > 0.5F; }) > 100);
  const int64_t needed = needed_bytes([&] { look(one, 1000); });
  CHECK(look(one, needed, 1) == whole);
  CHECK(look(one, needed * 21 / 20) == whole);
  CHECK_THROWS_AS(look(one, needed - 1), MemoryError);
}

TEST_CASE("experts that learn from slices of few cases at a time are the same") {
  const std::vector<WhiteVoxels> all = fixtures::few_samples(8);
  const auto train = [&](int64_t bytes, int threads) {
    return fixtures::train_experts(all, 1, context_of(threads), bytes).all;
  };
  const Experts whole = train(kMuchMemory, 2);
  const int64_t needed = needed_bytes([&] { train(1000, 1); });
  for (const int64_t bytes : {needed, needed * 3 / 2, needed * 5}) {
    const Experts parted = train(bytes, 3);
    CHECK(parted.entries == whole.entries);
    CHECK(parted.beta == whole.beta);
  }
  CHECK_THROWS_AS(train(needed - 1, 2), MemoryError);
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
  CHECK_FALSE(look(all[0], kMuchMemory, 2, experts).empty());
}

TEST_CASE("a structure that some cases lack is found where it is, and not where it is not") {
  std::vector<WhiteVoxels> all = course(6, {0.5, 0.5, 0.5});
  for (size_t i = 0; i < all.size(); ++i) {
    if (i % 3 == 0) std::ranges::fill(all[i].image, int16_t{1023});
    for (int64_t k = 0; k < all[i].part.voxels(); ++k) all[i].part[k] = all[i].image[k] == 0;
  }
  const Experts experts = fixtures::train_experts(all, 2, context_of(2)).all;
  CHECK(std::ranges::max(look(all[0], kMuchMemory, 2, experts, 1)) < 0.3F);
  CHECK(std::ranges::max(look(all[1], kMuchMemory, 2, experts, 1)) > 0.7F);
  for (const WhiteVoxels& one : all) {
    const auto of_0 = look(one, kMuchMemory, 2, experts, 0);
    const auto of_1 = look(one, kMuchMemory, 2, experts, 1);
    float most = 0;
    for (size_t k = 0; k < of_0.size(); ++k) most = std::max(most, of_0[k] + of_1[k]);
    CHECK(most <= 1.0001F);
    if (!of_0.empty()) CHECK(std::min(std::ranges::min(of_0), std::ranges::min(of_1)) >= 0);
  }
}

TEST_CASE("cases in which nothing is found are left out, and a fold of such alone is an error") {
  std::vector<WhiteVoxels> all = course(4, {0.5, 0.5, 0.5});
  std::ranges::fill(all[1].probability, 0.0F);
  CHECK_FALSE(fixtures::train_experts(all, 1, context_of(2)).all.empty());
  std::ranges::fill(all[3].probability, 0.0F);
  CHECK_THROWS_AS(fixtures::train_experts(all, 1, context_of(2)), InputError);
}

/// A bright ellipsoid in mottled surroundings: its image, whether a voxel is of it, and what has
/// been found so far, which is too large.
WhiteVoxels bright_ellipsoid(const Grid& grid, const Vec3d& centre, const Vec3d& half) {
  WhiteVoxels one{Volume<int16_t>(grid), Volume<float>(grid), Volume<int8_t>(grid)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d at = grid.voxel(i).cast<double>() - centre;
    const bool inside = fixtures::in_ellipsoid(at, half);
    one.part[i] = inside ? 0 : TrainingCase::kNone;
    one.probability[i] = fixtures::in_ellipsoid(at, half * 1.3) ? 0.45F : 0.0F;
    const auto mottles = static_cast<int16_t>(hash_below(3, 4, static_cast<uint64_t>(i), 90));
    one.image[i] = static_cast<int16_t>((inside ? 700 : 300) + mottles);
  }
  return one;
}
const WhiteVoxels& atlas_case() {
  static const WhiteVoxels one =
      bright_ellipsoid(fixtures::grid_of({26, 20, 18}), {12, 9, 8}, {8, 5, 4});
  return one;
}
Experts with_atlas() {
  Experts experts;
  experts.parts = experts.turns = 1;
  experts.mean_axes = {1, 0, 0, 0};
  experts.atlases.push_back(
      make_atlas(experts, atlas_case().image, atlas_case().part, kFullIntensity, context_of(1)));
  return experts;
}
std::vector<Volume<float>> voted(const WhiteVoxels& one, bool left_out = false, int threads = 2,
                                 int64_t bytes = kMuchMemory) {
  std::vector<Volume<float>> said;
  said.push_back(mapped<float>(one.probability, [](float p) { return p; }));
  const Experts experts = with_atlas();
  ask_atlases(experts, make_resident(experts, Device::cpu()), one.image, kFullIntensity, {left_out},
              bytes, said, context_of(threads));
  return said;
}

TEST_CASE("a single atlas finds its structure elsewhere, larger, and at the border of an image") {
  const auto check = [](const WhiteVoxels& one) {
    const Volume<float> p = voted(one)[0];
    int64_t found = 0, right = 0, all = 0;
    for (int64_t i = 0; i < p.voxels(); ++i) {
      found += p[i] > 0.5F;
      right += p[i] > 0.5F && one.part[i] == 0;
      all += one.part[i] == 0;
    }
    CHECK(all > 100);
    CHECK(2 * right > 0.93 * static_cast<double>(found + all));
  };
  check(atlas_case());
  check(bright_ellipsoid(fixtures::grid_of({31, 27, 22}), {17, 14, 10}, {9, 6, 4.5}));
  check(bright_ellipsoid(fixtures::grid_of({26, 20, 18}), {12, 9, 1}, {8, 5, 4}));
  check(bright_ellipsoid(fixtures::grid_of({26, 20, 18}), {4, 9, 8}, {8, 5, 4}));
}

TEST_CASE("an atlas does not vote where it is left out, or where nothing was found") {
  WhiteVoxels one = atlas_case();
  CHECK(std::ranges::equal(voted(one, true)[0], one.probability));
  std::ranges::fill(one.probability, 0.39F);
  CHECK(std::ranges::equal(voted(one)[0], one.probability));
  std::ranges::fill(one.part, TrainingCase::kNone);
  CHECK(make_atlas(with_atlas(), one.image, one.part, kFullIntensity, context_of(1)).image.empty());
}

TEST_CASE("votes do not depend on threads, and too little memory is refused") {
  const WhiteVoxels& one = atlas_case();
  CHECK(std::ranges::equal(voted(one, false, 1)[0], voted(one, false, 3)[0]));
  std::string message = "need 0";
  try {
    voted(one, false, 2, 1000);
  } catch (const MemoryError& error) {
    message = error.what();
  }
  const int64_t needed = std::stoll(message.substr(message.find("need ") + 5));
  CHECK_NOTHROW(voted(one, false, 2, needed));
  CHECK_THROWS_AS(voted(one, false, 2, needed - 1), MemoryError);
}

}  // namespace
}  // namespace larch::experts
