// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/image/channel_math.h"
#include "larch/image/integral.h"
#include "larch/image/levels.h"
#include "larch/image/preprocess.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::image;
using fixtures::context_of;
using fixtures::grid_of;
using fixtures::noise_volume;

const std::vector<ChannelSpec> kIntensityOnly{{ChannelKind::kIntensity, 0}};

/// Sum over the box [lo, hi) by the eight corners, modulo 2^32.
uint32_t box_sum(const IntegralSet& set, size_t channel, const Vec3i& lo, const Vec3i& hi) {
  const IntegralLayout& layout = set.layouts[channel];
  const auto corner = [&](int x, int y, int z) {
    return set.data.data()[layout.offset + layout.linear_offset(x + layout.pad.x, y + layout.pad.y,
                                                                z + layout.pad.z)];
  };
  return corner(hi.x, hi.y, hi.z) - corner(lo.x, hi.y, hi.z) - corner(hi.x, lo.y, hi.z) -
         corner(hi.x, hi.y, lo.z) + corner(lo.x, lo.y, hi.z) + corner(lo.x, hi.y, lo.z) +
         corner(hi.x, lo.y, lo.z) - corner(lo.x, lo.y, lo.z);
}

Mat3 rotation_z(double degrees) {
  const double a = degrees * M_PI / 180;
  Mat3 m;
  m.m[0][0] = m.m[1][1] = std::cos(a);
  m.m[0][1] = -std::sin(a);
  m.m[1][0] = std::sin(a);
  return m;
}

Volume<float> float_noise(const Grid& grid, uint64_t seed) {
  Volume<float> v(grid);
  for (int64_t i = 0; i < v.voxels(); ++i) {
    v[i] = static_cast<float>(hash_unit(seed, 1, static_cast<uint64_t>(i)) * 100);
  }
  return v;
}

TEST_CASE("padding has a width for each axis, and an image of one slice stays one slice") {
  const auto v = noise_volume({9, 7, 1}, 4);
  const std::vector<ChannelSpec> channels{{ChannelKind::kIntensity, 0},
                                          {ChannelKind::kGaussian, 0}};
  for (const Padding padding : {Padding::kClamp, Padding::kZero}) {
    const IntegralSet flat = integral_set(v.view(), channels, padding, {4, 2, 0}, context_of());
    const IntegralSet wide = integral_set(v.view(), channels, padding, 4, context_of());
    for (size_t c = 0; c < channels.size(); ++c) {
      CHECK(flat.layouts[c].stride_size == Vec3i{9 + 8 + 1, 7 + 4 + 1, 2});
      CHECK(box_sum(flat, c, {-4, -2, 0}, {13, 9, 1}) == box_sum(wide, c, {-4, -2, 0}, {13, 9, 1}));
      CHECK(box_sum(flat, c, {2, 1, 0}, {5, 6, 1}) == box_sum(wide, c, {2, 1, 0}, {5, 6, 1}));
    }
  }
}

TEST_CASE("every kind of channel has a rule, whose radius is what it reads") {
  Volume<int16_t> flat(grid_of({11, 11, 11}));
  const auto volume_with = [&](const Vec3i& at) {
    Volume<int16_t> v(flat.grid());
    v(at) = 100;
    return v;
  };
  for (int kind = 0; kind <= static_cast<int>(ChannelKind::kDerivativeZ); ++kind) {
    const auto of = static_cast<ChannelKind>(kind);
    const ChannelRule rule = rule_of(of);
    CHECK_FALSE(std::string(rule.name).empty());
    int radius = 0;
    for (int axis = 0; axis < 3; ++axis) {
      for (int step = 1; step <= 4; ++step) {
        Vec3i at{5, 5, 5};
        at[axis] += step;
        const auto v = volume_with(at);
        if (channel_value(v.view(), of, 5, 5, 5) != 0) radius = std::max(radius, step);
      }
    }
    CHECK(rule.radius == radius);
  }
}

}  // namespace

TEST_CASE("boxes have their 64-bit sums, modulo 2^32 where these are larger") {
  const Volume<int16_t> v = noise_volume({80, 66, 74}, 5, 0, 32767);
  const IntegralSet set = integral_set(v.view(), kIntensityOnly, Padding::kClamp, 2, context_of());
  size_t wrong = 0, wrapped = 0;
  for (uint64_t i = 0; i < 400; ++i) {
    Vec3i lo, hi;
    for (int axis = 0; axis < 3; ++axis) {
      // The first box is the whole volume.
      const auto n = static_cast<uint32_t>(v.size()[axis]);
      lo[axis] = i == 0 ? 0 : static_cast<int>(hash_below(2, static_cast<uint64_t>(axis), i, n));
      const uint32_t left = n - static_cast<uint32_t>(lo[axis]) - 1;
      hi[axis] =
          lo[axis] + 1 +
          static_cast<int>(i == 0 ? left : hash_below(3, static_cast<uint64_t>(axis), i, left + 1));
    }
    uint64_t truth = 0;
    for (int z = lo.z; z < hi.z; ++z)
      for (int y = lo.y; y < hi.y; ++y)
        for (int x = lo.x; x < hi.x; ++x) truth += static_cast<uint64_t>(v({x, y, z}));
    wrong += box_sum(set, 0, lo, hi) != static_cast<uint32_t>(truth);
    wrapped += truth >> 32 != 0;
  }
  CHECK(wrong == 0);
  CHECK(wrapped > 0);
}

TEST_CASE("Channels against brute force") {
  const Volume<int16_t> v = noise_volume({6, 5, 4}, 8, -3000, 3000);
  const auto at = [&](int x, int y, int z) {
    return static_cast<int64_t>(v({std::clamp(x, 0, 5), std::clamp(y, 0, 4), std::clamp(z, 0, 3)}));
  };
  const int64_t w[5] = {1, 4, 6, 4, 1};
  for (int z = 0; z < 4; ++z)
    for (int y = 0; y < 5; ++y)
      for (int x = 0; x < 6; ++x) {
        double smooth = 0;
        for (int k = 0; k < 5; ++k)
          for (int j = 0; j < 5; ++j)
            for (int i = 0; i < 5; ++i)
              smooth +=
                  static_cast<double>(w[i] * w[j] * w[k] * at(x + i - 2, y + j - 2, z + k - 2));
        const int64_t dx = at(x + 1, y, z) - at(x - 1, y, z);
        const int64_t dy = at(x, y + 1, z) - at(x, y - 1, z);
        const int64_t dz = at(x, y, z + 1) - at(x, y, z - 1);
        const int64_t around = at(x + 1, y, z) + at(x - 1, y, z) + at(x, y + 1, z) +
                               at(x, y - 1, z) + at(x, y, z + 1) + at(x, y, z - 1);
        const auto value = [&](ChannelKind kind) { return channel_value(v.view(), kind, x, y, z); };
        CHECK(value(ChannelKind::kIntensity) == at(x, y, z));
        CHECK(value(ChannelKind::kGaussian) == std::floor(smooth / 4096 + 0.5));
        CHECK(value(ChannelKind::kDerivativeX) == dx);
        CHECK(value(ChannelKind::kDerivativeY) == dy);
        CHECK(value(ChannelKind::kDerivativeZ) == dz);
        CHECK(value(ChannelKind::kLaplacian) == around - 6 * at(x, y, z));
        CHECK(value(ChannelKind::kGradientMagnitude) ==
              std::floor(std::sqrt(static_cast<double>(dx * dx + dy * dy + dz * dz))));
      }
}

TEST_CASE("Channels of extreme voxels stay within their bounds") {
  Volume<int16_t> v(grid_of({4, 4, 4}));
  for (int64_t i = 0; i < v.voxels(); ++i)
    v[i] = hash64(4, 4, static_cast<uint64_t>(i)) & 1 ? 32767 : -32768;
  for (int kind = 0; kind <= 6; ++kind) {
    const auto channel = static_cast<ChannelKind>(kind);
    const int64_t bound = channel_bound(channel, -32768, 32767);
    for (int64_t i = 0; i < v.voxels(); ++i) {
      const Vec3i p = v.grid().voxel(i);
      CHECK(std::abs(int64_t{channel_value(v.view(), channel, p.x, p.y, p.z)}) <= bound);
    }
  }
  CHECK(channel_bound(ChannelKind::kIntensity, -511, 1534) == 1534);
  CHECK(channel_bound(ChannelKind::kIntensity, -2000, 1534) == 2000);
  for (const uint32_t n : {0u, 1u, 3u, 4u, 99u, 100u, 65535u, 4294836225u, 4294967295u}) {
    const auto root = static_cast<uint64_t>(integer_sqrt(n));
    CHECK(root * root <= n);
    CHECK((root + 1) * (root + 1) > n);
  }
}

TEST_CASE("A pyramid level is the rounded mean of 2x2x2 voxels, read at x >> level") {
  const Volume<int16_t> v = noise_volume({7, 6, 5}, 9, -1000, 1000);
  const std::vector<ChannelSpec> channels{
      {ChannelKind::kIntensity, 0}, {ChannelKind::kIntensity, 1}, {ChannelKind::kDerivativeX, 2}};
  const IntegralSet set = integral_set(v.view(), channels, Padding::kClamp, 3, context_of());
  CHECK(set.layouts[1].voxels == Vec3i{4, 3, 3});
  CHECK(set.layouts[2].voxels == Vec3i{2, 2, 2});
  CHECK(static_cast<int64_t>(set.data.size()) == total_elements(set.layouts));
  const auto mean = [](const auto& get, int x, int y, int z) {
    int sum = 0;
    for (int c = 0; c < 8; ++c) sum += get(2 * x + (c & 1), 2 * y + (c >> 1 & 1), 2 * z + (c >> 2));
    return static_cast<int>(std::floor(sum / 8.0 + 0.5));
  };
  const auto level0 = [&](int x, int y, int z) {
    return int{v({std::clamp(x, 0, 6), std::clamp(y, 0, 5), std::clamp(z, 0, 4)})};
  };
  const auto level1 = [&](int x, int y, int z) {
    return mean(level0, std::clamp(x, 0, 3), std::clamp(y, 0, 2), std::clamp(z, 0, 2));
  };
  const auto level2 = [&](int x, int y, int z) {
    return mean(level1, std::clamp(x, 0, 1), std::clamp(y, 0, 1), std::clamp(z, 0, 1));
  };
  const auto voxel_sum = [&](size_t channel, const Vec3i& at) {
    const IntegralLayout& layout = set.layouts[channel];
    const uint32_t* s = set.data.data() + layout.base(at);
    const auto o = [&](int x, int y, int z) { return s[layout.linear_offset(x, y, z)]; };
    return static_cast<int32_t>(o(1, 1, 1) - o(0, 1, 1) - o(1, 0, 1) - o(1, 1, 0) + o(0, 0, 1) +
                                o(0, 1, 0) + o(1, 0, 0) - o(0, 0, 0));
  };
  for (int64_t i = 0; i < v.voxels(); ++i) {
    const Vec3i p = v.grid().voxel(i);
    CHECK(voxel_sum(0, p) == level0(p.x, p.y, p.z));
    CHECK(voxel_sum(1, p) == level1(p.x >> 1, p.y >> 1, p.z >> 1));
    const int x = p.x >> 2, y = p.y >> 2, z = p.z >> 2;
    CHECK(voxel_sum(2, p) == level2(x + 1, y, z) - level2(x - 1, y, z));
  }
}

TEST_CASE("Integral volumes do not depend on threads or on wider strides") {
  const Volume<int16_t> v = noise_volume({21, 17, 9}, 2);
  const std::vector<ChannelSpec> channels{{ChannelKind::kGaussian, 0},
                                          {ChannelKind::kGradientMagnitude, 1}};
  const IntegralSet one = integral_set(v.view(), channels, Padding::kClamp, 4, context_of(1));
  const IntegralSet eight = integral_set(v.view(), channels, Padding::kClamp, 4, context_of(8));
  CHECK(one.data.to_vector() == eight.data.to_vector());
  IntegralSet wide;
  wide.layouts = layouts_for(v.size(), channels, Vec3i{4, 4, 4});
  int64_t offset = 0;
  for (IntegralLayout& layout : wide.layouts) {
    layout.stride_size.x += 5;
    layout.stride_size.y += 3;
    layout.offset = offset;
    offset += layout.elements();
  }
  wide.data = Buffer<uint32_t>(Device::cpu(), static_cast<size_t>(offset));
  wide.data.set_zero();
  const VolumeView<const int16_t> view = v.view();
  integrate({&view, 1}, channels, Padding::kClamp, wide.layouts, wide.data, context_of());
  for (size_t c = 0; c < 2; ++c) {
    CHECK(box_sum(wide, c, {-4, -4, -4}, {8, 7, 3}) == box_sum(one, c, {-4, -4, -4}, {8, 7, 3}));
    CHECK(box_sum(wide, c, {1, 2, 0}, {9, 3, 2}) == box_sum(one, c, {1, 2, 0}, {9, 3, 2}));
  }
}

TEST_CASE("Flipped and permuted axes come back exactly") {
  Grid grid = grid_of({5, 6, 7});
  grid.spacing_mm = {1, 2, 3};
  grid.origin_mm = {-10, 20, 5};
  grid.direction = {};
  for (auto& row : grid.direction.m)
    for (double& entry : row) entry = 0;
  grid.direction.m[1][0] = -1;  // x of the image runs to anterior, y to superior, z to the right
  grid.direction.m[2][1] = 1;
  grid.direction.m[0][2] = -1;
  const Volume<float> v = float_noise(grid, 4);
  ModelSpace space;
  space.spacing_mm = {3, 1, 2};
  const Grid model = model_grid(grid, space);
  CHECK(model.size == Vec3i{7, 5, 6});
  CHECK(model.spacing_mm == Vec3d{3, 1, 2});
  for (int axis = 0; axis < 3; ++axis) CHECK(model.direction.m[axis][axis] == 1);
  const Volume<float> there = resample(v, model, context_of());
  for (int64_t i = 0; i < v.voxels(); ++i) {
    const Vec3d index =
        index_from_world(model, world_from_index(grid, grid.voxel(i).cast<double>()));
    const Vec3i at{static_cast<int>(std::lround(index.x)), static_cast<int>(std::lround(index.y)),
                   static_cast<int>(std::lround(index.z))};
    REQUIRE(model.contains(at));
    CHECK(there(at) == v[i]);
  }
  const Volume<float> back = resample(there, grid, context_of());
  CHECK(std::equal(back.begin(), back.end(), v.begin()));

  space.orientation = Orientation::kOwn;
  space.spacing_mm = {1, 2, 3};
  CHECK(describe_difference(model_grid(grid, space), grid, 1e-3).empty());
}

TEST_CASE("The model grid of an oblique image covers it, other spacings keep its centre") {
  Grid grid = grid_of({20, 11, 6});
  grid.spacing_mm = {0.7, 1.1, 2.5};
  grid.origin_mm = {31, -7, 100};
  grid.direction = rotation_z(27);
  ModelSpace space;
  space.spacing_mm = {1, 1, 2};
  const Grid model = model_grid(grid, space);
  CHECK(model.spacing_mm == space.spacing_mm);
  for (int axis = 0; axis < 3; ++axis) CHECK(model.direction.m[axis][axis] == 1);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3d p = index_from_world(model, world_from_index(grid, grid.voxel(i).cast<double>()));
    for (int axis = 0; axis < 3; ++axis) {
      CHECK(p[axis] >= -1e-4);
      CHECK(p[axis] <= model.size[axis] - 1 + 1e-4);
    }
  }
  // Within a degree of the world axes an image keeps its own, so that nothing is interpolated.
  grid.direction = rotation_z(0.5);
  space.spacing_mm = grid.spacing_mm;
  CHECK(describe_difference(model_grid(grid, space), grid, 1e-3).empty());

  space.spacing_mm = {1.4, 1.1, 2.5};
  const Grid coarse = model_grid(grid, space);
  CHECK(coarse.size == Vec3i{10, 11, 6});
  const Vec3d centre = world_from_index(grid, {9.5, 5, 2.5}),
              other = world_from_index(coarse, {4.5, 5, 2.5});
  CHECK(norm(centre - other) < 1e-9);
}

TEST_CASE("A model grid out of proportion to its image is refused before memory is taken") {
  Grid grid = grid_of({12, 10, 8});
  grid.spacing_mm = {2, 2, 3};
  ModelSpace space;
  space.spacing_mm = grid.spacing_mm;
  CHECK(model_grid(grid, space).voxels() == 960);
  const auto refused = [&](const Grid& input) {
    try {
      model_grid(input, space, "'x.nii'");
    } catch (const InputError& error) {
      CHECK_THAT(error.what(), Catch::Contains("'x.nii'") && Catch::Contains("spacing"));
      return true;
    }
    return false;
  };
  // A first axis that runs 10 m a voxel, nearly along the third.
  Grid sheared = grid;
  sheared.spacing_mm.x = 1e4;
  sheared.direction.m[0][0] = 2e-4;
  sheared.direction.m[2][0] = std::sqrt(1 - 4e-8);
  sheared.size = {1200, 1000, 8};
  CHECK(refused(sheared));
  // A model of 0.01 mm.
  space.spacing_mm = {0.01, 0.01, 0.01};
  CHECK(refused(grid));
  // What happens to real images: eight times as fine along each axis, and the box around an oblique
  // slice.
  Grid scan = grid_of({64, 64, 30});
  scan.spacing_mm = {0.5, 0.5, 8};
  space.spacing_mm = {0.5, 0.5, 1};
  CHECK(model_grid(scan, space).size == Vec3i{64, 64, 240});
  Grid slice = grid_of({512, 512, 1});
  slice.direction = rotation_z(45);
  std::swap(slice.direction.m[1], slice.direction.m[2]);  // turned about y
  for (auto& row : slice.direction.m) std::swap(row[1], row[2]);
  space.spacing_mm = {1, 1, 1};
  CHECK(model_grid(slice, space).voxels() == 363LL * 512 * 363);
}

TEST_CASE("Resampling is linear between voxels and averages where it becomes coarser") {
  Grid grid = grid_of({8, 4, 2});
  Volume<float> ramp(grid);
  for (int64_t i = 0; i < ramp.voxels(); ++i) {
    const Vec3i p = grid.voxel(i);
    ramp[i] = static_cast<float>(2 * p.x + 10 * p.y + 100 * p.z);
  }
  Grid fine = grid;
  fine.spacing_mm = {0.5, 0.5, 0.5};
  fine.size = {15, 7, 3};
  const Volume<float> up = resample(ramp, fine, context_of(2));
  for (int64_t i = 0; i < up.voxels(); ++i) {
    const Vec3i p = fine.voxel(i);
    CHECK(up[i] == Approx(p.x + 5 * p.y + 50 * p.z));
  }
  Grid half = grid;
  half.spacing_mm = {2, 1, 1};
  half.size = {4, 4, 2};
  half.origin_mm = {0.5, 0, 0};
  const Volume<float> down = resample(ramp, half, context_of());
  CHECK(down({1, 0, 0}) == Approx(5));  // mean of 4 and 6
  Volume<float> spike(grid);
  spike({4, 0, 0}) = 1;
  CHECK(resample(spike, half, context_of())({2, 0, 0}) == Approx(0.5));
  CHECK(resample(ramp, grid, context_of())({3, 2, 1}) == ramp({3, 2, 1}));
}

TEST_CASE("Grids with parallel axes are resampled as those that are turned by a hair") {
  // Turned, every voxel's position is computed by itself; parallel, the axes have tables.
  Grid grid = grid_of({13, 9, 11});
  grid.spacing_mm = {0.5, 2, 1};
  grid.direction = {};
  for (auto& row : grid.direction.m)
    for (double& entry : row) entry = 0;
  grid.direction.m[1][0] = -1;
  grid.direction.m[2][1] = 1;
  grid.direction.m[0][2] = -1;
  const Volume<float> v = float_noise(grid, 6);
  ModelSpace space;
  space.spacing_mm = {1.7, 1.6, 0.7};
  for (const Vec3d& moved_mm : {Vec3d{0, 0, 0}, Vec3d{-3.3, 2.2, 0.4}}) {
    Grid target = model_grid(grid, space);
    target.origin_mm = target.origin_mm + moved_mm;
    const Volume<float> parallel = resample(v, target, context_of(3));
    target.direction = rotation_z(1e-5);
    const Volume<float> turned = resample(v, target, context_of());
    const auto [low, high] = std::minmax_element(v.begin(), v.end());
    double most = 0;
    for (int64_t i = 0; i < parallel.voxels(); ++i) {
      most = std::max<double>(most, std::abs(parallel[i] - turned[i]));
    }
    CHECK(most > 0);
    CHECK(most < 1e-4 * (*high - *low));
  }
}

TEST_CASE("Labels are resampled by the nearest voxel and are background outside") {
  Grid grid = grid_of({4, 4, 4});
  LabelVolume labels(grid, 3);
  Grid target = grid;
  target.origin_mm = {-1.4, 0.4, 0};
  const LabelVolume moved = resample_labels(labels, target, context_of());
  CHECK(moved({0, 0, 0}) == 0);  // -1.4
  CHECK(moved({1, 0, 0}) == 3);  // -0.4 is within half a voxel
  CHECK(moved({3, 3, 3}) == 3);
  target.origin_mm = {0.6, 0, 0};
  CHECK(resample_labels(labels, target, context_of())({3, 0, 0}) == 0);  // 3.6
  CHECK(resample_labels(labels, target, context_of(), -7)({3, 0, 0}) == -7);
}

TEST_CASE("The box around an oblique image is image in part, that of any other image as a whole") {
  Grid input = grid_of({30, 20, 10});
  input.spacing_mm = {1, 1.5, 2};
  input.origin_mm = {-20, 7, 90};
  ModelSpace space;
  space.spacing_mm = {1.3, 1.3, 1.3};
  CHECK(extent_of(input, model_grid(input, space)).is_part == 0);
  input.direction = rotation_z(30);
  space.orientation = Orientation::kOwn;
  CHECK(extent_of(input, model_grid(input, space)).is_part == 0);
  space.orientation = Orientation::kWorld;
  const Grid model = model_grid(input, space);
  const ImageExtent extent = extent_of(input, model);
  CHECK(extent.is_part == 1);
  int64_t inside = 0, differ = 0;
  for (int64_t i = 0; i < model.voxels(); ++i) {
    const Vec3d at = model.voxel(i).cast<double>();
    const Vec3d index = index_from_world(input, world_from_index(model, at));
    bool is_inside = true;
    for (int axis = 0; axis < 3; ++axis) {
      is_inside = is_inside && index[axis] >= -0.5 && index[axis] <= input.size[axis] - 0.5;
    }
    inside += is_inside ? 1 : 0;
    differ += is_inside != extent.holds(at * 1.3) ? 1 : 0;
  }
  CHECK(differ == 0);
  CHECK(inside > model.voxels() / 3);
  CHECK(inside < model.voxels() * 3 / 4);
}

TEST_CASE("Intensity rules: percentiles are order statistics, windows are fixed") {
  Volume<float> v(grid_of({10, 10, 10}));
  for (int64_t i = 0; i < 1000; ++i) v[i] = static_cast<float>((i * 377) % 1000);  // a permutation
  IntensityRule rule;
  rule.low_percentile = 1;
  rule.high_percentile = 99;
  IntensityMap map = intensity_map(v, rule);
  CHECK(map.offset == 9);  // floor(0.01 * 999)
  CHECK(map.scale == Approx(1023.0 / (989 - 9)));
  CHECK(map.low == -511);
  CHECK(map.high == 1534);
  rule.headroom = 0;
  CHECK(value_range(rule) == std::array<int32_t, 2>{0, 1023});

  rule.rule = IntensityKind::kWindow;
  rule.window_low = -100;
  rule.window_high = 300;
  rule.steps = 200;
  map = intensity_map(v, rule);
  CHECK(map.offset == -100);
  CHECK(map.scale == Approx(0.5));
  rule.window_high = -100;
  CHECK_THROWS_AS(intensity_map(v, rule), UsageError);
}

TEST_CASE("Quantisation rounds half to even, clips, and maps a constant volume to 0") {
  Volume<float> v(grid_of({5, 1, 1}));
  const float values[] = {0.5F, 1.5F, 2.5F, -1e30F, 1e30F};
  std::copy(std::begin(values), std::end(values), v.begin());
  ModelSpace space;
  space.intensity.rule = IntensityKind::kWindow;
  space.intensity.window_low = 0;
  space.intensity.window_high = 100;
  space.intensity.steps = 100;
  const Volume<int16_t> q = to_model_space(v, space, context_of());
  CHECK(q[0] == 0);
  CHECK(q[1] == 2);
  CHECK(q[2] == 2);
  CHECK(q[3] == -50);
  CHECK(q[4] == 150);
  const Volume<float> constant(grid_of({3, 3, 3}), 17.5F);
  const Volume<int16_t> zeros = to_model_space(constant, ModelSpace{}, context_of());
  CHECK(std::all_of(zeros.begin(), zeros.end(), [](int16_t x) { return x == 0; }));
}
