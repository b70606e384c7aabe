// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/initial/first_surfaces.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <string>

#include "larch/core/error.h"
#include "larch/filters/distance.h"
#include "larch/levelset/initial/label_surface.h"

namespace larch::levelset {
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
