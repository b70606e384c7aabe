// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/hdn/model.h"
#include "larch/tree/flat_tree.h"

namespace larch::hdn {

/// A detector on one device.
struct ResidentDetector {
  Stage stage{};
  tree::ResidentTrees trees;  ///< or
  tree::ResidentForest forest;
  Buffer<features::Tap> taps;
  Buffer<uint32_t> first_tap;
  Buffer<features::SteerableFeature> features;
  Buffer<Quaternion> rotations;
  Buffer<Vec3d> log_scales;

  DetectorView view() const;
  int32_t members() const;
};
ResidentDetector make_resident(const Detector& detector, const tree::EvaluationRule& rule,
                               const Device& device);

/// The images of one level on one device, with what the views point to.
struct LevelImages {
  Buffer<image::IntegralLayout> layouts;
  Buffer<uint32_t> integral;
  LevelViews views;
};

/// The rules by which the images of a level are made.
struct LevelSpec {
  std::span<const image::ChannelSpec> channels;
  image::Padding padding = image::Padding::kClamp;
  Vec3i reach{};
  int unit = 1;  ///< largest integer of the intensity rule
};
/// Makes the images of pyramid[index], with pyramid[index + 1] and pyramid[index + 2] for coarser
/// features; the pyramid outlives the result. Without channels nothing is integrated.
LevelImages make_level_images(const std::vector<image::LevelImage>& pyramid, int index,
                              const image::LevelScale& scale, const LevelSpec& spec,
                              const Context& context);

/// Scores the hypotheses of a launch from slot `begin` to `end` - 1; keeps the best of each segment
/// when all are scored; or does both. All pointers are of context.device; on a GPU the calls return
/// before the work is done.
void score_stage(const StageView& stage, uint64_t begin, uint64_t end, const Context& context);
void keep_stage(const StageView& stage, const Context& context);
void run_stage(const StageView& stage, const Context& context);

/// From candidates to clusters.
struct ClusterJob {
  const Candidate* candidates = nullptr;
  const int32_t* count = nullptr;
  pose::ClusterRule rule;
  Cluster* clusters = nullptr;  ///< room for pose::kMaximumClusters
  int32_t* cluster_count = nullptr;
};
/// From clusters to the seeds of the next position stage: of the structure itself, or of a child.
struct SeedJob {
  const Cluster* clusters = nullptr;
  const int32_t* cluster_count = nullptr;
  Seed* seeds = nullptr;  ///< room for pose::kMaximumClusters
  int32_t is_child = 0;
  pose::RelativePose mean{};  ///< of the child
};
LARCH_HD void make_seed(const SeedJob& job, int32_t k) {
  if (k >= *job.cluster_count) return;
  const Cluster& cluster = job.clusters[k];
  job.seeds[k] = job.is_child != 0 ? child_seed(cluster, job.mean) : own_seed(cluster);
}
/// The jobs are on context.device.
void make_clusters(const Buffer<ClusterJob>& jobs, const Context& context);
void make_seeds(const Buffer<SeedJob>& jobs, const Context& context);

namespace cpu {
void score_stage(const StageView& stage, uint64_t begin, uint64_t end, const Context& context);
void keep_stage(const StageView& stage, const Context& context);
void make_clusters(const Buffer<ClusterJob>& jobs, const Context& context);
void make_seeds(const Buffer<SeedJob>& jobs, const Context& context);
}  // namespace cpu
namespace cuda {
void score_stage(const StageView& stage, uint64_t begin, uint64_t end, const Context& context);
void keep_stage(const StageView& stage, const Context& context);
void make_clusters(const Buffer<ClusterJob>& jobs, const Context& context);
void make_seeds(const Buffer<SeedJob>& jobs, const Context& context);
}  // namespace cuda

/// Half the width of the cubes that a level searches around the clusters of the one before: two
/// voxels of that.
constexpr int32_t kAroundVoxels = 4;

/// Returns a segment of a position stage. `seeds` and `seed_count` are of the device; none for a
/// root search, whose nodes take rotation and edges of `base`.
Segment root_segment(const ResidentDetector& detector, const Vec3i& size, const Pose& base);
Segment around_segment(const ResidentDetector& detector, const Seed* seeds,
                       const int32_t* seed_count);
/// Throws InputError if the Gaussian is so wide that a launch cannot hold its nodes.
Segment prior_segment(const ResidentDetector& detector, const Seed* seeds,
                      const int32_t* seed_count, const pose::RelativeGaussian& to_parent,
                      double prior_weight, double spacing_mm);

/// Returns a segment of an orientation or scale stage; at most `most_in` candidates come in.
Segment pose_segment(const ResidentDetector& detector, const Candidate* in, const int32_t* in_count,
                     int32_t most_in);

/// Returns the rule by which candidates of a level agree: within two voxels and `agreement_rad`.
pose::ClusterRule cluster_rule(const Model& model, int level, double agreement_rad);

/// Numbers the slots of segments that are launched together. The caller adds images, segments on
/// the device, keys and probabilities. Throws InputError for a segment of more than kMaximumSlots
/// hypotheses.
StageView plan_launch(StageKind kind, std::span<Segment> segments);

}  // namespace larch::hdn
