// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/vessel_tree.h"

#include <algorithm>
#include <cmath>

#include "larch/core/portable_math.h"
#include "larch/phantom/noise_math.h"

namespace larch::phantom {
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
