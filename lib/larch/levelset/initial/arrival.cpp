// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/initial/arrival.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <queue>
#include <utility>
#include <vector>

#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

constexpr float kNever = std::numeric_limits<float>::infinity();

/// The front on its way.
class March {
 public:
  March(const Volume<float>& phi_mm, const Volume<int16_t>& speed)
      : grid_(phi_mm.grid()),
        speed_(speed),
        times_(grid_, kNever),
        is_final_(static_cast<size_t>(grid_.voxels())) {
    for (int64_t i = 0; i < phi_mm.voxels(); ++i) {
      if (phi_mm[i] < 0) times_[i] = 0, is_final_[static_cast<size_t>(i)] = kInside;
    }
    for (int64_t i = 0; i < phi_mm.voxels(); ++i) {
      if (phi_mm[i] < 0 || !(speed_of(i) > 0) || !is_beside_start(i)) continue;
      offer(i, static_cast<float>(static_cast<double>(phi_mm[i]) / speed_of(i)));
    }
  }

  /// Runs the front until `latest`.
  void run(double latest) {
    while (!trials_.empty()) {
      const auto [time, i] = trials_.top();
      trials_.pop();
      if (static_cast<double>(time) > latest) break;
      if (is_final_[static_cast<size_t>(i)] != 0) continue;
      is_final_[static_cast<size_t>(i)] = kReached;
      for_neighbours(i, [&](int64_t n, int) {
        if (is_final_[static_cast<size_t>(n)] == 0 && speed_of(n) > 0) {
          offer(n, static_cast<float>(time_at(n)));
        }
      });
    }
    for (int64_t i = 0; i < times_.voxels(); ++i) {
      if (is_final_[static_cast<size_t>(i)] == 0) times_[i] = kNever;
    }
  }
  Volume<float> take() { return std::move(times_); }

 private:
  double speed_of(int64_t i) const { return static_cast<double>(speed_[i]) / kSpeedOne; }

  /// f(neighbour, axis) for those that share a face.
  template <class F>
  void for_neighbours(int64_t i, const F& f) const {
    const Vec3i at = grid_.voxel(i);
    const int64_t strides[3] = {1, grid_.size.x, int64_t{grid_.size.x} * grid_.size.y};
    for (int axis = 0; axis < 3; ++axis) {
      if (at[axis] > 0) f(i - strides[axis], axis);
      if (at[axis] + 1 < grid_.size[axis]) f(i + strides[axis], axis);
    }
  }
  bool is_beside_start(int64_t i) const {
    bool is_beside = false;
    for_neighbours(i, [&](int64_t n, int) {
      is_beside = is_beside || is_final_[static_cast<size_t>(n)] != 0;
    });
    return is_beside;
  }
  void offer(int64_t i, float time) {
    if (!(time < times_[i])) return;
    times_[i] = time;
    trials_.emplace(time, i);
  }

  /// The time at a voxel from those of its final neighbours: the largest root of sum ((t - t_axis)
  /// / h_axis)^2 = 1 / speed^2 over the axes whose neighbour is earlier than t.
  double time_at(int64_t i) const {
    std::array<std::pair<double, double>, 3> axes;  // time, spacing
    for (int axis = 0; axis < 3; ++axis) {
      axes[static_cast<size_t>(axis)] = {static_cast<double>(kNever), grid_.spacing_mm[axis]};
    }
    for_neighbours(i, [&](int64_t n, int axis) {
      double& time = axes[static_cast<size_t>(axis)].first;
      if (is_final_[static_cast<size_t>(n)] == kReached) {
        time = std::min(time, static_cast<double>(times_[n]));
      }
    });
    std::sort(axes.begin(), axes.end());
    const double slowness = 1 / speed_of(i);
    double best = static_cast<double>(kNever), a = 0, b = 0, c = -slowness * slowness;
    for (const auto& [time, h] : axes) {
      if (!(time < best)) break;
      a += 1 / (h * h), b += time / (h * h), c += time * time / (h * h);
      best = (b + std::sqrt(std::max(b * b - a * c, 0.0))) / a;
    }
    return best;
  }

  // Those inside have no time of their own: the voxels beside them start from their distance.
  static constexpr uint8_t kReached = 1, kInside = 2;
  using Trial = std::pair<float, int64_t>;
  const Grid grid_;
  const Volume<int16_t>& speed_;
  Volume<float> times_;
  std::vector<uint8_t> is_final_;
  std::priority_queue<Trial, std::vector<Trial>, std::greater<>> trials_{};
};

}  // namespace

Volume<float> arrival_times(const Volume<float>& phi_mm, const Volume<int16_t>& speed,
                            double latest) {
  March march(phi_mm, speed);
  march.run(latest);
  return march.take();
}

}  // namespace larch::levelset
