// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/detect.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/hdn/stages.h"

namespace larch::hdn {
namespace {

template <class T>
void read_back(T* to, const T* from, size_t count, const Context& context) {
  if (count > 0) memory::copy(Device::cpu(), to, context.device, from, count * sizeof(T));
}

/// The candidates that segments start from.
struct HostCandidates {
  int32_t count = 0;
  std::vector<Candidate> all;
};

/// Does what run_stage does, for a stage of orientation; the GPU evaluates `gpu_share` (0 to 1) of
/// the hypotheses. `segments` are as the device has them; `on_host` are their detectors and `level`
/// the images on the host. Candidates are read back before, so that the work on the GPU is waited
/// for. The result is the same for every share.
void run_shared_stage(const StageView& stage, std::span<const Segment> segments,
                      std::span<const DetectorView> on_host, const LevelViews& level,
                      double gpu_share, SharedTimes& times, const Context& context) {
  std::vector<HostCandidates> candidates(segments.size());
  std::vector<Segment> here(segments.begin(), segments.end());
  for (size_t i = 0; i < here.size(); ++i) {
    HostCandidates& in = candidates[i];
    read_back(&in.count, here[i].in_count, 1, context);
    in.all.resize(static_cast<size_t>(in.count));
    read_back(in.all.data(), here[i].in, in.all.size(), context);
    here[i].in = in.all.data();
    here[i].in_count = &in.count;
    here[i].detector = on_host[i];
  }
  const auto of_gpu =
      static_cast<uint64_t>(std::llround(gpu_share * static_cast<double>(stage.slots)));
  const size_t rest = stage.slots - of_gpu;
  const auto start = std::chrono::steady_clock::now();
  score_stage(stage, 0, of_gpu, context);
  std::vector<uint64_t> keys(stage.slots);
  std::vector<float> probabilities(stage.slots);
  StageView twin = stage;
  twin.level = level;
  twin.segments = here.data();
  twin.keys = keys.data();
  twin.probabilities = probabilities.data();
  cpu::score_stage(twin, of_gpu, stage.slots, context);
  times.cpu_seconds += seconds_since(start);
  const Stopwatch wait(times.wait_seconds);
  const auto send = [&](auto* to, const auto* from) {
    memory::copy(context.device, to + of_gpu, Device::cpu(), from + of_gpu, rest * sizeof *from);
  };
  if (rest > 0) {
    send(stage.keys, keys.data());
    send(stage.probabilities, probabilities.data());
  }
  keep_stage(stage, context);
}

constexpr double kDegree = 3.141592653589793 / 180;
constexpr size_t kMaximumStages = size_t{3} * kMaximumLevels;

/// The part of a structure that is read back.
struct Outcome {
  int32_t kept[kMaximumStages] = {};  ///< candidates after each of its detectors
  float best[kMaximumStages] = {};    ///< probability of the first of them
  int32_t clusters = 0;
  int32_t unused = 0;
  Cluster cluster[pose::kMaximumClusters];
};

/// A launch, or with `clusters` the end of a level for some structures.
struct Launch {
  StageView view;
  size_t level = 0;
  size_t first_segment = 0;
  Buffer<ClusterJob> clusters;
  Buffer<SeedJob> seeds;
};

/// One pass over some structures.
class Pass {
 public:
  /// `on_host`: the images on the host, of a model that is there too.
  Pass(const ResidentModel& resident, const std::vector<LevelImages>& levels,
       const std::vector<LevelImages>& on_host, SharedTimes& times, const Context& context);
  /// `is_root`: searched everywhere, whether it has a parent or not.
  void add(size_t structure, bool is_root) { members_.push_back({structure, is_root}); }
  std::vector<Outcome> run(const Grid& grid);

 private:
  struct Member {
    size_t structure;
    bool is_root;
  };
  const Structure& structure(size_t s) const { return resident_.model.structures[s]; }
  Outcome* outcome(size_t s) { return outcomes_.data() + s; }
  Candidate* candidates(size_t s, size_t side) {
    return candidates_.data() + (2 * s + side) * pose::kMaximumCandidates;
  }
  size_t depth(const Member& m) const;
  void plan_level(int level, const std::vector<Member>& members, const Grid& grid);
  Segment segment(const Member& m, size_t k, const Grid& grid);
  void end_level(int level, const std::vector<Member>& members);

  const ResidentModel& resident_;
  const std::vector<LevelImages>& levels_;
  const std::vector<LevelImages>& levels_on_host_;
  SharedTimes& times_;
  const Context& context_;
  std::vector<Member> members_;
  Buffer<Outcome> outcomes_;
  Buffer<Candidate> candidates_;
  Buffer<Seed> seeds_;
  std::vector<Segment> segments_;
  std::vector<DetectorView> on_host_;  ///< of the segments, where the CPU shares the work
  std::vector<Launch> launches_;
};

Pass::Pass(const ResidentModel& resident, const std::vector<LevelImages>& levels,
           const std::vector<LevelImages>& on_host, SharedTimes& times, const Context& context)
    : resident_(resident),
      levels_(levels),
      levels_on_host_(on_host),
      times_(times),
      context_(context),
      outcomes_(context.device, resident.model.structures.size()),
      candidates_(context.device, 2 * resident.model.structures.size() * pose::kMaximumCandidates),
      seeds_(context.device, resident.model.structures.size() * pose::kMaximumClusters) {
  outcomes_.set_zero();
}

size_t Pass::depth(const Member& m) const {
  if (m.is_root) return 0;
  for (const Member& other : members_) {
    if (static_cast<int32_t>(other.structure) == structure(m.structure).parent) {
      return depth(other) + 1;
    }
  }
  return 0;
}

/// Returns the segment of a structure's detector number k.
Segment Pass::segment(const Member& m, size_t k, const Grid& grid) {
  const size_t s = m.structure;
  const Structure& own = structure(s);
  const ResidentDetector& detector = resident_.detectors[s][k];
  const Stage& stage = detector.stage;
  const Seed* seeds = seeds_.data() + s * pose::kMaximumClusters;
  Segment segment;
  if (stage.kind != StageKind::kPosition) {
    segment = pose_segment(detector, candidates(s, (k + 1) % 2), &outcome(s)->kept[k - 1],
                           resident_.detectors[s][k - 1].stage.keep);
  } else if (stage.level > 0) {
    segment = around_segment(detector, seeds, &outcome(s)->clusters);
  } else if (own.parent < 0 || m.is_root) {
    const ResidentDetector& root = own.parent < 0 ? detector : resident_.root_position[s][0];
    segment = root_segment(root, levels_[0].views.size,
                           {{}, grid_from_world(grid, own.mean).rotation, own.mean.edges_mm});
  } else {
    segment =
        prior_segment(detector, seeds, &outcome(static_cast<size_t>(own.parent))->clusters,
                      own.to_parent, resident_.model.prior_weight, resident_.model.spacing_mm(0));
  }
  segment.out = candidates(s, k % 2);
  segment.out_count = &outcome(s)->kept[k];
  segment.best = &outcome(s)->best[k];
  return segment;
}

/// The launches of a level for structures that do not wait for each other.
void Pass::plan_level(int level, const std::vector<Member>& members, const Grid& grid) {
  for (const StageKind kind : {StageKind::kPosition, StageKind::kOrientation, StageKind::kScale}) {
    const size_t first = segments_.size();
    for (const Member& m : members) {
      const std::vector<ResidentDetector>& all = resident_.detectors[m.structure];
      for (size_t k = 0; k < all.size(); ++k) {
        if (all[k].stage.level == level && all[k].stage.kind == kind) {
          segments_.push_back(segment(m, k, grid));
          on_host_.push_back(resident_.on_host ? resident_.on_host->detectors[m.structure][k].view()
                                               : DetectorView{});
        }
      }
    }
    if (segments_.size() == first) continue;
    Launch& launch = launches_.emplace_back();
    launch.view = plan_launch(kind, std::span(segments_).subspan(first));
    launch.level = static_cast<size_t>(level);
    launch.view.level = levels_[launch.level].views;
    launch.first_segment = first;
  }
  end_level(level, members);
}

void Pass::end_level(int level, const std::vector<Member>& members) {
  std::vector<ClusterJob> clusters;
  std::vector<SeedJob> seeds;
  for (const Member& m : members) {
    const size_t s = m.structure;
    const std::vector<ResidentDetector>& all = resident_.detectors[s];
    size_t last = all.size();
    for (size_t k = 0; k < all.size(); ++k) {
      if (all[k].stage.level == level) last = k;
    }
    if (last == all.size()) continue;
    const double angle = structure(s).agreement_rad[static_cast<size_t>(level)];
    const pose::ClusterRule rule = cluster_rule(resident_.model, level, angle);
    Outcome* own = outcome(s);
    clusters.push_back(
        {candidates(s, last % 2), &own->kept[last], rule, own->cluster, &own->clusters});
    seeds.push_back({own->cluster, &own->clusters, seeds_.data() + s * pose::kMaximumClusters});
    for (const Member& child : members_) {
      const Structure& other = structure(child.structure);
      if (level > 0 || child.is_root || other.parent != static_cast<int32_t>(s)) continue;
      seeds.push_back({own->cluster, &own->clusters,
                       seeds_.data() + child.structure * pose::kMaximumClusters, 1,
                       other.to_parent.mean});
    }
  }
  if (clusters.empty()) return;
  Launch& launch = launches_.emplace_back();
  launch.clusters = Buffer<ClusterJob>(context_.device, std::span<const ClusterJob>(clusters));
  launch.seeds = Buffer<SeedJob>(context_.device, std::span<const SeedJob>(seeds));
}

std::vector<Outcome> Pass::run(const Grid& grid) {
  for (int level = 0; level < resident_.model.levels(); ++level) {
    if (level > 0) {
      plan_level(level, members_, grid);
      continue;
    }
    for (size_t d = 0; d < kMaximumStructures; ++d) {
      std::vector<Member> siblings;
      for (const Member& m : members_) {
        if (depth(m) == d) siblings.push_back(m);
      }
      if (!siblings.empty()) plan_level(level, siblings, grid);
    }
  }
  uint64_t most = 0;
  for (const Launch& launch : launches_) most = std::max(most, launch.view.slots);
  const Buffer<Segment> segments(context_.device, std::span<const Segment>(segments_));
  Buffer<uint64_t> keys(context_.device, most);
  Buffer<float> probabilities(context_.device, most);
  for (Launch& launch : launches_) {
    context_.throw_if_stopped("stopped between stages");
    if (!launch.clusters.empty()) {
      make_clusters(launch.clusters, context_);
      make_seeds(launch.seeds, context_);
      continue;
    }
    launch.view.segments = segments.data() + launch.first_segment;
    launch.view.keys = keys.data();
    launch.view.probabilities = probabilities.data();
    if (levels_on_host_.empty() || launch.view.kind != StageKind::kOrientation) {
      run_stage(launch.view, context_);
      continue;
    }
    const size_t first = launch.first_segment;
    const auto count = static_cast<size_t>(launch.view.segment_count);
    run_shared_stage(launch.view, std::span(segments_).subspan(first, count),
                     std::span(on_host_).subspan(first, count), levels_on_host_[launch.level].views,
                     resident_.gpu_share, times_, context_);
  }
  return outcomes_.to_vector();
}

bool leaves_image(const Pose& pose, const Grid& grid) {
  for (int k = 0; k < 8; ++k) {
    if (!grid.holds(index_from_world(grid, corner(pose, k)))) return true;
  }
  return false;
}

FoundStructure found_of(const Outcome& outcome, const Structure& structure, size_t detectors,
                        const Grid& grid) {
  FoundStructure found;
  found.kept.assign(outcome.kept, outcome.kept + detectors);
  if (outcome.clusters == 0) return found;
  const Cluster& best = outcome.cluster[0];
  found.has_pose = true;
  found.pose = world_from_grid(grid, best.pose);
  double log_odds_of_all = 0;
  for (size_t k = 0; k < detectors; ++k) log_odds_of_all += log_odds(outcome.best[k]);
  const learning::Calibration& calibration = structure.calibration;
  found.confidence = calibration.probability(log_odds_of_all);
  found.support = best.members / static_cast<double>(std::max(found.kept.back(), 1));
  found.spread_mm = best.spread_mm;
  found.spread_deg = best.spread_rad / kDegree;
  found.status = found.confidence < calibration.least   ? FoundStatus::kNotFound
                 : found.confidence < calibration.found ? FoundStatus::kUncertain
                                                        : FoundStatus::kFound;
  return found;
}

/// An image at all levels, and what that points to.
struct ImagePyramid {
  std::vector<image::LevelImage> images;
  std::vector<LevelImages> levels;
};
ImagePyramid make_pyramid(const ResidentModel& resident, const Volume<int16_t>& voxels,
                          const Grid& input, const Context& context) {
  const Model& model = resident.model;
  ImagePyramid pyramid;
  pyramid.images =
      image::make_levels(voxels.view(), model.halvings + features::kSteerableLevels - 1, 0, context,
                         image::extent_of(input, voxels.grid()));
  for (int l = 0; l < model.levels(); ++l) {
    LevelSpec spec{model.channels, model.padding, resident.reach, model.space.intensity.steps};
    if (!resident.sums_boxes[static_cast<size_t>(l)]) spec.channels = {};
    pyramid.levels.push_back(
        make_level_images(pyramid.images, model.halvings - l, model.scale(l), spec, context));
  }
  return pyramid;
}

}  // namespace

void correct(const Model& model, std::vector<FoundStructure>& found, const Volume<int16_t>& voxels,
             const Grid& input, const Context& context) {
  const Grid& grid = voxels.grid();
  const FinestImage image{&voxels, image::extent_of(input, grid)};
  pose::FoundPoses poses;
  std::vector<Pose> as_detected;
  as_detected.reserve(found.size());
  for (const FoundStructure& f : found) as_detected.push_back(f.pose);
  for (size_t s = 0; s < found.size(); ++s) {
    poses.push_back(is_there(found[s]) ? &as_detected[s] : nullptr);
  }
  parallel_for_each(context.threads, static_cast<int64_t>(found.size()), 1, [&](size_t s) {
    if (poses[s] != nullptr) {
      const Structure& structure = model.structures[s];
      Pose& pose = found[s].pose;
      pose = pose::corrected_pose(structure.correction, poses, s);
      if (structure.appearance.exists()) {
        pose = grid_from_world(grid, pose);
        pose = world_from_grid(grid, refined_pose(structure.appearance, image, pose));
      }
    }
    if (found[s].has_pose) found[s].truncated = leaves_image(found[s].pose, input);
  });
}

ResidentModel make_resident(Model model, const tree::EvaluationRule& rule, const Device& device,
                            double gpu_share) {
  ResidentModel resident;
  if (gpu_share < 1 && device.is_cuda()) {
    auto twin = std::make_shared<ResidentModel>(make_resident(model, rule, Device::cpu()));
    twin->sums_boxes.assign(twin->sums_boxes.size(), false);  // orientation has no Haar features
    resident.on_host = std::move(twin);
    resident.gpu_share = gpu_share;
  }
  resident.reach = model.reach();
  resident.sums_boxes.assign(static_cast<size_t>(model.levels()), false);
  const auto move_there = [&](std::vector<Detector>& detectors) {
    std::vector<ResidentDetector> there;
    for (Detector& d : detectors) {
      if (!d.haar.empty()) resident.sums_boxes[static_cast<size_t>(d.stage.level)] = true;
      there.push_back(make_resident(d, rule, device));
    }
    detectors.clear();
    return there;
  };
  for (Structure& s : model.structures) {
    resident.detectors.push_back(move_there(s.detectors));
    resident.root_position.push_back(move_there(s.root_position));
  }
  resident.model = std::move(model);
  return resident;
}

std::vector<FoundStructure> detect(const ResidentModel& resident, const Volume<int16_t>& voxels,
                                   const Grid& input, const Context& context, SharedTimes* times) {
  const Model& model = resident.model;
  const ImagePyramid pyramid = make_pyramid(resident, voxels, input, context);
  const std::vector<LevelImages>& levels = pyramid.levels;
  SharedTimes unused;
  SharedTimes& spent = times != nullptr ? *times : unused;
  ImagePyramid on_host;
  if (resident.on_host) {
    Context host = context;
    host.device = Device::cpu();
    on_host = make_pyramid(*resident.on_host, voxels, input, host);
  }
  const size_t count = model.structures.size();
  Pass all(resident, levels, on_host.levels, spent, context);
  for (size_t s = 0; s < count; ++s) all.add(s, model.structures[s].parent < 0);
  const std::vector<Outcome> outcomes = all.run(voxels.grid());
  std::vector<FoundStructure> found;
  for (size_t s = 0; s < count; ++s) {
    found.push_back(
        found_of(outcomes[s], model.structures[s], resident.detectors[s].size(), voxels.grid()));
  }
  // Children of what was not found are searched everywhere, or not at all.
  Pass alone(resident, levels, on_host.levels, spent, context);
  std::vector<size_t> again;
  for (size_t s = 0; s < count; ++s) {
    const int32_t parent = model.structures[s].parent;
    if (parent < 0 || is_there(found[static_cast<size_t>(parent)])) continue;
    if (resident.root_position[s].empty()) {
      found[s] = {};
      found[s].status = FoundStatus::kSkipped;
    } else {
      again.push_back(s);
      alone.add(s, true);
    }
  }
  const std::vector<Outcome> second =
      again.empty() ? std::vector<Outcome>() : alone.run(voxels.grid());
  for (const size_t s : again) {
    found[s] =
        found_of(second[s], model.structures[s], resident.detectors[s].size(), voxels.grid());
    found[s].is_fallback = true;
  }
  return found;
}

}  // namespace larch::hdn
