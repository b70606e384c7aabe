// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/train/case_search.h"

#include <algorithm>

namespace larch::hdn {

CaseImages make_case_images(const TrainingCase& c, const Model& model, int level,
                            std::span<const image::ChannelSpec> channels, const Vec3i& reach,
                            const Context& context) {
  CaseImages images;
  images.pyramid = image::make_levels(c.levels[static_cast<size_t>(level)].view(),
                                      features::kSteerableLevels - 1, 0, context, c.extent);
  const LevelSpec spec{channels, model.padding, reach, model.space.intensity.steps};
  images.level = make_level_images(images.pyramid, 0, model.scale(level), spec, context);
  return images;
}

void make_segment(const CaseSearch& search, const ResidentDetector& detector,
                  const LevelViews& level, HostSegment& out) {
  out.seed_count = static_cast<int32_t>(search.seeds.size());
  out.candidate_count = static_cast<int32_t>(search.candidates.size());
  const Seed* seeds = search.seeds.data();
  if (detector.stage.kind != StageKind::kPosition) {
    out.segment =
        pose_segment(detector, search.candidates.data(), &out.candidate_count, out.candidate_count);
  } else if (search.search == SearchKind::kRoot) {
    out.segment = root_segment(detector, level.size, search.base);
  } else if (search.search == SearchKind::kAround) {
    out.segment = around_segment(detector, seeds, &out.seed_count);
  } else {
    out.segment = prior_segment(detector, seeds, &out.seed_count, search.to_parent,
                                search.prior_weight, level.scale.spacing_mm);
  }
  out.segment.avoided_mm = search.avoided_mm;
  out.segment.avoided_square = search.avoided_square;
}

std::vector<Candidate> search_case(const CaseSearch& search, const ResidentDetector& detector,
                                   const CaseImages& images, const Context& context) {
  if (search.is_empty(detector.stage.kind)) return {};
  const Device& device = context.device;
  HostSegment host;
  make_segment(search, detector, images.level.views, host);
  Segment& s = host.segment;
  StageView view = plan_launch(detector.stage.kind, {&s, 1});
  const Buffer<Seed> seeds(device, search.seeds);
  const Buffer<Candidate> in(device, search.candidates);
  const std::vector<int32_t> counts{host.seed_count, host.candidate_count, 0};
  Buffer<int32_t> there(device, std::span<const int32_t>(counts));
  Buffer<Candidate> out(device, static_cast<size_t>(s.keep));
  s.seeds = seeds.data();
  s.in = in.data();
  s.seed_count = there.data();
  s.in_count = there.data() + 1;
  s.out = out.data();
  s.out_count = there.data() + 2;
  const Buffer<Segment> segment(device, std::span<const Segment>(&s, 1));
  Buffer<uint64_t> keys(device, view.slots);
  Buffer<float> probabilities(device, view.slots);
  view.level = images.level.views;
  view.segments = segment.data();
  view.keys = keys.data();
  view.probabilities = probabilities.data();
  run_stage(view, context);
  std::vector<Candidate> kept = out.to_vector();
  kept.resize(static_cast<size_t>(there.to_vector()[2]));
  return kept;
}

std::vector<Cluster> cluster_candidates(const std::vector<Candidate>& candidates,
                                        const pose::ClusterRule& rule) {
  const auto count = static_cast<int32_t>(candidates.size());
  std::vector<Cluster> clusters(pose::kMaximumClusters);
  int32_t found = 0;
  const ClusterJob job{candidates.data(), &count, rule, clusters.data(), &found};
  cpu::make_clusters(Buffer<ClusterJob>(Device::cpu(), std::span<const ClusterJob>(&job, 1)), {});
  clusters.resize(static_cast<size_t>(found));
  return clusters;
}

}  // namespace larch::hdn
