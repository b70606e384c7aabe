// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/anatomy.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>

#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/phantom/noise_math.h"

namespace larch::phantom {
namespace {

std::vector<double> gaussian_taps(double sigma) {
  const int reach = static_cast<int>(std::ceil(4 * sigma));
  std::vector<double> taps;
  double sum = 0;
  for (int k = -reach; k <= reach; ++k) {
    taps.push_back(exp_of(-0.5 * k * k / (sigma * sigma)));
    sum += taps.back();
  }
  for (double& tap : taps) tap /= sum;
  return taps;
}

/// value_at(x, y) for every pixel.
template <class ValueAt>
Plane make_plane(int width, int height, int threads, const ValueAt& value_at) {
  Plane plane{width, height, {}};
  plane.values.resize(static_cast<size_t>(width) * static_cast<size_t>(height));
  parallel_for(threads, height, 8, [&](int64_t begin, int64_t end) {
    double* to = plane.values.data() + begin * width;
    for (int y = static_cast<int>(begin); y < end; ++y) {
      for (int x = 0; x < width; ++x) *to++ = value_at(x, y);
    }
  });
  return plane;
}

/// Returns the median of 3 x 3 pixels around each.
Plane median_of_nine(const Plane& plane, int threads) {
  return make_plane(plane.width, plane.height, threads, [&](int x, int y) {
    std::array<double, 9> around{};
    for (int k = 0; k < 9; ++k) {
      around[static_cast<size_t>(k)] = plane.at(x + k % 3 - 1, y + k / 3 - 1);
    }
    std::nth_element(around.begin(), around.begin() + 4, around.end());
    return around[4];
  });
}

}  // namespace

double Plane::at(int x, int y) const {
  return values[static_cast<size_t>(std::clamp(y, 0, height - 1)) * static_cast<size_t>(width) +
                static_cast<size_t>(std::clamp(x, 0, width - 1))];
}

double blur(Plane& plane, double sigma, int threads) {
  const std::vector<double> taps = gaussian_taps(sigma);
  const int reach = static_cast<int>(taps.size()) / 2;
  double squares = 0;
  for (const double tap : taps) squares += tap * tap;
  for (const bool down : {false, true}) {
    plane = make_plane(plane.width, plane.height, threads, [&](int x, int y) {
      double sum = 0;
      const double* tap = taps.data();
      for (int k = -reach; k <= reach; ++k) {
        sum += *tap++ * (down ? plane.at(x, y + k) : plane.at(x + k, y));
      }
      return sum;
    });
  }
  return squares * squares;
}

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
  parallel_for_each(threads, rows, 8, [&](int64_t row) {
    for (int column = 0; column < columns; ++column) {
      const double x = column - margin - 0.5 * (width - 1);
      const double y = static_cast<double>(row) - margin - 0.5 * (height - 1);
      image.coefficients[static_cast<size_t>(row * columns + column)] =
          kMiddle + (contrast == 0 ? 0 : contrast * body.attenuation(x, y));
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

namespace {

constexpr int kCell = 32;          // pixels
constexpr double kStep = 6;        // pixels from bend to bend
constexpr double kMurray = 0.78;   // radius of a branch, as a share of its stem's
constexpr double kThinnest = 0.8;  // pixels
constexpr size_t kMaximumBranches = 300;

/// The end of a branch that goes on.
struct Tip {
  double x, y, turns;  ///< place in pixels, and direction
  double radius, along;
};

struct Grower {
  int width, height;
  double scale;
  uint64_t seed, stream;
  uint64_t drawn = 0;

  double draw() { return hash_signed(seed, stream, drawn++); }

  Tip root() {
    const double where = 0.5 + 0.25 * draw();
    const auto side = hash_below(seed, stream, drawn++, 4);
    const double inwards = 0.25 * side + 0.05 * draw();
    switch (side) {
      case 0:
        return {-4, where * height, inwards, 0, 0};
      case 1:
        return {where * width, -4, inwards, 0, 0};
      case 2:
        return {width + 3.0, where * height, inwards, 0, 0};
      default:
        return {where * width, height + 3.0, inwards, 0, 0};
    }
  }

  /// Follows a branch to its end, which it leaves in `tip`.
  void follow(Tip& tip, std::vector<VesselPiece>& pieces) {
    const double length = scale * 60 * (1 + 0.5 * draw()) * (0.5 + tip.radius / 10);
    const double thinner = tip.radius * 0.06 * kStep / length;
    double bend = 0.01 * draw();
    double gone = 0;
    while (gone < length) {
      bend = 0.8 * bend + 0.006 * draw();
      tip.turns += bend;
      VesselPiece piece{tip.x, tip.y, 0, 0, tip.radius, tip.radius - thinner, tip.along};
      tip.x = piece.to_x = tip.x + kStep * cosine_of_turns(tip.turns);
      tip.y = piece.to_y = tip.y + kStep * sine_of_turns(tip.turns);
      tip.radius = piece.to_radius;
      tip.along += kStep;
      pieces.push_back(piece);
      gone += kStep;
    }
  }

  bool is_near(const Tip& tip) const {
    return tip.x > -40 && tip.y > -40 && tip.x < width + 40 && tip.y < height + 40;
  }
};

void sort_into_cells(VesselTree& tree, int width, int height) {
  tree.columns = (width + kCell - 1) / kCell;
  tree.rows = (height + kCell - 1) / kCell;
  tree.cells.resize(static_cast<size_t>(tree.columns) * static_cast<size_t>(tree.rows));
  for (size_t i = 0; i < tree.pieces.size(); ++i) {
    const VesselPiece& p = tree.pieces[i];
    const double reach = std::max(p.radius, p.to_radius);
    const auto cell = [](double at, int count) {
      return static_cast<int>(std::clamp(std::floor(at / kCell), -1.0, double(count)));
    };
    const int left = std::max(0, cell(std::min(p.x, p.to_x) - reach, tree.columns));
    const int right = std::min(tree.columns - 1, cell(std::max(p.x, p.to_x) + reach, tree.columns));
    const int top = std::max(0, cell(std::min(p.y, p.to_y) - reach, tree.rows));
    const int bottom = std::min(tree.rows - 1, cell(std::max(p.y, p.to_y) + reach, tree.rows));
    for (int row = top; row <= bottom; ++row) {
      for (int column = left; column <= right; ++column) {
        tree.cells[static_cast<size_t>(row) * static_cast<size_t>(tree.columns) +
                   static_cast<size_t>(column)]
            .push_back(static_cast<int32_t>(i));
      }
    }
  }
}

}  // namespace

VesselTree grow_vessels(int width, int height, int trees, double radius, uint64_t seed,
                        int number) {
  VesselTree tree;
  Grower grower{width, height, std::min(width, height) / 512.0, seed,
                2000000 + static_cast<uint64_t>(number)};
  for (int k = 0; k < trees; ++k) {
    std::vector<Tip> tips{grower.root()};
    tips.front().radius = radius;
    for (size_t branch = 0; branch < tips.size() && branch < kMaximumBranches; ++branch) {
      Tip tip = tips[branch];
      grower.follow(tip, tree.pieces);
      tip.radius *= kMurray;
      if (tip.radius < kThinnest || !grower.is_near(tip)) continue;
      for (const double side : {-1.0, 1.0}) {
        Tip next = tip;
        next.turns += side * (0.07 + 0.03 * grower.draw());
        tips.push_back(next);
      }
    }
  }
  sort_into_cells(tree, width, height);
  return tree;
}

VesselHit meet_vessels(const VesselTree& tree, double x, double y) {
  const int column = static_cast<int>(std::floor(x / kCell));
  const int row = static_cast<int>(std::floor(y / kCell));
  VesselHit hit;
  if (column < 0 || row < 0 || column >= tree.columns || row >= tree.rows) return hit;
  double longest = 0;  // half the chord, squared
  for (const int32_t i : tree.cells[static_cast<size_t>(row) * static_cast<size_t>(tree.columns) +
                                    static_cast<size_t>(column)]) {
    const VesselPiece& p = tree.pieces[static_cast<size_t>(i)];
    const double ax = p.to_x - p.x, ay = p.to_y - p.y, length = ax * ax + ay * ay;
    const double t = std::clamp(((x - p.x) * ax + (y - p.y) * ay) / length, 0.0, 1.0);
    const double dx = x - p.x - t * ax, dy = y - p.y - t * ay;
    const double radius = p.radius + t * (p.to_radius - p.radius);
    const double half = radius * radius - dx * dx - dy * dy;
    if (half <= longest) continue;
    longest = half;
    hit.along = p.along + t * std::sqrt(length);
  }
  hit.chord = 2 * std::sqrt(longest);
  return hit;
}

}  // namespace larch::phantom
