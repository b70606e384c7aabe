// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/evaluate.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/core/text.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/voxelise.h"
#include "larch/metrics/agreement.h"

namespace larch {
namespace {

using metrics::LabelCount;
using metrics::Overlap;

constexpr double kDegreesPerRadian = 57.295779513082321;
constexpr double kNone = std::numeric_limits<double>::quiet_NaN();

double line_error_mm(const Pose& detected, const Pose& truth) {
  const int axis = longest_axis(truth.edges_mm);
  return std::max(norm(axis_end(detected, axis, -0.5) - axis_end(truth, axis, -0.5)),
                  norm(axis_end(detected, axis, 0.5) - axis_end(truth, axis, 0.5)));
}

double scale_error(const Vec3d& edges, const Vec3d& truth) {
  double sum = 0;
  for (int axis = 0; axis < 3; ++axis) sum += std::abs(edges[axis] / truth[axis] - 1);
  return sum / 3;
}

void add_distances(const metrics::SurfaceDistance& d, StructureScores& out) {
  out.scores.insert(out.scores.end(), {{"assd_mm", d.mean_mm},
                                       {"surface_median_mm", d.median_mm},
                                       {"surface_p95_mm", d.p95_mm},
                                       {"surface_max_mm", d.max_mm}});
}

void add_detection(bool is_there, bool is_found, StructureScores& out) {
  out.scores.push_back({"missed", is_there ? double(!is_found) : kNone});
  out.scores.push_back({"false_positive", is_there ? kNone : double(is_found)});
}

void require_memory(const std::string& structure, const Volume<uint8_t>& prediction,
                    const Volume<uint8_t>& reference, int64_t most, const Context& context) {
  if (most == INT64_MAX) return;
  const mesh::SurfaceSize a = mesh::surface_size(prediction, context);
  const mesh::SurfaceSize b = mesh::surface_size(reference, context);
  const int64_t bytes =
      metrics::surface_distance_bytes(a, b, prediction.grid().size, context.threads);
  if (bytes <= most) return;
  throw MemoryError("the surfaces of structure '" + structure + "', " + describe(a) + " and " +
                    describe(b) + ", take up to " + std::to_string(bytes) +
                    " bytes, beside the label maps " + std::to_string(std::max<int64_t>(0, most)) +
                    " are allowed; allow more memory, or --surfaces=false");
}

/// A structure in two label maps, as masks of a box that holds both.
struct Structure {
  Vec3i first{};  ///< of the box
  Volume<uint8_t> prediction{}, reference{};
};

/// Returns the voxels from `low` to `high` that have one of `values`, ascending, where `truth` has
/// none of `ignore`.
Volume<uint8_t> mask_in_box(const LabelVolume& labels, std::span<const int32_t> values,
                            const LabelVolume& truth, const std::vector<int>& ignore,
                            const Vec3i& low, const Vec3i& high) {
  Grid grid = labels.grid();
  grid.size = high - low + Vec3i{1, 1, 1};
  Volume<uint8_t> mask = Volume<uint8_t>::unfilled(grid);
  const auto has = [&](int32_t label) {
    return std::binary_search(values.begin(), values.end(), label);
  };
  int32_t last = 0;
  bool is_in = has(last);
  for (int64_t begin = 0; begin < mask.voxels(); begin += grid.size.x) {
    const int64_t from = labels.grid().linear(low + grid.voxel(begin));
    for (int64_t x = 0; x < grid.size.x; ++x) {
      const int64_t i = from + x;
      if (labels[i] != last) is_in = has(last = labels[i]);
      mask[begin + x] = is_in && std::ranges::find(ignore, truth[i]) == ignore.end();
    }
  }
  return mask;
}

StructureScores scores_of(const std::string& name, const Overlap& o, const Structure& structure,
                          const LabelScoreConfig& config, int64_t surface_bytes,
                          const Context& context) {
  StructureScores out{name,
                      {{"dice", o.dice},
                       {"jaccard", o.jaccard},
                       {"prediction_mm3", o.prediction_mm3},
                       {"reference_mm3", o.reference_mm3},
                       {"volume_difference_mm3", o.volume_difference_mm3},
                       {"relative_volume_difference", o.relative_volume_difference}}};
  if (config.surfaces) {
    const auto& [first, prediction, reference] = structure;
    require_memory(name, prediction, reference, surface_bytes, context);
    const metrics::SurfaceDistance d = metrics::surface_distance(
        mesh::marching_cubes(prediction, context, first),
        mesh::marching_cubes(reference, context, first), context, config.tolerance_mm);
    add_distances(d, out);
    out.scores.push_back({"hd95_mm", d.hd95_mm});
    out.scores.push_back({"surface_dice", d.surface_dice});
  }
  out.scores.push_back({"sensitivity", o.sensitivity});
  out.scores.push_back({"precision", o.precision});
  out.scores.push_back({"total_correct_fraction", o.total_correct_fraction});
  return out;
}

constexpr uint64_t kResamples = 2000;

/// Returns the value below which a share of the sorted values lies.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

/// Sorted means of as many values as there are, drawn with replacement.
std::vector<double> resampled_means(const std::vector<double>& values) {
  std::vector<double> means(kResamples);
  const auto n = static_cast<uint32_t>(values.size());
  for (uint64_t resample = 0; resample < kResamples; ++resample) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i) sum += values[hash_below(/*seed=*/0, resample, i, n)];
    means[resample] = sum / n;
  }
  std::sort(means.begin(), means.end());
  return means;
}

}  // namespace

std::vector<StructureScores> score_labels(const LabelVolume& prediction,
                                          const LabelVolume& reference,
                                          const LabelScoreConfig& config, const Context& side,
                                          int64_t surface_bytes) {
  if (!config.prediction_labels.empty() && !config.merge) {
    throw UsageError("prediction_labels needs merge: without it labels are compared one by one");
  }
  const Turn turn = side.turn();
  const Context& context = turn.context();
  const metrics::LabelCounts counts = metrics::count_labels(prediction, reference, config.ignore);
  std::vector<int32_t> labels(config.labels.begin(), config.labels.end());
  if (labels.empty()) {
    for (const LabelCount& one : counts.labels) {
      if (one.label != 0) labels.push_back(one.label);
    }
  }
  const double voxel_mm3 = prediction.grid().voxel_volume_mm3();
  const auto masks = [&](std::span<const int32_t> in_prediction,
                         std::span<const int32_t> in_reference, const LabelCount& box) {
    if (box.high.x < 0) return Structure{};
    return Structure{
        box.low,
        mask_in_box(prediction, in_prediction, reference, config.ignore, box.low, box.high),
        mask_in_box(reference, in_reference, reference, config.ignore, box.low, box.high)};
  };
  std::vector<StructureScores> out;
  for (const int32_t& label : labels) {
    if (config.merge) break;
    context.throw_if_stopped("stopped between labels");
    const auto at = std::ranges::lower_bound(counts.labels, label, {}, &LabelCount::label);
    const bool is_there = at != counts.labels.end() && at->label == label;
    const LabelCount one = is_there ? *at : LabelCount{};
    const std::span<const int32_t> value(&label, 1);
    out.push_back(scores_of(
        std::to_string(label),
        metrics::overlap(one.prediction, one.reference, one.common, counts.voxels, voxel_mm3),
        config.surfaces ? masks(value, value, one) : Structure{}, config, surface_bytes, context));
  }
  std::vector<int32_t> in_prediction(config.prediction_labels.begin(),
                                     config.prediction_labels.end());
  if (in_prediction.empty()) in_prediction = labels;
  std::sort(labels.begin(), labels.end());
  std::sort(in_prediction.begin(), in_prediction.end());
  LabelCount all;
  for (const LabelCount& one : counts.labels) {
    if (std::ranges::binary_search(labels, one.label) ||
        std::ranges::binary_search(in_prediction, one.label)) {
      all.include(one.low, one.high);
    }
  }
  const Structure whole = masks(in_prediction, labels, all);
  const Overlap in_box = metrics::overlap(whole.prediction, whole.reference);
  const Overlap o = metrics::overlap(in_box.prediction_voxels, in_box.reference_voxels,
                                     in_box.common_voxels, counts.voxels, voxel_mm3);
  out.push_back(scores_of("union", o, whole, config, surface_bytes, context));
  return out;
}

std::pair<std::vector<int32_t>, std::vector<int32_t>> labels_in(const LabelVolume& prediction,
                                                                const LabelVolume& reference,
                                                                std::span<const int> ignore) {
  std::pair<std::vector<int32_t>, std::vector<int32_t>> out;
  for (const LabelCount& one : metrics::count_labels(prediction, reference, ignore).labels) {
    if (one.label != 0 && one.prediction > 0) out.first.push_back(one.label);
    if (one.label != 0 && one.reference > 0) out.second.push_back(one.label);
  }
  return out;
}

StructureScores score_mesh(const Mesh& prediction, const Mesh& reference, const Context& context) {
  const Turn turn = context.turn();
  const metrics::MeshDistance d = metrics::mesh_distance(prediction, reference, turn.context());
  StructureScores out{
      "surface",
      {{"mssd_mm", d.mssd_mm}, {"rms_mm", d.rms_mm}, {"hd95_mm", d.hd95_mm}, {"hd_mm", d.hd_mm}}};
  add_distances(metrics::surface_distance(prediction, reference, turn.context()), out);
  add_detection(!reference.triangles.empty(), !prediction.triangles.empty(), out);
  out.scores.push_back({"dice", kNone});
  return out;
}

StructureScores score_mesh(const Mesh& prediction, const LabelVolume& reference,
                           std::span<const int> labels, const Context& context) {
  const Volume<uint8_t> mask =
      labels.empty() ? mapped<uint8_t>(reference, [](int32_t label) { return label != 0; })
                     : metrics::mask_of(reference, labels);
  const Turn turn = context.turn();
  StructureScores out =
      score_mesh(prediction, mesh::marching_cubes(mask, turn.context()), turn.context());
  const Volume<uint8_t> voxels = mesh::voxelise(prediction, mask.grid(), turn.context());
  out.scores.back().value = metrics::overlap(voxels, mask).dice;
  return out;
}

StructureScores score_pose(const std::string& structure, const Pose* detected, const Pose* truth,
                           std::span<const Quaternion> symmetries) {
  double centre = kNone, line = kNone, degrees = kNone, scale = kNone, iou = kNone, failure = kNone;
  if (truth != nullptr) iou = 0, failure = 1;
  if (truth != nullptr && detected != nullptr) {
    const Vec3d& edges = truth->edges_mm;
    centre = norm(detected->centre_mm - truth->centre_mm);
    line = line_error_mm(*detected, *truth);
    degrees = angle_between(detected->rotation, truth->rotation) * kDegreesPerRadian;
    scale = scale_error(detected->edges_mm, edges);
    for (const Quaternion& symmetry : symmetries) {
      const Pose same = with_axes_renamed(*truth, symmetry);
      line = std::min(line, line_error_mm(*detected, same));
      const double turned = angle_between(detected->rotation, same.rotation) * kDegreesPerRadian;
      if (turned >= degrees) continue;
      degrees = turned;
      scale = scale_error(detected->edges_mm, same.edges_mm);
    }
    iou = metrics::box_iou(*detected, *truth);
    failure = centre > failure_distance_mm(edges) ? 1 : 0;
  }
  StructureScores out{structure,
                      {{"centre_error_mm", centre},
                       {"line_error_mm", line},
                       {"rotation_error_deg", degrees},
                       {"scale_error", scale},
                       {"box_iou", iou},
                       {"failure", failure}}};
  add_detection(truth != nullptr, detected != nullptr, out);
  return out;
}

Summary summarise(std::span<const double> values) {
  std::vector<double> sorted;
  for (const double value : values) {
    if (!std::isnan(value)) sorted.push_back(value);
  }
  std::sort(sorted.begin(), sorted.end());
  Summary out{static_cast<int64_t>(sorted.size()), kNone, kNone, kNone, kNone, kNone, kNone};
  if (sorted.empty()) return out;
  const auto n = static_cast<double>(sorted.size());
  double sum = 0, squares = 0;
  for (const double value : sorted) sum += value;
  out.mean = sum / n;
  out.median = quantile(sorted, 0.5);
  out.p95 = quantile(sorted, 0.95);
  if (sorted.size() < 2) return out;
  for (const double value : sorted) squares += (value - out.mean) * (value - out.mean);
  out.sd = std::sqrt(squares / (n - 1));
  const std::vector<double> means = resampled_means(sorted);
  out.ci_low = quantile(means, 0.025);
  out.ci_high = quantile(means, 0.975);
  return out;
}

double area_under_curve(std::span<const double> there, std::span<const double> absent) {
  double wins = 0;
  for (const double a : there) {
    for (const double b : absent) wins += a > b ? 1 : a == b ? 0.5 : 0;
  }
  const auto pairs = static_cast<double>(there.size()) * static_cast<double>(absent.size());
  return pairs > 0 ? wins / pairs : kNone;
}

bool is_best_when_great(std::string_view score) {
  constexpr std::string_view kShares[] = {
      "dice",      "jaccard", "surface_dice",          "sensitivity",
      "precision", "box_iou", "total_correct_fraction"};
  return std::ranges::find(kShares, score) != std::end(kShares);
}

std::vector<SummaryRow> summarise(std::span<const CaseScores> cases) {
  std::vector<SummaryRow> out;
  std::map<std::pair<std::string, std::string>, size_t> places;
  std::vector<std::vector<double>> values;
  const auto add = [&](const std::string& id, const std::string& structure, const Score& score) {
    const auto [at, is_new] = places.try_emplace({structure, score.name}, out.size());
    if (is_new) {
      out.push_back({structure, score.name, {}, kNone, ""});
      values.emplace_back();
    }
    values[at->second].push_back(score.value);
    SummaryRow& row = out[at->second];
    const bool has_sign = std::string_view(score.name).find("difference") != std::string::npos;
    const auto badness = [&](double value) {
      return is_best_when_great(score.name) ? -value : has_sign ? std::abs(value) : value;
    };
    if (std::isnan(score.value) || badness(score.value) <= badness(row.worst)) return;
    row.worst = score.value;
    row.worst_case = id;
  };
  for (const CaseScores& scored : cases) {
    for (const StructureScores& s : scored.structures) {
      for (const Score& score : s.scores) add(scored.id, s.structure, score);
    }
  }
  for (size_t i = 0; i < out.size(); ++i) out[i].summary = summarise(values[i]);
  return out;
}

std::vector<CaseScores> paired_differences(std::span<const CaseScores> cases,
                                           const ScoreTable& baseline) {
  std::vector<CaseScores> out;
  for (const CaseScores& scored : cases) {
    const auto theirs = baseline.find(scored.id);
    if (theirs == baseline.end()) continue;
    CaseScores differences{scored.id, {}};
    for (StructureScores s : scored.structures) {
      const auto same = theirs->second.find(s.structure);
      if (same == theirs->second.end()) continue;
      for (Score& score : s.scores) {
        const auto found = same->second.find(score.name);
        score.value -= found == same->second.end() ? kNone : found->second;
      }
      differences.structures.push_back(std::move(s));
    }
    if (!differences.structures.empty()) out.push_back(std::move(differences));
  }
  return out;
}

std::string to_tsv(std::span<const CaseScores> cases) {
  std::string text = "id\tstructure";
  if (cases.empty() || cases[0].structures.empty()) return text + "\n";
  for (const Score& score : cases[0].structures[0].scores) text += std::string("\t") + score.name;
  for (const CaseScores& scored : cases) {
    for (const StructureScores& s : scored.structures) {
      text += "\n" + scored.id + "\t" + escaped(s.structure);
      for (const Score& score : s.scores) {
        char number[32];
        const auto end = std::to_chars(number, number + sizeof number, score.value).ptr;
        text += "\t" + (std::isnan(score.value) ? "n/a" : std::string(number, end));
      }
    }
  }
  return text + "\n";
}

}  // namespace larch
