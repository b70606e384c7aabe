// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/hdn/stages.h"

namespace larch::hdn {

/// Half the width of the cubes that a level searches around the clusters of the one before: two
/// voxels of that.
constexpr int32_t kAroundVoxels = 4;

/// A segment of a position stage. `seeds` and `seed_count` are of the device; none for a root
/// search, whose nodes take rotation and edges of `base`.
Segment root_segment(const ResidentDetector& detector, const Vec3i& size, const Pose& base);
Segment around_segment(const ResidentDetector& detector, const Seed* seeds,
                       const int32_t* seed_count);
/// Throws InputError if the Gaussian is so wide that a launch cannot hold its nodes.
Segment prior_segment(const ResidentDetector& detector, const Seed* seeds,
                      const int32_t* seed_count, const pose::RelativeGaussian& to_parent,
                      double prior_weight, double spacing_mm);

/// A segment of an orientation or scale stage; at most `most_in` candidates come in.
Segment pose_segment(const ResidentDetector& detector, const Candidate* in, const int32_t* in_count,
                     int32_t most_in);

/// The rule by which candidates of a level agree: within two voxels and `agreement_rad`.
pose::ClusterRule cluster_rule(const Model& model, int level, double agreement_rad);

/// Numbers the slots of segments that are launched together. The caller adds images, segments on
/// the device, keys and probabilities. Throws InputError for a segment of more than kMaximumSlots
/// hypotheses.
StageView plan_launch(StageKind kind, std::span<Segment> segments);

}  // namespace larch::hdn
