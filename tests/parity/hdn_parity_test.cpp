// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/features/steerable/steerable.h"
#include "larch/hdn/detect.h"
#include "larch/hdn/train/stage_training.h"
#include "larch/pose/hypotheses.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/hdn/hdn_course.h"
#include "tests/unit/pbt/pbt_fixtures.h"
#include "tests/unit/pbt/pbt_same_trees.h"
#include "tests/unit/tree/forest_fixtures.h"

namespace larch::hdn {
namespace {

using test::cuda_context;
using test::same_bytes;
using test::sized;

static_assert(sizeof(Candidate) == 88 && sizeof(Seed) == 120, "bytes that nobody sets");

/// A detector of two random trees, or of a forest of `forest` ones; of depth 0 it gives all
/// hypotheses the same score.
Detector random_detector(StageKind kind, int32_t keep, uint64_t seed, int depth = 4,
                         int forest = 0) {
  fixtures::RandomTree spec;
  spec.depth = depth;
  spec.weaks = 20;  // more than lanes that share a hypothesis on a GPU
  pbt::Model model = fixtures::random_ensemble(seed, depth == 0 ? 1 : 2, spec);
  Detector detector;
  detector.stage = {kind, 0, keep};
  const auto pool = features::steerable_pool(features::SteerableSet::kBase9);
  for (uint64_t i = 0; i < model.features.size() && kind != StageKind::kPosition; ++i) {
    detector.steerable.push_back(pool[hash_below(seed, 2, i, static_cast<uint32_t>(pool.size()))]);
  }
  if (kind == StageKind::kPosition) detector.haar = model.features;
  if (kind == StageKind::kOrientation) {
    detector.stage.rotations = pose::ball_of_rotations(0.6, 0.3);
  }
  if (kind == StageKind::kScale) {
    detector.stage.log_scales = pose::scale_grid({-0.3, -0.2, -0.1}, {0.3, 0.2, 0.1}, 0.2);
  }
  if (forest > 0) {
    detector.forest = fixtures::random_forest(seed, forest, depth, model.features.size());
    return detector;
  }
  detector.trees = std::move(static_cast<tree::Ensemble&>(model));
  return detector;
}

Pose random_pose(uint64_t seed, double centre_from, double centre_to) {
  const auto drawn = [&](uint64_t k) { return hash_unit(seed, 7, k); };
  const auto place = [&](uint64_t k) { return centre_from + (centre_to - centre_from) * drawn(k); };
  return {{place(0), place(1), place(2)},
          canonical(from_rotation_vector({drawn(3), 2 * drawn(4) - 1, drawn(5)})),
          {5 + 20 * drawn(6), 5 + 15 * drawn(7), 5 + 10 * drawn(8)}};
}

/// A segment of a launch.
struct Part {
  Detector detector;
  CaseSearch search;
  bool is_empty = false;  ///< what comes before it found nothing
};

/// What a launch makes of its parts.
struct Launched {
  std::vector<std::vector<Candidate>> kept;  ///< by part
  std::vector<Segment> segments;
  std::vector<uint64_t> keys;
  std::vector<float> probabilities;
};

constexpr double kSpacing = 2;
constexpr Vec3i kSize{21, 16, 14};

Launched launch(StageKind kind, const std::vector<Part>& parts, const Context& context) {
  const Device& device = context.device;
  const auto voxels = fixtures::noise_volume(kSize, 8, 0, 1023);
  const auto pyramid =
      image::make_levels(voxels.view(), features::kSteerableLevels - 1, 0, context);
  const std::vector<image::ChannelSpec> channels = fixtures::RandomTree{}.channels;
  const LevelImages images =
      make_level_images(pyramid, 0, image::level_scale(kSpacing / 2, 1),
                        {channels, image::Padding::kClamp, {8, 8, 8}, 1023}, context);
  const size_t count = parts.size();
  std::vector<ResidentDetector> detectors;
  std::vector<Buffer<Seed>> seeds;
  std::vector<Buffer<Candidate>> in, out;
  Buffer<int32_t> counts(device, 3 * count);
  Launched result;
  for (size_t i = 0; i < count; ++i) {
    const CaseSearch& search = parts[i].search;
    detectors.push_back(make_resident(parts[i].detector, {}, device));
    seeds.emplace_back(device, search.seeds);
    in.emplace_back(device, search.candidates);
    HostSegment host;
    make_segment(search, detectors.back(), images.views, host);
    Segment& s = result.segments.emplace_back(host.segment);
    out.emplace_back(device, static_cast<size_t>(s.keep));
    if (parts[i].is_empty) host.seed_count = host.candidate_count = 0;
    const std::vector<int32_t> known{host.seed_count, host.candidate_count, -1};
    counts.upload(std::span<const int32_t>(known), 3 * i);
    s.seeds = seeds.back().data();
    s.in = in.back().data();
    s.out = out.back().data();
    s.seed_count = counts.data() + 3 * i;
    s.in_count = s.seed_count + 1;
    s.out_count = counts.data() + 3 * i + 2;
  }
  StageView view = plan_launch(kind, result.segments);
  const Buffer<Segment> segments(device, std::span<const Segment>(result.segments));
  Buffer<uint64_t> keys(device, view.slots);
  Buffer<float> probabilities(device, view.slots);
  view.level = images.views;
  view.segments = segments.data();
  view.keys = keys.data();
  view.probabilities = probabilities.data();
  run_stage(view, context);
  const std::vector<int32_t> found = counts.to_vector();
  for (size_t i = 0; i < count; ++i) {
    result.kept.push_back(out[i].to_vector());
    result.kept.back().resize(static_cast<size_t>(found[3 * i + 2]));
  }
  result.keys = keys.to_vector();
  result.probabilities = probabilities.to_vector();
  return result;
}

/// Checks a launch on both devices, and what the GPU keeps against a stable sort of its scores on
/// the host. Returns how many candidates each part keeps.
std::vector<size_t> check_launch(StageKind kind, const std::vector<Part>& parts) {
  const Launched a = launch(kind, parts, fixtures::context_of(2));
  const Launched b = launch(kind, parts, cuda_context());
  CHECK(same_bytes(a.probabilities, b.probabilities));
  std::vector<size_t> kept;
  for (size_t i = 0; i < parts.size(); ++i) {
    CAPTURE(i);
    CHECK(same_bytes(a.kept[i], b.kept[i]));
    kept.push_back(b.kept[i].size());
    const Segment& s = b.segments[i];
    std::vector<uint64_t> slots;
    for (uint64_t slot = s.first_slot; slot < s.first_slot + s.slots; ++slot) {
      if (!is_empty_key(b.keys[slot])) slots.push_back(slot);
    }
    std::stable_sort(slots.begin(), slots.end(),
                     [&](uint64_t p, uint64_t q) { return b.keys[p] >> 24 > b.keys[q] >> 24; });
    const auto score_of = [&](uint64_t slot) {
      return from_ordered_bits(score_bits_of_key(b.keys[slot]));
    };
    const float least = slots.empty() ? 0 : least_score(s, kind, score_of(slots[0]));
    std::erase_if(slots, [&](uint64_t slot) { return score_of(slot) < least; });
    REQUIRE(kept.back() == std::min(slots.size(), static_cast<size_t>(s.keep)));
    for (size_t k = 0; k < kept.back(); ++k) {
      CHECK(b.kept[i][k].probability == b.probabilities[slots[k]]);
      if (kind == StageKind::kPosition && s.search == SearchKind::kRoot) {
        const Vec3d& mm = b.kept[i][k].pose.centre_mm;
        const Vec3i at = nearest_voxel(mm, image::level_scale(kSpacing / 2, 1));
        CHECK(at.x + kSize.x * (at.y + kSize.y * at.z) ==
              static_cast<int32_t>(slots[k] - s.first_slot));
      }
    }
  }
  return kept;
}

CaseSearch search_of(SearchKind kind, const std::vector<Pose>& places) {
  CaseSearch search;
  search.search = kind;
  search.base = {{}, canonical(from_rotation_vector({0.1, 0.2, 0.3})), {20, 15, 10}};
  for (size_t k = 0; k < places.size(); ++k) {
    search.seeds.push_back({places[k], random_pose(k + 40, 0, 1).rotation, 1.0 / (1.0 + k)});
    search.candidates.push_back({places[k], 0.5F, 0.5F});
  }
  std::vector<pose::RelativePose> relative(9);
  for (size_t i = 0; i < 9; ++i)
    for (size_t k = 0; k < 9; ++k) relative[i][k] = draw_normal(3, i, k) * (k < 3 ? 1 + k : 0.1);
  search.to_parent = pose::fit_gaussian(relative, {1, 0.1, 0.1});
  search.prior_weight = 0.7;
  return search;
}

TEST_CASE("position stages are the same bytes on both devices",
          "[hdn::score_stage][hdn::keep_stage]") {
  constexpr auto kPosition = StageKind::kPosition;
  const Pose middle = random_pose(1, 12, 16), beside = random_pose(2, 12, 18),
             corner = random_pose(3, 0, 0.1), outside = random_pose(4, 200, 300);
  const auto root = search_of(SearchKind::kRoot, {});
  const auto around = search_of(SearchKind::kAround, {middle, corner, beside, middle});
  const auto prior = search_of(SearchKind::kPrior, {middle, beside, beside, outside});
  const auto detector = [](int32_t keep, uint64_t seed, int depth = 4, int forest = 0) {
    return random_detector(kPosition, keep, seed, depth, forest);
  };
  SECTION("one part, of which the first nodes are kept where all are equal") {
    CHECK(check_launch(kPosition, {{detector(200, 1), root}})[0] == 200);
    CHECK(check_launch(kPosition, {{detector(200, 1, 0), root}})[0] == 200);
  }
  SECTION("several parts") {
    const auto kept =
        check_launch(kPosition, {{detector(50, 2), root},
                                 {detector(100, 3), around},
                                 {detector(512, 4), search_of(SearchKind::kAround, {corner})},
                                 {detector(70, 5), prior},
                                 {detector(20, 6), around, true},
                                 {detector(20, 7), prior, true},
                                 {detector(30, 8), search_of(SearchKind::kPrior, {outside})},
                                 {detector(512, 9, 0), prior},
                                 {detector(60, 11, 5, 21), around},  // more trees than lanes
                                 {detector(1, 10), root}});
    CHECK(kept[2] == 125);  // nodes in the image, fewer than are to be kept
    CHECK(kept[4] + kept[5] + kept[6] == 0);
    CHECK(kept.back() == 1);
  }
}

TEST_CASE("orientation and scale stages are the same bytes on both devices",
          "[hdn::score_stage][hdn::keep_stage]") {
  std::vector<Pose> places;
  for (uint64_t i = 0; i < 12; ++i) places.push_back(random_pose(20 + i, -3, 40));
  const auto search = search_of(SearchKind::kRoot, places);
  for (const StageKind kind : {StageKind::kOrientation, StageKind::kScale}) {
    const auto some = search_of(SearchKind::kRoot, {places[0]});
    const auto kept = check_launch(kind, {{random_detector(kind, 60, 1), search},
                                          {random_detector(kind, 30, 2), search, true},
                                          {random_detector(kind, 512, 3), some},
                                          {random_detector(kind, 40, 4, 0), search},
                                          {random_detector(kind, 60, 5, 5, 21), search}});
    CHECK(kept[0] == 60);
    CHECK(kept[1] == 0);
    CHECK((kept[2] > 1 && kept[2] < 512));
    CHECK(kept[3] == 40);
  }
}

/// Candidates about three places.
std::vector<Candidate> random_candidates(size_t count, uint64_t seed) {
  std::vector<Candidate> candidates;
  for (uint64_t i = 0; i < count; ++i) {
    const auto drawn = [&](uint64_t k) { return hash_unit(seed, 20 + k, i); };
    Pose pose = random_pose(seed + hash_below(seed, 9, i, 3), 0, 60);
    pose.centre_mm += Vec3d{drawn(0), drawn(1), drawn(2)} * 9;
    pose.rotation =
        canonical(pose.rotation * from_rotation_vector({drawn(3), drawn(4) - 0.5, drawn(5) - 0.5}));
    pose.edges_mm += Vec3d{drawn(6), drawn(7), drawn(8)};
    candidates.push_back({pose, static_cast<float>(drawn(9)), 0});
  }
  return candidates;
}

/// The clusters of several lists of candidates, and the seeds of what comes next.
struct Clustered {
  std::vector<int32_t> counts;
  std::vector<Cluster> clusters;
  std::vector<Seed> seeds;
};
Clustered clustered(const std::vector<std::vector<Candidate>>& lists,
                    const std::vector<pose::ClusterRule>& rules, const Context& context) {
  const Device& device = context.device;
  const size_t count = lists.size();
  std::vector<Buffer<Candidate>> candidates;
  std::vector<int32_t> sizes;
  for (const auto& list : lists) {
    candidates.emplace_back(device, std::span<const Candidate>(list));
    sizes.push_back(static_cast<int32_t>(list.size()));
  }
  const Buffer<int32_t> there(device, std::span<const int32_t>(sizes));
  Buffer<int32_t> found(device, count);
  Buffer<Cluster> clusters(device, count * pose::kMaximumClusters);
  Buffer<Seed> seeds(device, 2 * count * pose::kMaximumClusters);
  seeds.set_zero();
  std::vector<ClusterJob> jobs;
  std::vector<SeedJob> next;
  for (size_t i = 0; i < count; ++i) {
    Cluster* own = clusters.data() + i * pose::kMaximumClusters;
    jobs.push_back({candidates[i].data(), there.data() + i, rules[i], own, found.data() + i});
    for (const int32_t is_child : {0, 1}) {
      next.push_back({own,
                      found.data() + i,
                      seeds.data() + next.size() * pose::kMaximumClusters,
                      is_child,
                      {1, -20, 3, 0.1, 0.2, -1.5, 0.1, -0.2, 0.3}});
    }
  }
  make_clusters(Buffer<ClusterJob>(device, std::span<const ClusterJob>(jobs)), context);
  make_seeds(Buffer<SeedJob>(device, std::span<const SeedJob>(next)), context);
  return {found.to_vector(), clusters.to_vector(), seeds.to_vector()};
}

TEST_CASE("clusters and seeds are the same bytes on both devices",
          "[hdn::make_clusters][hdn::make_seeds]") {
  const std::vector<Candidate> many = random_candidates(pose::kMaximumCandidates, 1),
                               some = random_candidates(100, 2);
  std::vector<Candidate> equal(40, some[0]), without = some;
  for (size_t i = 0; i < equal.size(); i += 2) {
    equal[i] = some[3];  // the first of two places that are equally dense
    equal[i].probability = some[0].probability;
  }
  for (Candidate& c : without) c.probability = 0;
  const std::vector<std::vector<Candidate>> lists{many, many, some, equal, without, {some[5]}, {}};
  const std::vector<pose::ClusterRule> rules{{{4, 0.99}},
                                             {{4, 0.99}, 100, {12, 0.9}},
                                             {{6, 0}, 300, {18, 0}},
                                             {{1, 0.99}},
                                             {{8, 0.9}},
                                             {{1, 1}, 5, {3, 1}},
                                             {{1, 1}}};
  const Clustered a = clustered(lists, rules, fixtures::context_of(2));
  const Clustered b = clustered(lists, rules, cuda_context());
  CHECK(a.counts == b.counts);
  CHECK(same_bytes(a.seeds, b.seeds));
  CHECK(b.counts[0] == pose::kMaximumClusters);
  CHECK(b.counts[3] == 2);
  CHECK(b.clusters[3 * pose::kMaximumClusters].pose.edges_mm.x == Approx(some[3].pose.edges_mm.x));
  CHECK(b.counts[6] == 0);
  for (size_t i = 0; i < lists.size(); ++i)
    for (int32_t k = 0; k < b.counts[i]; ++k) {
      CAPTURE(i, k);
      const Cluster& p = a.clusters[i * pose::kMaximumClusters + static_cast<size_t>(k)];
      const Cluster& q = b.clusters[i * pose::kMaximumClusters + static_cast<size_t>(k)];
      CHECK(p.pose == q.pose);
      CHECK(p.confidence == q.confidence);
      CHECK(p.weight == q.weight);
      CHECK(p.spread_mm == q.spread_mm);
      CHECK(p.spread_rad == q.spread_rad);
      CHECK(p.members == q.members);
    }
}

/// A training of two structures, small where kernels are emulated: stages with boxes take long
/// there.
struct Course : fixtures::Course {
  Course() : fixtures::Course(sized(64, 32), {{"parent", ""}, {"child", "parent"}}) {
    const double mm = 96.0 / phantom.size[0];
    phantom.spacing_mm = {mm, mm, mm};
    phantom.rotation_deg = 15;
    phantom.snr = 20;
    const auto last = sized(LevelStages::kAll, LevelStages::kPosition);
    config.structures[0].stages = {LevelStages::kAll, last};
    config.structures[1].stages = {sized(LevelStages::kPositionOrientation, last), last};
    config.folds = sized(2, 1);
    config.rotation_step_deg = {30};
    config.scale_step = 1.3;
    config.keep_first = config.keep = {20, 10, 10};
    config.positives_per_volume = 8;
    config.negatives_per_volume = sized(100, 30);
    shared.features.count = sized(500, 30);
    shared.tree.rounds = {sized(5, 2)};
    shared.tree.min_samples = 10;
    shared.tree.min_class_samples = 3;
    shared.forest.trees = sized(20, 3);
    shared.forest.depth = sized(6, 2);
    shared.forest.round_features = sized(100, 20);
    prepare(sized(8, 6));
  }

  Model train_on(const Context& context) const {
    TrainReport report;
    return train_network(cases, start, config, shared, {}, report, context);
  }
};

void check_same_detectors(const std::vector<Detector>& a, const std::vector<Detector>& b) {
  REQUIRE(a.size() == b.size());
  for (size_t k = 0; k < a.size(); ++k) {
    CAPTURE(k);
    CHECK(same_bytes(a[k].stage.rotations, b[k].stage.rotations));
    CHECK(same_bytes(a[k].stage.log_scales, b[k].stage.log_scales));
    CHECK(same_bytes(a[k].steerable, b[k].steerable));
    REQUIRE(a[k].haar.size() == b[k].haar.size());
    for (size_t f = 0; f < a[k].haar.size(); ++f) {
      CHECK(a[k].haar[f].pool_index == b[k].haar[f].pool_index);
    }
    fixtures::check_same_ensembles(a[k].trees, b[k].trees);
    CHECK(fixtures::same(a[k].forest, b[k].forest));
  }
}

TEST_CASE("a network is trained the same way on both devices") {
  Course course;
  course.shared.classifier =
      GENERATE(voxels::ClassifierKind::kTree, voxels::ClassifierKind::kForest);
  const Model a = course.train_on(fixtures::context_of(2)), b = course.train_on(cuda_context());
  for (size_t s = 0; s < a.structures.size(); ++s) {
    const Structure &p = a.structures[s], &q = b.structures[s];
    CAPTURE(p.name);
    CHECK(p.detectors.size() == (s == 0 ? 3 : sized(2, 1)) + sized<size_t>(3, 1));
    CHECK(p.mean == q.mean);
    CHECK(p.to_parent == q.to_parent);
    CHECK(p.errors == q.errors);
    CHECK(p.agreement_rad == q.agreement_rad);
    CHECK(p.calibration.found == q.calibration.found);
    CHECK(p.calibration.least == q.calibration.least);
    CHECK(p.calibration.probability.slope == q.calibration.probability.slope);
    CHECK(p.calibration.probability.offset == q.calibration.probability.offset);
    check_same_detectors(p.detectors, q.detectors);
    check_same_detectors(p.root_position, q.root_position);
  }
}

void check_detection(const Model& model, const Volume<int16_t>& image, bool is_fallback,
                     double gpu_share = 1) {
  CAPTURE(gpu_share);
  const Context cpu = fixtures::context_of(2), gpu = cuda_context();
  SharedTimes times;
  const auto a = detect(make_resident(model, {}, cpu.device), image, image.grid(), cpu);
  const auto b =
      detect(make_resident(model, {}, gpu.device, gpu_share), image, image.grid(), gpu, &times);
  CHECK((times.cpu_seconds > 0) == (gpu_share < 1));
  REQUIRE(a.size() == b.size());
  for (size_t s = 0; s < a.size(); ++s) {
    CAPTURE(s);
    CHECK(b[s].has_pose);
    CHECK(b[s].is_fallback == (is_fallback && s > 0));
    CHECK(a[s].status == b[s].status);
    CHECK(a[s].pose == b[s].pose);
    CHECK(a[s].confidence == b[s].confidence);
    CHECK(a[s].support == b[s].support);
    CHECK(a[s].spread_mm == b[s].spread_mm);
    CHECK(a[s].spread_deg == b[s].spread_deg);
    CHECK(a[s].truncated == b[s].truncated);
    CHECK(a[s].is_fallback == b[s].is_fallback);
    CHECK(a[s].kept == b[s].kept);
  }
}

TEST_CASE("a network finds the same poses on both devices") {
  Course course;
  course.shared.classifier =
      GENERATE(voxels::ClassifierKind::kTree, voxels::ClassifierKind::kForest);
  Model model = course.train_on(fixtures::context_of(2));
  model.structures[0].calibration.found = model.structures[0].calibration.least = 0;
  check_detection(model, course.image(0), false);
  check_detection(model, course.image(0), false, 0.4);
  // The child is searched everywhere where nothing is sure enough to be its parent.
  model.structures[0].calibration.found = model.structures[0].calibration.least = 1;
  check_detection(model, course.image(1), true);
}

}  // namespace
}  // namespace larch::hdn
