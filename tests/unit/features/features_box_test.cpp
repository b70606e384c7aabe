// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/features/box.h"
#include "larch/features/linear/linear_source.h"
#include "larch/learning/feature_source.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using features::BoxFeature;

/// The value of a feature at a voxel, voxel by voxel; beyond the border the nearest one counts.
int32_t value_at(const BoxFeature& feature, const std::vector<Volume<int16_t>>& channels,
                 const Vec3i& at) {
  int64_t sum = 0;
  for (size_t b = 0; b < static_cast<size_t>(feature.box_count); ++b) {
    const auto& box = feature.boxes[b];
    for (int z = box.lo.z; z < box.hi.z; ++z)
      for (int y = box.lo.y; y < box.hi.y; ++y)
        for (int x = box.lo.x; x < box.hi.x; ++x)
          sum += int64_t{box.weight} * image::padded_value(channels[feature.channels[b]].view(),
                                                           image::Padding::kClamp, at.x + x,
                                                           at.y + y, at.z + z);
  }
  return static_cast<int32_t>(sum);
}

features::BoxSpec spec_of(bool planar) {
  features::BoxSpec spec;
  spec.reach = 6;
  spec.largest = 5;
  spec.planar = planar;
  spec.channels = 3;
  spec.bounds = {1023, 1023, 1023};
  return spec;
}

TEST_CASE("Boxes of several channels have the sums of their voxels, at samples of any order") {
  for (const bool planar : {true, false}) {
    const Vec3i size{17, 14, planar ? 1 : 9};
    std::vector<Volume<int16_t>> image;
    std::vector<VolumeView<const int16_t>> views;
    std::vector<image::ChannelSpec> channels;
    for (int c = 0; c < 3; ++c) {
      image.push_back(fixtures::noise_volume(size, static_cast<uint64_t>(c) + 1));
      channels.push_back({image::ChannelKind::kIntensity, 0, c});
    }
    for (const auto& component : image) views.push_back(component.view());
    const features::BoxSpec spec = spec_of(planar);
    const Context context = fixtures::context_of(2);
    const auto set = image::integral_set(views, channels, image::Padding::kClamp,
                                         features::reach_along(spec), context);
    std::vector<BoxFeature> drawn;
    for (uint64_t k = 0; k < 50; ++k) drawn.push_back(features::draw_box_feature(spec, 5, 2, k));
    const auto columns = features::make_box_columns(drawn, set.layouts, context);
    const Grid grid = image[0].grid();
    std::vector<int64_t> bases;
    for (int c = 0; c < 3; ++c) {
      for (int64_t i = 0; i < grid.voxels(); ++i) {
        bases.push_back(set.layouts[static_cast<size_t>(c)].base(grid.voxel(i)));
      }
    }
    const auto count = static_cast<size_t>(grid.voxels());
    const features::LinearSource source(columns, {set.data.data(), bases.data(), count});
    // Codes with a map of 256 values, so that they are the values themselves.
    std::vector<learning::CodeMap> maps;
    for (const BoxFeature& feature : drawn) {
      const int32_t middle = value_at(feature, image, grid.voxel(30));
      maps.push_back(learning::make_code_map(middle - 100, middle + 155));
    }
    std::vector<uint32_t> all(drawn.size()), samples(count), none;
    std::iota(all.begin(), all.end(), 0u);
    std::iota(samples.rbegin(), samples.rend(), 0u);
    const auto prepared = source.prepare({all, maps}, context);
    learning::FeatureMatrix listed(*prepared, count), every(*prepared, count);
    source.fill(*prepared, samples, listed, context);
    source.fill(*prepared, none, every, context);
    for (size_t f = 0; f < drawn.size(); ++f) {
      for (size_t i = 0; i < count; i += 7) {
        const int32_t value = value_at(drawn[f], image, grid.voxel(static_cast<int64_t>(i)));
        REQUIRE(every.at(f, i) == learning::code_of(maps[f], value));
        REQUIRE(listed.at(f, count - 1 - i) == every.at(f, i));
      }
      learning::WeakClassifier weak{
          static_cast<uint32_t>(f), maps[f], {90, 0}, ~uint64_t{0} << 11, 3};
      const auto votes = learning::cast_votes(source, std::span(&weak, 1), samples, context);
      for (size_t i = 0; i < count; i += 7) {
        REQUIRE(votes.at(count - 1 - i, 0) == (every.at(f, i) >= 101));
      }
    }
    if (planar)
      CHECK(columns.taps.size() <= 8 * drawn.size());  // zeros of the lowest plane are left out
  }
}

TEST_CASE("Boxes are small and near more often than large and far") {
  features::BoxSpec spec;
  spec.bounds = {1023};
  size_t small = 0, near = 0, far = 0, boxes = 0;
  for (uint64_t k = 0; k < 2000; ++k) {
    const BoxFeature f = features::draw_box_feature(spec, 1, 2, k);
    for (int b = 0; b < f.box_count; ++b, ++boxes) {
      const auto& box = f.boxes[static_cast<size_t>(b)];
      const int middle = std::abs(box.lo.x + box.hi.x - 1);  // twice the distance
      small += box.hi.x - box.lo.x <= 3 ? 1 : 0;
      near += middle <= 6 ? 1 : 0;
      far += middle >= 30 ? 1 : 0;
    }
  }
  CHECK(small > boxes / 2);  // of edges that are drawn uniformly a quarter is at most 3
  CHECK(near > 4 * boxes / 10);
  CHECK(far > boxes / 25);
}

TEST_CASE("Boxes stay within their reach and 32 bits, and weights make means comparable") {
  features::BoxSpec spec = spec_of(false);
  spec.reach = 60;
  spec.largest = 120;
  spec.bounds = {16383, 70000, 1};
  size_t single = 0, equal = 0;
  for (uint64_t k = 0; k < 2000; ++k) {
    const BoxFeature f = features::draw_box_feature(spec, 1, 2, k);
    const Vec3i reach = features::reach_along(f);
    REQUIRE(std::max({reach.x, reach.y, reach.z}) <= 60);
    REQUIRE(features::value_bound(f, spec.bounds) < int64_t{1} << 31);
    single += f.box_count == 1 ? 1 : 0;
    if (f.box_count == 1) continue;
    const auto mass = [&](int b) {
      return f.boxes[static_cast<size_t>(b)].weight * f.boxes[static_cast<size_t>(b)].voxels();
    };
    equal += mass(0) == -mass(1) ? 1 : 0;
    REQUIRE(f.boxes[0].weight >= 1);
    REQUIRE(f.boxes[1].weight <= -1);
    REQUIRE(std::max(f.boxes[0].weight, -f.boxes[1].weight) <= 127);
  }
  CHECK(single > 400);
  CHECK(single < 600);
  CHECK(equal > 50);
  // The same again, whatever was drawn before.
  const BoxFeature a = features::draw_box_feature(spec, 9, 4, 77),
                   b = features::draw_box_feature(spec, 9, 4, 77);
  CHECK(a.boxes[0].lo == b.boxes[0].lo);
}

}  // namespace
