// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/initial/first_surfaces.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <queue>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/filters/distance.h"
#include "larch/levelset/initial/spheres.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {
namespace {

constexpr float kFar = std::numeric_limits<float>::infinity();

/// Squared distance from a centre to the box of the voxel `steps` further along an axis.
std::vector<float> squares_by_step(double spacing_mm, double most_mm, int32_t size) {
  const double reach = std::min(std::ceil(most_mm / spacing_mm) + 1, size - 1.0);
  std::vector<float> squares{0.0F};
  for (int32_t step = 1; step <= static_cast<int32_t>(reach); ++step) {
    const double mm = (step - 0.5) * spacing_mm;
    squares.push_back(static_cast<float>(mm * mm));
  }
  return squares;
}

void lower_row(float* row, const float* other, float square, int32_t count) {
  for (int32_t x = 0; x < count; ++x) row[x] = std::min(row[x], other[x] + square);
}

/// Lowers each value to the least sum of one along the axis and the square of its steps. A plane
/// holds `rows` rows of `count` values with `stride` between them; along x a row is one value.
void lower_plane(float* first, int64_t stride, int32_t rows, int32_t count,
                 const std::vector<float>& squares, std::vector<float>& before) {
  before.resize(static_cast<size_t>(rows) * static_cast<size_t>(count));
  for (int32_t r = 0; r < rows; ++r) {
    std::copy_n(first + r * stride, count, before.data() + int64_t{r} * count);
  }
  const auto reach = static_cast<int32_t>(squares.size()) - 1;
  for (int32_t r = 0; r < rows; ++r) {
    for (int32_t q = std::max(r - reach, 0); q <= std::min(r + reach, rows - 1); ++q) {
      if (q == r) continue;
      lower_row(first + r * stride, before.data() + int64_t{q} * count,
                squares[static_cast<size_t>(std::abs(q - r))], count);
    }
  }
}

/// Squared distances in mm to the boxes of the voxels that are 0 in `squares`.
void lower_everywhere(Volume<float>& squares, double most_mm, int threads) {
  const Vec3i size = squares.size();
  const Vec3d h = squares.grid().spacing_mm;
  const int64_t slice = int64_t{size.x} * size.y;
  const auto along = [&](int axis, int64_t planes, const auto& plane) {
    const std::vector<float> by_step = squares_by_step(h[axis], most_mm, size[axis]);
    parallel_for(threads, planes, fair_grain(threads, planes, 64), [&](int64_t begin, int64_t end) {
      std::vector<float> before;
      for (int64_t p = begin; p < end; ++p) plane(p, by_step, before);
    });
  };
  float* data = squares.data();
  along(0, int64_t{size.y} * size.z, [&](int64_t p, const auto& by_step, auto& before) {
    lower_plane(data + p * size.x, 1, size.x, 1, by_step, before);
  });
  along(1, size.z, [&](int64_t p, const auto& by_step, auto& before) {
    lower_plane(data + p * slice, size.x, size.y, size.x, by_step, before);
  });
  along(2, size.y, [&](int64_t p, const auto& by_step, auto& before) {
    lower_plane(data + p * size.x, slice, size.z, size.x, by_step, before);
  });
}

}  // namespace

Volume<float> distance_to_faces(const Volume<uint8_t>& mask, double most_mm, int threads) {
  const auto squares_to = [&](bool inside) {
    Volume<float> squares(mask.grid());
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      squares[i] = (mask[i] != 0) == inside ? 0.0F : kFar;
    }
    lower_everywhere(squares, most_mm, threads);
    return squares;
  };
  Volume<float> distance_mm = squares_to(true);
  const Volume<float> inwards = squares_to(false);
  const auto most = static_cast<float>(most_mm);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    const float mm = std::min(std::sqrt(std::max(distance_mm[i], inwards[i])), most);
    distance_mm[i] = mask[i] != 0 ? -mm : mm;
  }
  return distance_mm;
}

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

  /// Returns the time at a voxel from those of its final neighbours: the largest root of sum ((t -
  /// t_axis) / h_axis)^2 = 1 / speed^2 over the axes whose neighbour is earlier than t.
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

namespace {

/// Adds another surface of a label.
void unite(std::map<int32_t, FirstSurface>& surfaces, int32_t label, Volume<float> phi_mm,
           bool is_of_balls) {
  FirstSurface& surface = surfaces[label];
  surface.label = label;
  surface.is_of_balls = surface.is_of_balls && is_of_balls;
  if (surface.phi_mm.empty()) {
    surface.phi_mm = std::move(phi_mm);
    return;
  }
  for (int64_t i = 0; i < phi_mm.voxels(); ++i) {
    surface.phi_mm[i] = std::min(surface.phi_mm[i], phi_mm[i]);
  }
}

using BallsByLabel = std::map<int32_t, std::vector<Ball>>;

BallsByLabel balls_of(const SegmentRequest& request) {
  const Grid& grid = request.image.grid();
  BallsByLabel balls;
  for (size_t s = 0; s < request.spheres.size(); ++s) {
    const Sphere& sphere = request.spheres[s];
    balls[sphere.label].push_back(ball_of(sphere, grid, "seed " + std::to_string(s + 1)));
  }
  return balls;
}

void add_labels(std::map<int32_t, FirstSurface>& surfaces, const LabelVolume& labels,
                double most_mm, int threads) {
  if (labels.empty()) return;
  std::map<int32_t, int64_t> found;
  for (const int32_t label : labels) {
    if (label != 0) ++found[label];
  }
  if (found.empty()) {
    throw InputError(
        "the labelmap to start from has no voxel that is not 0: give one with the "
        "structure's labels, or a sphere");
  }
  for (const auto& [label, voxels] : found) {
    const auto mask =
        mapped<uint8_t>(labels, [wanted = label](int32_t other) { return other == wanted; });
    unite(surfaces, label, distance_to_faces(mask, most_mm, threads), false);
  }
}

void add_phi(std::map<int32_t, FirstSurface>& surfaces, const SegmentRequest& request,
             double most_mm) {
  bool is_any_inside = request.initial_phi.empty();
  for (const InitialPhi& initial : request.initial_phi) {
    Volume<float> phi_mm(initial.phi_mm.grid());
    for (int64_t i = 0; i < phi_mm.voxels(); ++i) {
      const double value = static_cast<double>(initial.phi_mm[i]) - request.initial_level_mm;
      if (std::isnan(value)) {
        throw InputError(
            "the level-set function to start from has voxels that are not a number: "
            "write it again without them");
      }
      phi_mm[i] = static_cast<float>(std::clamp(value, -most_mm, most_mm));
    }
    is_any_inside = is_any_inside || has_inside(phi_mm);
    unite(surfaces, initial.label, std::move(phi_mm), false);
  }
  if (!is_any_inside) {
    throw InputError(
        "the level-set function to start from is nowhere below " +
        std::to_string(request.initial_level_mm) +
        " mm, so that nothing is inside: inside is negative here; choose another level");
  }
}

/// Distance to a surface that is no ball's, far beyond the clamp.
Volume<float> distance_from(const Volume<float>& phi_mm, double reach_mm, int threads) {
  Volume<uint8_t> mask(phi_mm.grid());
  int64_t inside = 0;
  for (int64_t i = 0; i < phi_mm.voxels(); ++i) inside += mask[i] = phi_mm[i] < 0 ? 1 : 0;
  const auto reach = static_cast<float>(reach_mm);
  if (inside == 0) return Volume<float>(phi_mm.grid(), reach);
  if (inside == phi_mm.voxels()) return Volume<float>(phi_mm.grid(), -reach);
  Volume<float> distance_mm = filters::signed_distance_mm(mask, threads);
  // The centres of the outermost voxels inside are at 0 there, and are inside here.
  for (int64_t i = 0; i < phi_mm.voxels(); ++i) {
    if (mask[i] != 0) distance_mm[i] = std::min(distance_mm[i], phi_mm[i]);
  }
  return distance_mm;
}

}  // namespace

bool has_inside(const Volume<float>& phi) {
  return std::any_of(phi.begin(), phi.end(), [](float value) { return value < 0; });
}

std::vector<FirstSurface> first_surfaces(const SegmentRequest& request, double most_mm,
                                         double reach_mm, int threads) {
  if (request.spheres.empty() && request.initial_labels.empty() && request.initial_phi.empty()) {
    throw UsageError(
        "nothing to start from: give a sphere (--sphere-mm or --sphere-index), a "
        "labelmap or a level-set function");
  }
  const BallsByLabel balls = balls_of(request);
  std::map<int32_t, FirstSurface> surfaces;
  for (const auto& [label, of_label] : balls) {
    unite(surfaces, label, distance_to_balls(of_label, request.image.grid(), most_mm, threads),
          true);
  }
  add_labels(surfaces, request.initial_labels, most_mm, threads);
  add_phi(surfaces, request, most_mm);
  std::vector<FirstSurface> list;
  for (auto& [label, surface] : surfaces) {
    if (reach_mm > 0 && surface.is_of_balls) {
      surface.reach_mm =
          distance_to_balls(balls.at(label), request.image.grid(), reach_mm, threads);
    } else if (reach_mm > 0) {
      surface.reach_mm = distance_from(surface.phi_mm, reach_mm, threads);
    }
    list.push_back(std::move(surface));
  }
  return list;
}

}  // namespace larch::levelset
