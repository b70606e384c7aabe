// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/portable_math.h"
#include "larch/phantom/angiogram.h"

namespace {

using namespace larch;
using namespace larch::phantom;

AngiogramConfig small() {
  AngiogramConfig config;
  config.size = {96, 80};
  config.frames = 6;
  config.mask_frames = 2;
  return config;
}

struct Moments {
  double mean = 0, variance = 0, skewness = 0;
};
Moments moments_of(const std::vector<double>& values) {
  Moments m;
  const auto n = static_cast<double>(values.size());
  for (const double v : values) m.mean += v / n;
  double third = 0;
  for (const double v : values) {
    const double d = v - m.mean;
    m.variance += d * d / n;
    third += d * d * d / n;
  }
  m.skewness = third / std::pow(m.variance, 1.5);
  return m;
}

}  // namespace

TEST_CASE("portable functions agree with the mathematical library") {
  for (int k = 0; k < 163; ++k) {
    const double x = -30 + 0.37 * k;
    CHECK(atan2_of(x, 7 - x) == Approx(std::atan2(x, 7 - x)).epsilon(1e-14));
    CHECK(acos_of(x / 31) == Approx(std::acos(x / 31)).epsilon(1e-13));
    CHECK(exp_of(x) == Approx(std::exp(x)).epsilon(1e-14));
    CHECK(log_of(std::exp(x)) == Approx(std::log(std::exp(x))).margin(1e-14).epsilon(1e-14));
    CHECK(sine_of_turns(x) == Approx(std::sin(2 * M_PI * (x - std::floor(x)))).margin(2e-15));
    CHECK(cosine_of_turns(x) == Approx(std::cos(2 * M_PI * (x - std::floor(x)))).margin(3e-14));
  }
  CHECK(exp_of(-1000) == 0);
  CHECK(std::isfinite(exp_of(1000)));
}

TEST_CASE("Poisson draws have mean, variance and skewness of their distribution") {
  for (const double mean : {0.5, 4.0, 29.0, 31.0, 200.0, 10000.0}) {
    std::vector<double> values(200000);
    for (size_t i = 0; i < values.size(); ++i) values[i] = draw_poisson(mean, 1, 2, i);
    const Moments m = moments_of(values);
    INFO("mean " << mean);
    CHECK(std::fabs(m.mean - mean) < 4 * std::sqrt(mean / 200000));
    CHECK(m.variance == Approx(mean).epsilon(0.02));
    CHECK(m.skewness == Approx(1 / std::sqrt(mean)).margin(0.025));
    CHECK(*std::min_element(values.begin(), values.end()) >= 0);
  }
  CHECK(draw_poisson(0, 1, 2, 3) == 0);
}

TEST_CASE("the body at x in a frame is at x + d(x) in the mask") {
  AngiogramConfig config = small();
  config.course = Course::kConstant;
  config.translation_px = {3, -2};
  config.amplitude_px = 0;
  config.vessels = 0;
  config.electronic = 0;
  config.photons = 1e7;  // hardly any noise
  config.bits = 16;
  const Angiogram a = make_angiogram(config, 3, 1, 2);
  const auto mask = stored_frame(a, 0, 2), moved = stored_frame(a, 2, 2);
  const auto field = true_field_px(a, 2, 2);
  CHECK(true_field_px(a, 0, 2)[500] == Vec3f{0, 0, 0});
  int differences = 0;
  for (size_t y = 5; y < 75; ++y) {
    for (size_t x = 5; x < 90; ++x) {
      REQUIRE(field[y * 96 + x] == Vec3f{3, -2, 0});
      const int difference = moved[y * 96 + x] - mask[(y - 2) * 96 + x + 3];
      differences += std::abs(difference) > 40;  // 12 800 per factor e: 0.3 %
    }
  }
  CHECK(differences == 0);
}

TEST_CASE("the smooth motion keeps its amplitude and wavelength") {
  AngiogramConfig config = small();
  config.size = {512, 512};
  config.course = Course::kConstant;
  config.amplitude_px = 5;
  double longest = 0, steepest = 0;
  for (int number = 0; number < 5; ++number) {
    const auto field = true_field_px(make_angiogram(config, 0, number, 2), 2, 2);
    for (size_t i = 1; i < field.size(); ++i) {
      longest = std::max<double>(longest, std::max(std::fabs(field[i].x), std::fabs(field[i].y)));
      if (i % 512 == 0) continue;
      steepest = std::max<double>(steepest, std::fabs(field[i].x - field[i - 1].x));
    }
  }
  CHECK(longest <= 5);
  CHECK(longest > 2.5);
  CHECK(steepest < 2 * M_PI * 5 / 384);
}

TEST_CASE("noise is that of the photons, and can be correlated at equal strength") {
  AngiogramConfig config = small();
  config.contrast = 0;
  config.vessels = 0;
  config.electronic = 0;
  const auto spread = [&] {
    const auto stored = stored_frame(make_angiogram(config, 0, 0, 2), 0, 2);
    std::vector<double> values(stored.begin(), stored.end());
    return std::sqrt(moments_of(values).variance);
  };
  CHECK(spread() == Approx(8.0).epsilon(0.03));  // 800 x 1 %
  config.noise_blur_px = 0.5;
  CHECK(spread() == Approx(8.0).epsilon(0.05));
  config.noise_blur_px = 0;
  config.photons = 2500;
  CHECK(spread() == Approx(16.0).epsilon(0.03));
}

TEST_CASE("contrast agent comes after the mask and lowers what is stored") {
  AngiogramConfig config = small();
  config.frames = 12;
  config.amplitude_px = 0;
  config.vessel_attenuation = 0.2;
  const Angiogram a = make_angiogram(config, 0, 0, 2);
  const auto count = [&](int frame) {
    const auto labels = vessel_labels(a, frame, 0.05, 2);
    return std::count(labels.begin(), labels.end(), 1);
  };
  CHECK(count(0) == 0);
  CHECK(count(1) == 0);
  CHECK(count(8) > 100);
  const auto mask = stored_frame(a, 0, 2), filled = stored_frame(a, 8, 2);
  const auto labels = vessel_labels(a, 8, 0.5, 2);
  double sum = 0, pixels = 0;
  for (size_t i = 0; i < mask.size(); ++i) {
    if (labels[i] == 0) continue;
    sum += mask[i] - filled[i];
    ++pixels;
  }
  REQUIRE(pixels > 20);
  CHECK(sum / pixels > 0.5 * 800);
}

TEST_CASE("the body of a picture moves as it should, without the picture's noise") {
  AngiogramConfig config = small();
  config.course = Course::kConstant;
  config.translation_px = {3, -2};
  config.amplitude_px = config.electronic = 0;
  config.vessels = 0;
  config.photons = 1e7;
  config.bits = 16;
  Plane nepers{96, 80, {}};
  for (int i = 0; i < 96 * 80; ++i) {
    const double body = sine_of_turns((i % 96) / 90.0) * sine_of_turns(std::floor(i / 96.0) / 70.0);
    nepers.values.push_back(5 + 0.3 * body + 0.02 * draw_normal(1, 2, uint64_t(i)));
  }
  const Angiogram a = make_angiogram(config, nepers, 0, 0, 2);
  double worst = 0, noise = 0;
  for (int y = 8; y < 72; ++y) {
    for (int x = 8; x < 88; ++x) {
      const double body = sine_of_turns(x / 90.0) * sine_of_turns(y / 70.0);
      const double off = a.anatomy.at(x, y) - 5 - 0.3 * body;
      worst = std::max(worst, std::fabs(off));
      noise += off * off / (80 * 64);
    }
  }
  CHECK(worst < 0.03);
  CHECK(std::sqrt(noise) < 0.007);
  const auto mask = stored_frame(a, 0, 2), moved = stored_frame(a, 2, 2);
  for (size_t at = 20 * 96 + 20; at < 60 * 96; at += 77) {
    if (at % 96 > 8 && at % 96 < 88) CHECK(std::abs(moved[at] - mask[at - 2 * 96 + 3]) < 50);
  }
  config.size = {96, 81};
  CHECK_THROWS_AS(make_angiogram(config, nepers, 0, 0, 2), UsageError);
}

TEST_CASE("settings of an angiogram that make no sense are refused") {
  AngiogramConfig config = small();
  config.frames = 2;
  CHECK_THROWS_AS(check(config), UsageError);
  config = small();
  config.collimator_px = 40;
  CHECK_THROWS_AS(check(config), UsageError);
}
