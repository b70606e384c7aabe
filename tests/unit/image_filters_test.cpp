// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/image/filter_bank.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace {

using namespace larch;
using namespace larch::image;

/// The image of a channel.
std::vector<int32_t> filtered(const std::vector<Volume<int16_t>>& components,
                              const ChannelSpec& channel, int threads = 1) {
  std::vector<VolumeView<const int16_t>> views;
  for (const auto& component : components) views.push_back(component.view());
  std::vector<int32_t> out(static_cast<size_t>(views[0].voxels()));
  image::filter(std::span(&channel, 1), views, out.data(), fixtures::context_of(threads));
  return out;
}

Volume<int16_t> made(const Vec3i& size, const std::function<int(const Vec3i&)>& value) {
  Volume<int16_t> v(fixtures::grid_of(size));
  for (int64_t i = 0; i < v.voxels(); ++i) {
    v[i] = static_cast<int16_t>(value(v.grid().voxel(i)));
  }
  return v;
}

constexpr ChannelKind kFilters[] = {ChannelKind::kSmooth,
                                    ChannelKind::kSmoothDerivativeX,
                                    ChannelKind::kSmoothDerivativeY,
                                    ChannelKind::kSmoothDerivativeZ,
                                    ChannelKind::kLaplacianOfGaussian,
                                    ChannelKind::kSmoothGradient,
                                    ChannelKind::kLocalScore};

TEST_CASE("Filters of a constant image: the constant, and 0 for what tells changes") {
  for (const Vec3i size : {Vec3i{9, 7, 5}, Vec3i{20, 11, 1}, Vec3i{1, 1, 1}}) {
    const std::vector<Volume<int16_t>> image{made(size, [](const Vec3i&) { return 731; })};
    for (const double sigma : {0.5, 1.0, 2.0, 8.0}) {
      for (const ChannelKind kind : kFilters) {
        const int32_t expected = kind == ChannelKind::kSmooth ? 731 : 0;
        for (const int32_t v : filtered(image, {kind, 0, 0, sigma})) REQUIRE(v == expected);
      }
    }
  }
}

TEST_CASE("Derivatives of a ramp are its slope, Laplacians of a parabola its curvature") {
  const Vec3i size{81, 5, 1}, deep{3, 3, 81};
  const auto middle = [](const std::vector<int32_t>& v) { return v[v.size() / 2]; };
  for (const double sigma : {1.0, 2.0, 4.0}) {
    const std::vector<Volume<int16_t>> ramp{made(size, [](const Vec3i& p) { return 10 * p.x; })};
    const auto slope = static_cast<int32_t>(std::floor(2 * sigma * 10 + 0.5));
    CHECK(middle(filtered(ramp, {ChannelKind::kSmoothDerivativeX, 0, 0, sigma})) == slope);
    CHECK(middle(filtered(ramp, {ChannelKind::kSmoothGradient, 0, 0, sigma})) == slope);
    CHECK(middle(filtered(ramp, {ChannelKind::kSmoothDerivativeY, 0, 0, sigma})) == 0);
    CHECK(middle(filtered(ramp, {ChannelKind::kLaplacianOfGaussian, 0, 0, sigma})) == 0);
    CHECK(middle(filtered(ramp, {ChannelKind::kSmooth, 0, 0, sigma})) == 400);
    const std::vector<Volume<int16_t>> parabola{
        made(deep, [](const Vec3i& p) { return (p.z - 40) * (p.z - 40); })};
    CHECK(middle(filtered(parabola, {ChannelKind::kLaplacianOfGaussian, 0, 0, sigma})) ==
          static_cast<int32_t>(2 * sigma * sigma));
  }
}

TEST_CASE("Kernels of sigma 1 are those computed by hand") {
  const HalfKernel gauss = half_kernel(1, Kernel::kGauss);
  CHECK(gauss.radius == 4);
  CHECK(gauss.value[0] == Approx(0.398943469356).epsilon(1e-11));
  CHECK(gauss.value[1] == Approx(0.241971445657).epsilon(1e-11));
  const double second = half_kernel(1, Kernel::kSecond).value[0];
  CHECK(2 * gauss.value[0] * second == Approx(-0.318561900214).epsilon(1e-10));
}

TEST_CASE("Luminance is that of three components, or the only one") {
  std::vector<Volume<int16_t>> image;
  for (const int value : {1000, 200, 30})
    image.push_back(made({4, 4, 1}, [&](const Vec3i&) { return value; }));
  CHECK(filtered(image, {ChannelKind::kSmooth, 0, kLuminance, 1})[5] == 420);  // 299 + 117.4 + 3.42
  CHECK(filtered(image, {ChannelKind::kSmooth, 0, 1, 1})[5] == 200);
  CHECK(filtered({image[0]}, {ChannelKind::kSmooth, 0, kLuminance, 1})[5] == 1000);
  const ChannelSpec of_two[] = {{ChannelKind::kSmooth, 0, kLuminance, 1}};
  CHECK_THROWS_AS(check_channels(of_two, 2), UsageError);
  const ChannelSpec missing[] = {{ChannelKind::kIntensity, 0, 3}};
  CHECK_THROWS_AS(check_channels(missing, 3), UsageError);
  for (const double sigma : {0.0, 1e-9, 33.0, std::nan("")}) {
    const ChannelSpec bad[] = {{ChannelKind::kSmooth, 0, 0, sigma}};
    CHECK_THROWS_AS(check_channels(bad, 1), UsageError);
  }
  const ChannelSpec with_sigma[] = {{ChannelKind::kIntensity, 0, 0, 1}};
  CHECK_THROWS_AS(check_channels(with_sigma, 1), UsageError);
}

TEST_CASE("Filters stay within their bounds and do not depend on threads") {
  const Volume<int16_t> noise = fixtures::noise_volume({40, 31, 6}, 3, -500, 1500);
  // The worst case of a derivative is an edge.
  const Volume<int16_t> edge =
      made({40, 31, 6}, [](const Vec3i& p) { return p.x < 20 ? -500 : 1500; });
  for (const ChannelKind kind : kFilters) {
    for (const double sigma : {0.3, 1.0, 4.0}) {
      const int64_t bound = channel_bound(kind, -500, 1500);
      for (const auto& image : {noise, edge}) {
        const auto one = filtered({image}, {kind, 0, 0, sigma});
        CHECK(filtered({image}, {kind, 0, 0, sigma}, 3) == one);
        for (const int32_t v : one) REQUIRE(std::abs(int64_t{v}) <= bound);
      }
    }
  }
}

TEST_CASE("Channels of several components and levels are integrated from their images") {
  const std::vector<Volume<int16_t>> image{fixtures::noise_volume({21, 18, 7}, 1),
                                           fixtures::noise_volume({21, 18, 7}, 2)};
  std::vector<VolumeView<const int16_t>> views{image[0].view(), image[1].view()};
  const std::vector<ChannelSpec> channels{{ChannelKind::kIntensity, 0, 1},
                                          {ChannelKind::kSmooth, 0, 1, 2},
                                          {ChannelKind::kGaussian, 1, 0},
                                          {ChannelKind::kSmooth, 1, 0, 1}};
  const auto set =
      integral_set(views, channels, Padding::kClamp, Vec3i{2, 2, 2}, fixtures::context_of(2));
  const auto voxel = [&](size_t c, const Vec3i& at) {  // a box of one voxel
    const uint32_t* s = set.data.data() + set.layouts[c].element_at_level(at);
    const auto& l = set.layouts[c];
    uint32_t sum = 0;
    for (int k = 0; k < 8; ++k) {
      const uint32_t corner = s[l.linear_offset(k & 1, k >> 1 & 1, k >> 2)];
      sum += ((k & 1) + (k >> 1 & 1) + (k >> 2)) % 2 == 1 ? corner : 0 - corner;
    }
    return static_cast<int32_t>(sum);
  };
  CHECK(voxel(0, {5, 6, 3}) == image[1]({5, 6, 3}));
  const auto smooth = filtered({image[1]}, {ChannelKind::kSmooth, 0, 0, 2});
  CHECK(voxel(1, {5, 6, 3}) == smooth[static_cast<size_t>(image[1].grid().linear({5, 6, 3}))]);
  Volume<int16_t> half(fixtures::grid_of(pyramid_size({21, 18, 7})));
  for (int64_t i = 0; i < half.voxels(); ++i) {
    const Vec3i p = half.grid().voxel(i);
    half[i] = pyramid_voxel(image[0].view(), p.x, p.y, p.z);
  }
  CHECK(voxel(2, {4, 3, 2}) == channel_value(half.view(), ChannelKind::kGaussian, 4, 3, 2));
  const auto coarse = filtered({half}, {ChannelKind::kSmooth, 0, 0, 1});
  CHECK(voxel(3, {4, 3, 2}) == coarse[static_cast<size_t>(half.grid().linear({4, 3, 2}))]);
}

}  // namespace
