// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/launch.h"

#include <cmath>
#include <string>

#include "larch/core/error.h"

namespace larch::hdn {
namespace {

Segment start_segment(const ResidentDetector& detector, uint64_t slots) {
  if (slots >= kMaximumSlots) {
    throw InputError("a detector has " + std::to_string(slots) +
                     " hypotheses, more than 2^24: the image is too large for the coarsest level, "
                     "or too much is tried; train with more halvings or fewer candidates");
  }
  Segment s;
  s.detector = detector.view();
  s.keep = detector.stage.keep;
  s.slots = static_cast<uint32_t>(slots);
  return s;
}

uint64_t slots_of_cubes(int32_t half_width) {
  const auto side = 2 * static_cast<uint64_t>(half_width) + 1;
  return pose::kMaximumClusters * side * side * side;
}

}  // namespace

Segment root_segment(const ResidentDetector& detector, const Vec3i& size, const Pose& base) {
  Segment s = start_segment(detector, static_cast<uint64_t>(int64_t{size.x} * size.y * size.z));
  s.base = base;
  return s;
}

Segment around_segment(const ResidentDetector& detector, const Seed* seeds,
                       const int32_t* seed_count) {
  Segment s = start_segment(detector, slots_of_cubes(kAroundVoxels));
  s.search = SearchKind::kAround;
  s.half_width = kAroundVoxels;
  s.seeds = seeds;
  s.seed_count = seed_count;
  return s;
}

Segment prior_segment(const ResidentDetector& detector, const Seed* seeds,
                      const int32_t* seed_count, const pose::RelativeGaussian& to_parent,
                      double prior_weight, double spacing_mm) {
  const pose::CentreGaussian prior = pose::centre_gaussian(to_parent, kPriorLimit);
  // The cube lies around the voxel that is nearest to the seed.
  const double half = std::ceil(prior.reach_mm / spacing_mm + 0.5);
  if (half > 60) {
    throw InputError("the place of a structure relative to its parent varies by " +
                     std::to_string(std::lround(prior.reach_mm)) +
                     " mm, too much to search around it; leave the parent out");
  }
  Segment s = start_segment(detector, slots_of_cubes(static_cast<int32_t>(half)));
  s.search = SearchKind::kPrior;
  s.half_width = static_cast<int32_t>(half);
  s.prior = prior;
  s.limit = kPriorLimit;
  s.beta = prior_weight;
  s.seeds = seeds;
  s.seed_count = seed_count;
  return s;
}

Segment pose_segment(const ResidentDetector& detector, const Candidate* in, const int32_t* in_count,
                     int32_t most_in) {
  Segment s = start_segment(
      detector, static_cast<uint64_t>(most_in) * static_cast<uint64_t>(detector.members()));
  s.in = in;
  s.in_count = in_count;
  return s;
}

pose::ClusterRule cluster_rule(const Model& model, int level, double agreement_rad) {
  constexpr double kPi = 3.141592653589793, kWiderForMean = 3;
  const auto cosine = [](double angle) {
    return angle >= kPi ? 0 : cosine_of_turns(angle / (4 * kPi));
  };
  const double radius_mm = 2 * model.spacing_mm(level);
  return {{radius_mm, cosine(agreement_rad)},
          model.mean_of_first,
          {kWiderForMean * radius_mm, cosine(kWiderForMean * agreement_rad)}};
}

StageView plan_launch(StageKind kind, std::span<Segment> segments) {
  StageView view;
  view.kind = kind;
  view.segment_count = static_cast<int32_t>(segments.size());
  for (Segment& s : segments) {
    s.first_slot = view.slots;
    s.first_kept = view.kept;
    view.slots += s.slots;
    view.kept += static_cast<uint32_t>(s.keep);
  }
  return view;
}

}  // namespace larch::hdn
