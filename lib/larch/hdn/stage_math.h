// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstdint>

#include "larch/core/portable_math.h"
#include "larch/features/haar_math.h"
#include "larch/features/steerable/frame_trees.h"
#include "larch/pose/aggregate_math.h"
#include "larch/pose/relative.h"
#include "larch/tree/forest.h"
#include "larch/tree/traversal_math.h"

// A stage of marginal space learning on one item: from the number of a hypothesis to its pose, its
// probability and the key that it is sorted by. Nothing of a hypothesis is stored but the key and
// the probability. Poses are in mm along the axes of the working grid, from its first voxel.
namespace larch::hdn {

using pose::Candidate;
using pose::Cluster;

enum class StageKind : uint8_t { kPosition = 0, kOrientation = 1, kScale = 2 };

/// A place that a position stage searches around: a cluster of the level before, or where the
/// cluster of a parent lets a child be expected.
struct Seed {
  Pose pose;
  Quaternion frame{};  ///< of the Gaussian: the rotation of the parent
  double weight = 1;
};

/// The part of a detector that a launch needs; the pointers are of the launch's device.
struct DetectorView {
  const tree::TreeView* trees = nullptr;
  uint32_t tree_count = 0;
  tree::ForestView forest;              ///< in place of the trees where it has nodes
  const features::Tap* taps = nullptr;  ///< Haar features, as features::HaarView has them
  const uint32_t* first_tap = nullptr;
  const features::SteerableFeature* features = nullptr;  ///< null: Haar features
  const Quaternion* rotations = nullptr;                 ///< orientation: what is tried, by number
  const Vec3d* log_scales = nullptr;                     ///< scale
  int32_t members = 1;                                   ///< of what is tried
};

/// The nodes of a position stage.
enum class SearchKind : uint8_t {
  kRoot = 0,    ///< everywhere
  kAround = 1,  ///< cubes around the seeds
  kPrior = 2,   ///< ellipsoids of the Gaussian around the seeds
};

/// The hypotheses of one structure in a launch that several structures share.
struct Segment {
  DetectorView detector;
  uint64_t first_slot = 0;  ///< of its hypotheses among those of the launch
  uint32_t slots = 0;
  uint32_t first_kept = 0;
  int32_t keep = 1;
  SearchKind search = SearchKind::kRoot;
  Pose base;                  ///< kRoot: the rotation and the edges of all nodes
  Vec3d avoided_mm{};         ///< no node is tried that is nearer to it
  double avoided_square = 0;  ///< than the root of this
  int32_t half_width = 0;     ///< of cubes, in voxels; kPrior: of cubes that hold the ellipsoids
  pose::CentreGaussian prior;
  double limit = 0;  ///< largest square of the Mahalanobis distance
  double beta = 1;   ///< weight of the logarithm of the prior
  const Seed* seeds = nullptr;
  const int32_t* seed_count = nullptr;
  const Candidate* in = nullptr;  ///< orientation and scale
  const int32_t* in_count = nullptr;
  Candidate* out = nullptr;
  int32_t* out_count = nullptr;
  float* best = nullptr;  ///< where not null: the probability of the first candidate
};

/// The images that a launch reads.
struct LevelViews {
  Vec3i size{};
  image::LevelScale scale;
  image::ImageExtent extent;
  const image::IntegralLayout* layouts = nullptr;
  const uint32_t* integral = nullptr;
  features::SteerableImages steerable;
};

/// A launch.
struct StageView {
  StageKind kind = StageKind::kPosition;
  LevelViews level;
  const Segment* segments = nullptr;
  int32_t segment_count = 0;
  uint64_t slots = 0;  ///< of all segments
  uint32_t kept = 0;
  uint64_t* keys = nullptr;  ///< by slot
  float* probabilities = nullptr;
};

constexpr uint64_t kMaximumSlots = uint64_t{1} << 24;  ///< of a segment

/// Keys order hypotheses by segment, then by descending score, then by number, where the greatest
/// key comes first; a score that is no number is the lowest. A slot without hypothesis has the
/// score 0, which no number has.
LARCH_HD uint32_t score_bits(float score) {
  return score != score ? 1 : ordered_bits(score);
}
LARCH_HD uint64_t sort_key(int32_t segment, float score, uint64_t number) {
  return static_cast<uint64_t>(255 - segment) << 56 |
         static_cast<uint64_t>(score_bits(score)) << 24 | (kMaximumSlots - 1 - number);
}
LARCH_HD uint64_t empty_key(int32_t segment) {
  return static_cast<uint64_t>(255 - segment) << 56;
}
LARCH_HD uint32_t score_bits_of_key(uint64_t key) {
  return static_cast<uint32_t>(key >> 24);
}
LARCH_HD bool is_empty_key(uint64_t key) {
  return score_bits_of_key(key) == 0;
}
LARCH_HD uint64_t number_of_key(uint64_t key) {
  return kMaximumSlots - 1 - (key & (kMaximumSlots - 1));
}

LARCH_HD int32_t nearest_voxel(double voxel) {
  return static_cast<int32_t>(floor(voxel < -1e6 ? -1e6 : voxel > 1e6 ? 1e6 : voxel + 0.5));
}
LARCH_HD Vec3i nearest_voxel(const Vec3d& mm, const image::LevelScale& scale) {
  return {nearest_voxel(scale.voxel(mm.x)), nearest_voxel(scale.voxel(mm.y)),
          nearest_voxel(scale.voxel(mm.z))};
}
LARCH_HD Vec3d mm_of_voxel(const Vec3i& v, const image::LevelScale& scale) {
  return {scale.mm(v.x), scale.mm(v.y), scale.mm(v.z)};
}

/// Returns the distance of a node from a seed: steps between voxels, or the square of the
/// Mahalanobis distance.
LARCH_HD double seed_distance(const Segment& s, const Seed& seed, const Vec3i& node,
                              const image::LevelScale& scale) {
  if (s.search == SearchKind::kPrior) {
    const Vec3d d = mm_of_voxel(node, scale) - seed.pose.centre_mm;
    return pose::mahalanobis_square(s.prior, rotate(conjugate(seed.frame), d));
  }
  const Vec3i d = node - nearest_voxel(seed.pose.centre_mm, scale);
  int32_t most = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const int32_t steps = d[axis] < 0 ? -d[axis] : d[axis];
    most = steps > most ? steps : most;
  }
  return most;
}

/// A node of a position stage; `seed` < 0: slot without hypothesis.
struct Node {
  Vec3i voxel{};
  int32_t seed = -1;
};

/// Tells whether a segment tries a place: there is image, and it is not avoided.
LARCH_HD bool is_tried(const Segment& s, const LevelViews& level, const Vec3d& mm) {
  const Vec3d off = mm - s.avoided_mm;
  return !(dot(off, off) < s.avoided_square) && level.extent.holds(mm);
}

/// A node around a seed belongs to the nearest one, of equals to the first, so that every node is
/// tried once.
LARCH_HD Node node_of(const Segment& s, const LevelViews& level, uint64_t number) {
  Node node;
  const Vec3i& size = level.size;
  if (s.search == SearchKind::kRoot) {
    node.voxel = voxel_of(static_cast<int64_t>(number), size);
    node.seed = is_tried(s, level, mm_of_voxel(node.voxel, level.scale)) ? 0 : -1;
    return node;
  }
  const int32_t side = 2 * s.half_width + 1;
  const auto cube = static_cast<uint64_t>(side) * side * side;
  const auto k = static_cast<int32_t>(number / cube);
  if (k >= *s.seed_count) return node;
  const auto offset = static_cast<int32_t>(number % cube);
  const Vec3i from{offset % side - s.half_width, offset / side % side - s.half_width,
                   offset / (side * side) - s.half_width};
  node.voxel = nearest_voxel(s.seeds[k].pose.centre_mm, level.scale) + from;
  for (int axis = 0; axis < 3; ++axis) {
    if (node.voxel[axis] < 0 || node.voxel[axis] >= size[axis]) return node;
  }
  if (!is_tried(s, level, mm_of_voxel(node.voxel, level.scale))) return node;
  const double own = seed_distance(s, s.seeds[k], node.voxel, level.scale);
  if (s.search == SearchKind::kPrior && own > s.limit) return node;
  for (int32_t j = 0; j < *s.seed_count; ++j) {
    if (j == k) continue;
    const double other = seed_distance(s, s.seeds[j], node.voxel, level.scale);
    if (other < own || (other == own && j < k)) return node;
  }
  node.seed = k;
  return node;
}

LARCH_HD Pose pose_at_node(const Segment& s, const LevelViews& level, const Node& node) {
  Pose pose = s.search == SearchKind::kRoot ? s.base : s.seeds[node.seed].pose;
  pose.centre_mm = mm_of_voxel(node.voxel, level.scale);
  return pose;
}

/// The pose of an orientation or scale hypothesis: the candidate's, turned in its own frame, or
/// with edges times factors. False for a slot without hypothesis.
LARCH_HD bool pose_at_candidate(const Segment& s, StageKind kind, uint64_t number, Pose& pose) {
  const auto candidate = static_cast<int32_t>(number / static_cast<uint64_t>(s.detector.members));
  if (candidate >= *s.in_count) return false;
  const auto member = number % static_cast<uint64_t>(s.detector.members);
  pose = s.in[candidate].pose;
  if (kind == StageKind::kOrientation) {
    pose.rotation = canonical(pose.rotation * s.detector.rotations[member]);
  } else {
    const Vec3d& factors = s.detector.log_scales[member];
    for (int axis = 0; axis < 3; ++axis) pose.edges_mm[axis] *= exp_of(factors[axis]);
  }
  return true;
}

/// The pose of a slot that has one.
LARCH_HD bool pose_of_slot(const StageView& stage, const Segment& s, uint64_t number, Pose& pose) {
  if (stage.kind != StageKind::kPosition) {
    return pose_at_candidate(s, stage.kind, number, pose);
  }
  const Node node = node_of(s, stage.level, number);
  if (node.seed < 0) return false;
  pose = pose_at_node(s, stage.level, node);
  return true;
}

struct NodeResponse {
  features::HaarView haar;
  Vec3i voxel;
  LARCH_HD int32_t operator()(uint32_t feature, size_t) const { return haar.value(feature, voxel); }
};

LARCH_HD features::FrameResponse frame_response(const StageView& stage, const Segment& s,
                                                const Pose& pose) {
  return {s.detector.features, stage.level.steerable, features::frame_of(pose, stage.level.scale)};
}

/// Returns the probability of the structure, by boosting trees or a forest.
template <class Response, class Lanes>
LARCH_HD float posterior(const DetectorView& d, const Response& response, const Lanes& lanes) {
  if (d.forest.nodes != nullptr) return tree::item_probability(d.forest, 1, response, 0, lanes);
  return tree::probability_float(
      tree::ensemble_posterior(d.trees, d.tree_count, response, 0, lanes));
}

/// ln p + beta ln sum_k w_k N(centre; seed k): the score of a node with a prior.
LARCH_HD float score_with_prior(const Segment& s, const LevelViews& level, const Node& node,
                                float p) {
  constexpr double kMinimum = 1e-12;
  double sum = 0, weights = 0;
  for (int32_t k = 0; k < *s.seed_count; ++k) {
    const double square = seed_distance(s, s.seeds[k], node.voxel, level.scale);
    sum += s.seeds[k].weight * exp_of(-0.5 * square);
    weights += s.seeds[k].weight;
  }
  const double mixed = weights > 0 ? sum / weights : 0;
  const auto probability = static_cast<double>(p);
  return static_cast<float>(log_of(probability > kMinimum ? probability : kMinimum) +
                            s.beta *
                                (s.prior.log_density + log_of(mixed > 1e-300 ? mixed : 1e-300)));
}

/// Returns the score below which a candidate is none: a tenth of the best one's probability.
/// `best`: the score of that, which with a prior is a logarithm.
LARCH_HD float least_score(const Segment& s, StageKind kind, float best) {
  constexpr float kShare = 0.1F, kLogShare = -2.302585F;
  const bool has_prior = kind == StageKind::kPosition && s.search == SearchKind::kPrior;
  return has_prior ? best + kLogShare : best * kShare;
}

/// Returns the log odds of a probability, which a detector of few samples does not know beyond 1 in
/// 10000.
inline double log_odds(float probability) {
  constexpr double kMinimum = 1e-4;
  const double p = std::clamp(static_cast<double>(probability), kMinimum, 1 - kMinimum);
  return log_of(p / (1 - p));
}

/// Returns the segment of a slot.
LARCH_HD int32_t segment_of_slot(const StageView& stage, uint64_t slot) {
  int32_t i = 0;
  while (i + 1 < stage.segment_count && slot >= stage.segments[i + 1].first_slot) ++i;
  return i;
}

/// Evaluates the hypothesis of a slot: its key and its probability. `lanes`: those that do it
/// together.
template <StageKind kind, class Lanes = tree::OneLane>
LARCH_HD void score_slot(const StageView& stage, uint64_t slot, const Lanes& lanes = {}) {
  const int32_t index = segment_of_slot(stage, slot);
  const Segment& s = stage.segments[index];
  const DetectorView& d = s.detector;
  const uint64_t number = slot - s.first_slot;
  if (lanes.index() == 0) {
    stage.keys[slot] = empty_key(index);
    stage.probabilities[slot] = 0;
  }
  float p = 0, score = 0;
  if constexpr (kind == StageKind::kPosition) {
    const Node node = node_of(s, stage.level, number);
    if (node.seed < 0) return;
    p = d.features == nullptr
            ? posterior(
                  d,
                  NodeResponse{{d.taps, d.first_tap, stage.level.layouts, stage.level.integral},
                               node.voxel},
                  lanes)
            : posterior(d, frame_response(stage, s, pose_at_node(s, stage.level, node)), lanes);
    score = s.search == SearchKind::kPrior ? score_with_prior(s, stage.level, node, p) : p;
  } else {
    Pose pose;
    if (!pose_at_candidate(s, kind, number, pose)) return;
    p = posterior(d, frame_response(stage, s, pose), lanes);
    score = p;
  }
  if (lanes.index() != 0) return;
  stage.keys[slot] = sort_key(index, score, number);
  stage.probabilities[slot] = p;
}

/// Writes kept candidate `kept` of the launch, of keys that are sorted from the first slot of each
/// segment on, as far as they are kept.
LARCH_HD void keep_candidate(const StageView& stage, const uint64_t* sorted, uint32_t kept) {
  int32_t index = 0;
  while (index + 1 < stage.segment_count && kept >= stage.segments[index + 1].first_kept) ++index;
  const Segment& s = stage.segments[index];
  const uint32_t rank = kept - s.first_kept;
  const auto key_at = [&](uint32_t r) {
    return r < s.slots ? sorted[s.first_slot + r] : empty_key(index);
  };
  const uint64_t key = key_at(rank), first = key_at(0);
  const uint32_t least =
      score_bits(least_score(s, stage.kind, from_ordered_bits(score_bits_of_key(first))));
  const auto is_kept = [&](uint64_t k) {
    return !is_empty_key(k) && score_bits_of_key(k) >= least;
  };
  if (!is_kept(key)) {
    if (rank == 0) *s.out_count = 0;
    return;
  }
  const bool is_last = rank + 1 == static_cast<uint32_t>(s.keep) || !is_kept(key_at(rank + 1));
  if (is_last) *s.out_count = static_cast<int32_t>(rank) + 1;
  const uint64_t number = number_of_key(key);
  Candidate candidate;
  pose_of_slot(stage, s, number, candidate.pose);
  candidate.probability = stage.probabilities[s.first_slot + number];
  candidate.score = from_ordered_bits(score_bits_of_key(key));
  s.out[rank] = candidate;
  if (rank == 0 && s.best != nullptr) *s.best = candidate.probability;
}

/// A structure is searched around its own cluster.
LARCH_HD Seed own_seed(const Cluster& cluster) {
  return {cluster.pose, cluster.pose.rotation, cluster.weight};
}
/// A child is expected at the mean of its relative poses from a cluster of its parent.
LARCH_HD Seed child_seed(const Cluster& parent, const pose::RelativePose& mean) {
  return {pose::pose_from_relative(parent.pose, mean), parent.pose.rotation, parent.weight};
}

}  // namespace larch::hdn
