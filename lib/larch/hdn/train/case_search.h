// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/hdn/launch.h"
#include "larch/hdn/train/train.h"

namespace larch::hdn {

/// The images of a training case at a level, on context.device. Without channels no box sums.
struct CaseImages {
  std::vector<image::LevelImage> pyramid;
  LevelImages level;
};
CaseImages make_case_images(const TrainingCase& c, const Model& model, int level,
                            std::span<const image::ChannelSpec> channels, const Vec3i& reach,
                            const Context& context);

/// The places where a detector of a structure looks in a case, on the host.
struct CaseSearch {
  SearchKind search = SearchKind::kRoot;
  Pose base{};         ///< kRoot
  Vec3d avoided_mm{};  ///< as in Segment
  double avoided_square = 0;
  std::vector<Seed> seeds{};           ///< the others; none: nothing is tried
  pose::RelativeGaussian to_parent{};  ///< kPrior
  double prior_weight = 1;
  std::vector<Candidate> candidates{};  ///< orientation and scale

  bool is_empty(StageKind kind) const {
    return kind == StageKind::kPosition ? search != SearchKind::kRoot && seeds.empty()
                                        : candidates.empty();
  }
};

/// The segment of a search whose seeds and candidates are on the host too: for the CPU, and for
/// going over its hypotheses.
struct HostSegment {
  Segment segment;
  int32_t seed_count = 0, candidate_count = 0;  ///< that the segment points to
};
void make_segment(const CaseSearch& search, const ResidentDetector& detector,
                  const LevelViews& level, HostSegment& out);

/// Returns the candidates that a detector keeps in one case.
std::vector<Candidate> search_case(const CaseSearch& search, const ResidentDetector& detector,
                                   const CaseImages& images, const Context& context);

/// The clusters of candidates, on the host.
std::vector<Cluster> cluster_candidates(const std::vector<Candidate>& candidates,
                                        const pose::ClusterRule& rule);

}  // namespace larch::hdn
