// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/stages.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/features/steerable/steerable.h"

namespace larch::hdn {
namespace {

constexpr Dispatch<void(const StageView&, uint64_t, uint64_t, const Context&)> kScoreStage{
    "hdn::score_stage", cpu::score_stage, LARCH_CUDA_FN(cuda::score_stage)};
constexpr Dispatch<void(const StageView&, const Context&)> kKeepStage{
    "hdn::keep_stage", cpu::keep_stage, LARCH_CUDA_FN(cuda::keep_stage)};
constexpr Dispatch<void(const Buffer<ClusterJob>&, const Context&)> kMakeClusters{
    "hdn::make_clusters", cpu::make_clusters, LARCH_CUDA_FN(cuda::make_clusters)};
constexpr Dispatch<void(const Buffer<SeedJob>&, const Context&)> kMakeSeeds{
    "hdn::make_seeds", cpu::make_seeds, LARCH_CUDA_FN(cuda::make_seeds)};

}  // namespace

DetectorView ResidentDetector::view() const {
  return {trees.views.data(), static_cast<uint32_t>(trees.views.size()),
          forest.view,        taps.data(),
          first_tap.data(),   features.data(),
          rotations.data(),   log_scales.data(),
          members()};
}

int32_t ResidentDetector::members() const {
  if (stage.kind == StageKind::kPosition) return 1;
  return static_cast<int32_t>(stage.kind == StageKind::kOrientation ? rotations.size()
                                                                    : log_scales.size());
}

ResidentDetector make_resident(const Detector& detector, const tree::EvaluationRule& rule,
                               const Device& device) {
  ResidentDetector resident;
  resident.stage = detector.stage;
  if (detector.is_forest()) {
    resident.forest = tree::make_resident(detector.forest, detector.forest.nodes, device);
  } else {
    resident.trees =
        features::resident_trees(detector.steerable, tree::flatten(detector.trees, rule), device);
  }
  std::vector<features::Tap> taps;
  std::vector<uint32_t> first{0};
  for (const features::HaarFeature& feature : detector.haar) {
    for (const features::Tap& tap : features::corner_taps(feature)) taps.push_back(tap);
    first.push_back(static_cast<uint32_t>(taps.size()));
  }
  resident.taps = {device, taps};
  resident.first_tap = {device, first};
  resident.features = {device, detector.steerable};
  resident.rotations = {device, detector.stage.rotations};
  resident.log_scales = {device, detector.stage.log_scales};
  return resident;
}

LevelImages make_level_images(const std::vector<image::LevelImage>& pyramid, int index,
                              const image::LevelScale& scale, const LevelSpec& spec,
                              const Context& context) {
  LevelImages images;
  const image::LevelImage& own = pyramid.at(static_cast<size_t>(index));
  images.views.size = own.size;
  images.views.scale = scale;
  images.views.extent = own.extent;
  images.views.steerable = features::steerable_images(pyramid, index, spec.unit);
  if (spec.channels.empty()) return images;
  const std::vector<image::IntegralLayout> layouts =
      image::layouts_for(own.size, spec.channels, spec.reach);
  images.layouts = {context.device, layouts};
  images.integral = {context.device, static_cast<size_t>(image::total_elements(layouts))};
  image::integrate_resident(own.voxels, own.size, spec.channels, spec.padding, layouts,
                            images.integral, context);
  images.views.layouts = images.layouts.data();
  images.views.integral = images.integral.data();
  return images;
}

void score_stage(const StageView& stage, uint64_t begin, uint64_t end, const Context& context) {
  kScoreStage(context.device, stage, begin, end, context);
}
void keep_stage(const StageView& stage, const Context& context) {
  kKeepStage(context.device, stage, context);
}
void run_stage(const StageView& stage, const Context& context) {
  score_stage(stage, 0, stage.slots, context);
  keep_stage(stage, context);
}
void make_clusters(const Buffer<ClusterJob>& jobs, const Context& context) {
  kMakeClusters(context.device, jobs, context);
}
void make_seeds(const Buffer<SeedJob>& jobs, const Context& context) {
  kMakeSeeds(context.device, jobs, context);
}

namespace cpu {
namespace {

template <StageKind kind>
void score_slots(const StageView& stage, uint64_t first, uint64_t last, const Context& context) {
  constexpr int64_t kSlots = 64;  // that a thread takes at a time
  parallel_for_each(context.threads, static_cast<int64_t>(last - first), kSlots, [&](int64_t slot) {
    score_slot<kind>(stage, first + static_cast<uint64_t>(slot));
  });
}

}  // namespace

void score_stage(const StageView& stage, uint64_t begin, uint64_t end, const Context& context) {
  const auto score = stage.kind == StageKind::kPosition      ? score_slots<StageKind::kPosition>
                     : stage.kind == StageKind::kOrientation ? score_slots<StageKind::kOrientation>
                                                             : score_slots<StageKind::kScale>;
  score(stage, begin, end, context);
}

void keep_stage(const StageView& stage, const Context&) {
  for (int32_t i = 0; i < stage.segment_count; ++i) {
    const Segment& s = stage.segments[i];
    uint64_t* keys = stage.keys + s.first_slot;
    const uint32_t kept = std::min(s.slots, static_cast<uint32_t>(s.keep));
    std::partial_sort(keys, keys + kept, keys + s.slots, std::greater<>());
  }
  for (uint32_t kept = 0; kept < stage.kept; ++kept) keep_candidate(stage, stage.keys, kept);
}

void make_clusters(const Buffer<ClusterJob>& jobs, const Context&) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    const ClusterJob& job = jobs.data()[i];
    const int32_t count = *job.count;
    uint8_t taken[pose::kMaximumCandidates] = {};
    int32_t found = 0;
    for (; found < pose::kMaximumClusters; ++found) {
      int32_t best = -1;
      double highest = 0;
      for (int32_t k = 0; k < count; ++k) {
        if (taken[k] != 0) continue;
        const double d = pose::density(job.candidates, taken, count, job.rule, k);
        if (best < 0 || d > highest) {
          best = k;
          highest = d;
        }
      }
      if (best < 0) break;
      const auto mark = static_cast<uint8_t>(found + 1);
      for (int32_t k = 0; k < count; ++k) {
        if (pose::joins(job.candidates, taken, job.rule, found, best, k)) taken[k] = mark;
      }
      double sums[pose::kClusterSums];
      for (int k = 0; k < pose::kClusterSums; ++k) {
        sums[k] = pose::cluster_sum(job.candidates, taken, mark, count,
                                    pose::is_plain(job.rule, found), k);
      }
      Cluster cluster = pose::cluster_of(sums);
      pose::measure_spread(job.candidates, taken, mark, count, cluster);
      job.clusters[found] = cluster;
    }
    *job.cluster_count = found;
  }
}

void make_seeds(const Buffer<SeedJob>& jobs, const Context&) {
  for (size_t i = 0; i < jobs.size(); ++i) {
    for (int k = 0; k < pose::kMaximumClusters; ++k) make_seed(jobs.data()[i], k);
  }
}

}  // namespace cpu

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
