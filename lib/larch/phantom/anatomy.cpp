// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/anatomy.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/phantom/noise_math.h"

namespace larch::phantom {
namespace {

constexpr double kMiddle = 1.5;  // nepers

/// Weights of the four coefficients around a place, t behind the second of them.
std::array<double, 4> spline_weights(double t) {
  const double s = 1 - t;
  return {s * s * s / 6, (3 * t * t * t - 6 * t * t + 4) / 6, (3 * s * s * s - 6 * s * s + 4) / 6,
          t * t * t / 6};
}

/// Length of the ray through a ball of radius 1 at this distance from its centre.
double chord(double distance) {
  return distance < 1 ? 2 * std::sqrt(1 - distance * distance) : 0;
}

/// Draws of one patient. Positions are in pixels from the middle of the picture.
struct Body {
  uint64_t seed, number;
  double scale;  ///< of bones: 1 for a picture of 512 pixels

  double draw(uint64_t stream, uint64_t index) const {
    return hash_signed(seed, 1000000 + number * 1000 + stream, index);
  }
  double texture(uint64_t stream, double x, double y, double cell) const {
    return value_noise(seed, 1000000 + number * 1000 + stream,
                       {x / cell + 1000, y / cell + 1000, 0.5});
  }

  double soft(double x, double y) const {
    // Octaves are turned against each other, so that no direction of the lattice stands out.
    constexpr std::array<double, 5> kCell{97, 47, 23, 11.3, 5.9};
    constexpr std::array<double, 5> kHeight{0.34, 0.19, 0.13, 0.10, 0.06};
    const double extent = 256 * scale;
    double sum = 0.25 - 0.5 * (x * x + 0.5 * y * y) / (extent * extent);
    double u = x, v = y;
    for (uint64_t k = 0; k < kCell.size(); ++k) {
      sum += kHeight[k] * texture(1 + k, u, v, kCell[k]);
      const double next = 0.8 * u - 0.6 * v;
      v = 0.6 * u + 0.8 * v;
      u = next;
    }
    const double bend = draw(10, 2) * x / extent;
    const double below = (y - scale * (120 + 60 * draw(10, 0)) - 60 * scale * bend * bend) / 8;
    return sum + 0.3 * std::clamp(0.5 + below * 0.5, 0.0, 1.0);
  }

  /// Bone in units of its thickest place.
  double spine(double x, double y) const {
    const double axis = scale * (60 * draw(11, 0) + 25 * draw(11, 1) * y * y / (65536 * scale));
    const double period = scale * (46 + 6 * draw(11, 2));
    const double phase = y / period + 10 + draw(11, 3);
    const double disc = std::fabs(phase - std::floor(phase) - 0.5) * 2;  // 1 in the disc
    const double body = std::clamp((0.9 - disc) * 8, 0.0, 1.0);
    const double width = scale * 30 * (1 + 0.08 * disc);
    return 0.5 * chord(std::fabs(x - axis) / width) * (0.55 + 0.45 * body);
  }

  double ribs(double x, double y) const {
    double sum = 0;
    for (uint64_t k = 0; k < 7; ++k) {
      const double slope = (0.4 + 0.15 * draw(12, 4 * k)) * (x < 0 ? -1 : 1);
      const double bow = (0.0006 + 0.0003 * draw(12, 4 * k + 1)) / scale;
      const double top = scale * (-290 + 80 * static_cast<double>(k) + 14 * draw(12, 4 * k + 2));
      const double radius = scale * (9 + 2 * draw(12, 4 * k + 3));
      const double rise = slope - 2 * bow * x;
      const double off = (y - top - slope * x + bow * x * x) / std::sqrt(1 + rise * rise);
      const double s = std::fabs(off) / radius;
      sum += 0.5 * (chord(s) - 0.72 * chord(s / 0.72));  // a tube
    }
    return sum;
  }

  double attenuation(double x, double y) const {
    const double hard = 0.45 * spine(x, y) + 0.5 * ribs(x, y);
    return soft(x, y) + hard * (1 + 0.3 * texture(20, 0.8 * x + 0.6 * y, 0.8 * y - 0.6 * x, 4.7));
  }
};

}  // namespace

double SplineImage::at(double x, double y) const {
  const int columns = width + 2 * margin, rows = height + 2 * margin;
  const double u = std::clamp(x + margin, 1.0, columns - 3.0);
  const double v = std::clamp(y + margin, 1.0, rows - 3.0);
  const double left = std::floor(u), top = std::floor(v);
  const auto across = spline_weights(u - left), down = spline_weights(v - top);
  const double* row = coefficients.data() + (static_cast<int64_t>(top) - 1) * columns +
                      static_cast<int64_t>(left) - 1;
  double sum = 0;
  for (size_t j = 0; j < 4; ++j, row += columns) {
    sum += down[j] *
           (across[0] * row[0] + across[1] * row[1] + across[2] * row[2] + across[3] * row[3]);
  }
  return sum;
}

SplineImage make_anatomy(int width, int height, int margin, double contrast, uint64_t seed,
                         int number, int threads) {
  SplineImage image{width, height, margin, {}};
  const int columns = width + 2 * margin, rows = height + 2 * margin;
  image.coefficients.resize(static_cast<size_t>(columns) * static_cast<size_t>(rows));
  const Body body{seed, static_cast<uint64_t>(number), std::min(width, height) / 512.0};
  parallel_for(threads, rows, 8, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) {
      for (int column = 0; column < columns; ++column) {
        const double x = column - margin - 0.5 * (width - 1);
        const double y = static_cast<double>(row) - margin - 0.5 * (height - 1);
        image.coefficients[static_cast<size_t>(row * columns + column)] =
            kMiddle + (contrast == 0 ? 0 : contrast * body.attenuation(x, y));
      }
    }
  });
  return image;
}

SplineImage body_of_picture(const Plane& nepers, int margin, int threads) {
  Plane smooth = median_of_nine(nepers, threads);
  // Taken as the coefficients of the spline, which blurs with a standard deviation of 1 / sqrt(3)
  // by itself: together with this one it is 1.5 pixels.
  blur(smooth, std::sqrt(1.5 * 1.5 - 1.0 / 3), threads);
  SplineImage image{nepers.width, nepers.height, margin, {}};
  for (int y = -margin; y < nepers.height + margin; ++y) {
    for (int x = -margin; x < nepers.width + margin; ++x) {
      image.coefficients.push_back(smooth.at(x, y));
    }
  }
  return image;
}

}  // namespace larch::phantom
