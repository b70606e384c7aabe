// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/motion_solve.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "larch/core/parallel.h"
#include "larch/data/symmetric_matrix.h"

namespace larch::dsa {
namespace {

/// A bend shows a direction of motion if it is so many times as large as that of noise,
constexpr double kEvidence = 3;
/// and a frame shows motion at all if some block's bend is so many times as large.
constexpr double kFrameEvidence = 7;
/// Second differences of true motion between centres 32 pixels apart, pixels.
constexpr double kBending = 0.25, kBendingPitch = 32;
/// Differences so many times as large count half, by rounds of reweighted least squares.
constexpr double kBreak = 1.2;
constexpr int kRounds = 8;
/// Steps of conjugate gradients in a round, at most, and the residual that ends them.
constexpr int kSteps = 40;
constexpr double kResidual = 1e-6;
/// Ties of blocks to the shift of the frame, 1 / px^2: weakly, and outside of the region.
constexpr double kAnchor = 1e-4, kOutside = 1e4;

Vec3d pixels_of(const Vec3i& q16) {
  return q16.cast<double>() / static_cast<double>(1 << kVectorBits);
}

/// A symmetric matrix of three rows.
struct Symmetric {
  double xx = 0, yy = 0, zz = 0, xy = 0, xz = 0, yz = 0;
  Vec3d times(const Vec3d& v) const {
    return {xx * v.x + xy * v.y + xz * v.z, xy * v.x + yy * v.y + yz * v.z,
            xz * v.x + yz * v.y + zz * v.z};
  }
  void add(const Vec3d& v, double weight) {
    xx += weight * v.x * v.x, yy += weight * v.y * v.y, zz += weight * v.z * v.z;
    xy += weight * v.x * v.y, xz += weight * v.x * v.z, yz += weight * v.y * v.z;
  }
};

/// A second difference of motion between neighbouring blocks.
struct Difference {
  std::array<size_t, 4> block{};
  std::array<double, 4> factor{};
  double weight = 1;
  std::array<size_t, 16> element{};  ///< of the matrix, by two of the blocks
  Vec3d of(std::span<const Vec3d> v) const {
    Vec3d sum{};
    for (size_t k = 0; k < 4; ++k) sum += v[block[k]] * factor[k];
    return sum;
  }
};

/// All frames of a grid share these. A row of the bending term's matrix begins at `row_begin`.
struct Neighbours {
  std::vector<Difference> differences{};
  std::vector<size_t> row_begin{};
  std::vector<size_t> column{};
  double stiffness = 0;  ///< 1 / tau^2
  double share = 1;      ///< of the pixels of a block that are its own, where blocks overlap
  int axes = 2;
};

/// Second differences along an axis at block `at` and mixed ones from it on. Pitches that differ
/// from the mean one, `step`, count as they are.
void add_differences(const BlockGrid& grid, const Vec3i& at, const Vec3d& step, Neighbours& out) {
  const std::array<int32_t, 3> stride{1, grid.count.x, grid.count.x * grid.count.y};
  const int32_t here = at.x + at.y * stride[1] + at.z * stride[2];
  const auto block = [&](int32_t by) {
    const int32_t at_block = here + by;
    return static_cast<size_t>(at_block);
  };
  const auto pitch = [&](int axis, int32_t i) {
    const auto& starts = grid.starts[static_cast<size_t>(axis)];
    return (starts[static_cast<size_t>(i) + 1] - starts[static_cast<size_t>(i)]) / step[axis];
  };
  for (int a = 0; a < 3; ++a) {
    if (at[a] + 1 >= grid.count[a]) continue;
    const int32_t along = stride[static_cast<size_t>(a)];
    if (at[a] > 0) {
      const double before = 1 / pitch(a, at[a] - 1), after = 1 / pitch(a, at[a]);
      out.differences.push_back(
          {{block(-along), block(0), block(along), block(0)}, {before, -before - after, after, 0}});
    }
    for (int b = a + 1; b < 3; ++b) {
      if (at[b] + 1 >= grid.count[b]) continue;
      const int32_t across = stride[static_cast<size_t>(b)];
      out.differences.push_back(
          {{block(0), block(along), block(across), block(along + across)}, {1, -1, -1, 1}, 2});
    }
  }
}

/// Finds the elements of the matrix that differences add to.
void add_matrix(size_t blocks, Neighbours& out) {
  std::vector<std::vector<size_t>> columns(blocks);
  for (const Difference& d : out.differences) {
    for (const size_t row : d.block) {
      for (const size_t column : d.block) {
        auto& of_row = columns[row];
        if (std::find(of_row.begin(), of_row.end(), column) == of_row.end()) {
          of_row.push_back(column);
        }
      }
    }
  }
  for (const std::vector<size_t>& of_row : columns) {
    out.row_begin.push_back(out.column.size());
    out.column.insert(out.column.end(), of_row.begin(), of_row.end());
  }
  out.row_begin.push_back(out.column.size());
  for (Difference& d : out.differences) {
    for (size_t k = 0; k < 16; ++k) {
      const auto& of_row = columns[d.block[k / 4]];
      const auto at = std::find(of_row.begin(), of_row.end(), d.block[k % 4]);
      d.element[k] = out.row_begin[d.block[k / 4]] + static_cast<size_t>(at - of_row.begin());
    }
  }
}

Neighbours neighbours_of(const BlockGrid& grid) {
  Neighbours out;
  out.axes = grid.image.z > 1 ? 3 : 2;
  Vec3d step{1, 1, 1};
  double widest = 0;
  for (int a = 0; a < out.axes; ++a) {
    const auto& starts = grid.starts[static_cast<size_t>(a)];
    if (grid.count[a] < 2) continue;
    step[a] = static_cast<double>(starts.back() - starts.front()) / (grid.count[a] - 1);
    out.share *= std::min(1.0, step[a] / grid.block[a]);
    widest = std::max(widest, step[a]);
  }
  const double tau = kBending * std::max(widest, 1.0) / kBendingPitch;
  out.stiffness = 1 / (tau * tau);
  for (int32_t i = 0; i < grid.blocks(); ++i) add_differences(grid, grid.at(i), step, out);
  add_matrix(static_cast<size_t>(grid.blocks()), out);
  return out;
}

/// A block's knowledge of its motion.
struct Evidence {
  Symmetric information{};  ///< the inverse of the covariance of its vector, 1 / px^2
  double strongest = 0;     ///< its largest bend, in those of noise
  double least_deviation_px = std::numeric_limits<double>::infinity();
  double most_deviation_px = std::numeric_limits<double>::infinity();
};

/// EHD of n pixels is proportional to 1 / s, s the spread of their differences, and entropy to
/// ln s: so n times the bend is the information of n pixels. Under noise alone ln s has the
/// deviation 1 / sqrt(2 n) at each displacement, and the bend that of the fit.
Evidence evidence_of(const BlockMatch& match, const Neighbours& all) {
  Evidence out;
  if ((match.flags & kBlockOutside) != 0 || match.counted < 2) return out;
  const Bend& b = match.bend;
  const double n = match.counted, points = all.axes > 2 ? 25 : 5;
  const double noise = 2 / std::sqrt(14 * points * 2 * n);
  std::vector<double> bend;
  for (const int32_t v : {b.xx, b.xy, b.xz, b.xy, b.yy, b.yz, b.xz, b.yz, b.zz}) {
    bend.push_back(std::ldexp(v, -kBendBits));
  }
  if (all.axes == 2) bend = {bend[0], bend[1], bend[3], bend[4]};
  const Eigen eigen = symmetric_eigen(bend, static_cast<size_t>(all.axes));
  out.strongest = eigen.values.front() / noise;
  for (size_t i = 0; i < eigen.values.size(); ++i) {
    const double value = eigen.values[i], least = kEvidence * noise;
    if (value <= least) return out;
    const double weight = n * value * (1 - least * least / (value * value));
    const auto& e = eigen.vectors[i];
    out.information.add({e[0], e[1], all.axes > 2 ? e[2] : 0}, all.share * weight);
    if (i == 0) out.least_deviation_px = 1 / std::sqrt(weight);
    if (i + 1 == eigen.values.size()) out.most_deviation_px = 1 / std::sqrt(weight);
  }
  return out;
}

/// Tells whether a block outside of the region is beside one that was searched, along axes and
/// diagonals.
bool is_beside_searched(const BlockGrid& grid, std::span<const BlockMatch> frame, const Vec3i& at) {
  for (int32_t y = std::max(0, at.y - 1); y <= std::min(grid.count.y - 1, at.y + 1); ++y) {
    for (int32_t x = std::max(0, at.x - 1); x <= std::min(grid.count.x - 1, at.x + 1); ++x) {
      const int32_t block = y * grid.count.x + x;
      if ((frame[static_cast<size_t>(block)].flags & kBlockOutside) == 0) return true;
    }
  }
  return false;
}

/// The vectors of one frame.
class FrameSolve {
 public:
  FrameSolve(const BlockGrid& grid, const Neighbours& all, const Vec3i& shift,
             std::span<BlockMatch> matches)
      : all_(all),
        matches_(matches),
        shift_(pixels_of(shift)),
        information_(matches.size()),
        vectors_(matches.size(), shift_),
        strengths_(all.differences.size(), 1.0),
        scale_(matches.size()) {
    for (size_t i = 0; i < matches.size(); ++i) {
      BlockMatch& match = matches[i];
      const Evidence evidence = evidence_of(match, all);
      strongest_ = std::max(strongest_, evidence.strongest);
      match.least_deviation_px = static_cast<float>(evidence.least_deviation_px);
      match.most_deviation_px = static_cast<float>(evidence.most_deviation_px);
      information_[i] = evidence.information;
      found_.push_back(pixels_of(match.found));
      const bool is_outside = (match.flags & kBlockOutside) != 0;
      if (!is_outside && evidence.strongest <= kEvidence) match.flags |= kBlockUnreliable;
      const bool fades = is_outside && all.axes == 2 &&
                         !is_beside_searched(grid, matches, grid.at(static_cast<int32_t>(i)));
      if (!fades) continue;
      found_[i] = shift_;
      information_[i] = {kOutside, kOutside, kOutside, 0, 0, 0};
    }
  }

  void solve() {
    if (strongest_ <= kFrameEvidence) {
      for (BlockMatch& match : matches_) {
        match.vector = {};
        match.flags |= (match.flags & kBlockOutside) != 0 ? 0U : kBlockUnreliable;
      }
    } else {
      for (int round = 0; round < kRounds; ++round) {
        descend();
        loosen();
      }
      for (size_t i = 0; i < matches_.size(); ++i) {
        for (int axis = 0; axis < 3; ++axis) {
          matches_[i].vector[axis] =
              static_cast<int32_t>(std::llround(std::ldexp(vectors_[i][axis], kVectorBits)));
        }
      }
    }
    for (BlockMatch& match : matches_) {
      if ((match.flags & (kBlockOutside | kBlockUnreliable)) != 0) match.flags |= kBlockReplaced;
    }
  }

 private:
  /// Lets motion break where it bends.
  void loosen() {
    for (size_t i = 0; i < strengths_.size(); ++i) {
      const Vec3d d = all_.differences[i].of(vectors_);
      strengths_[i] = 1 / (1 + dot(d, d) * all_.stiffness / (kBreak * kBreak));
    }
  }

  /// The bending term's matrix, and the inverse of the mean of each block's diagonal elements.
  void assemble() {
    bending_.assign(all_.column.size(), 0.0);
    for (size_t i = 0; i < strengths_.size(); ++i) {
      const Difference& d = all_.differences[i];
      const double factor = all_.stiffness * strengths_[i] * d.weight;
      for (size_t k = 0; k < 16; ++k) {
        bending_[d.element[k]] += factor * d.factor[k / 4] * d.factor[k % 4];
      }
    }
    for (size_t i = 0; i < vectors_.size(); ++i) {
      const Symmetric& a = information_[i];
      double diagonal = (a.xx + a.yy + a.zz) / all_.axes + kAnchor;
      for (size_t e = all_.row_begin[i]; e < all_.row_begin[i + 1]; ++e) {
        if (all_.column[e] == i) diagonal += bending_[e];
      }
      scale_[i] = 1 / diagonal;
    }
  }
  /// The matrix of the least squares times v.
  void multiply(std::span<const Vec3d> v, std::vector<Vec3d>& out) const {
    for (size_t i = 0; i < v.size(); ++i) {
      Vec3d sum = information_[i].times(v[i]) + v[i] * kAnchor;
      for (size_t e = all_.row_begin[i]; e < all_.row_begin[i + 1]; ++e) {
        sum += v[all_.column[e]] * bending_[e];
      }
      out[i] = sum;
    }
  }

  /// Conjugate gradients from the vectors of the round before.
  void descend() {
    const size_t n = vectors_.size();
    assemble();
    std::vector<Vec3d> residual(n), direction(n), product(n);
    multiply(vectors_, product);
    double square = 0;
    for (size_t i = 0; i < n; ++i) {
      residual[i] = information_[i].times(found_[i]) + shift_ * kAnchor - product[i];
      direction[i] = residual[i] * scale_[i];
      square += dot(residual[i], direction[i]);
    }
    for (int step = 0; step < kSteps && square > kResidual; ++step) {
      multiply(direction, product);
      double along = 0, next = 0;
      for (size_t i = 0; i < n; ++i) along += dot(direction[i], product[i]);
      for (size_t i = 0; i < n; ++i) {
        vectors_[i] += direction[i] * (square / along);
        residual[i] -= product[i] * (square / along);
        next += dot(residual[i], residual[i]) * scale_[i];
      }
      for (size_t i = 0; i < n; ++i) {
        direction[i] = residual[i] * scale_[i] + direction[i] * (next / square);
      }
      square = next;
    }
  }

  const Neighbours& all_;
  std::span<BlockMatch> matches_;
  Vec3d shift_;
  double strongest_ = 0;
  std::vector<Symmetric> information_;
  std::vector<Vec3d> found_{}, vectors_;
  std::vector<double> strengths_;  ///< of differences
  std::vector<double> bending_{}, scale_;
};

}  // namespace

void solve_motion(const BlockGrid& grid, std::span<const Vec3i> shifts,
                  std::span<BlockMatch> matches, const Context& context) {
  const auto blocks = static_cast<size_t>(grid.blocks());
  const Neighbours all = neighbours_of(grid);
  const auto frames = static_cast<int64_t>(shifts.size());
  parallel_for_each(context.threads, frames, 1, [&](size_t f) {
    FrameSolve(grid, all, shifts[f], matches.subspan(f * blocks, blocks)).solve();
  });
}

}  // namespace larch::dsa
