// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <tuple>

#include <nlohmann/json.hpp>

#include "larch/boundary/train/train.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/text.h"
#include "larch/data/volume.h"
#include "larch/files/file.h"
#include "larch/hdn/train/train.h"
#include "larch/models/checkpoint.h"
#include "larch/pose/distance_map.h"
#include "larch/pose/truth.h"
#include "larch/shape/correspondence.h"
#include "larch/train.h"
#include "larch/voxels/pool.h"

namespace larch {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kLongestMap = 128;  ///< voxels of a distance map

/// A case with its image in model space.
struct ReadCase {
  std::string name, group;
  Grid grid{};  ///< of the image as it is stored
  Volume<int16_t> voxels{};
};

/// A case of a network: where it has them poses by structure, or the parts of its label map that
/// hold the structures.
struct PosedCase : ReadCase {
  std::vector<std::optional<Pose>> poses{};
  std::vector<Volume<uint8_t>> masks{};  ///< empty: the structure does not occur

  bool has(size_t s) const { return masks.empty() ? poses[s].has_value() : !masks[s].empty(); }
};

/// A case of a boundary.
struct SurfaceCase : ReadCase {
  Volume<uint8_t> mask{};       ///< one component, without holes
  Pose pose{};                  ///< world
  Volume<float> distance_mm{};  ///< signed, from the surface of the mask
  std::string digest{};         ///< of voxels and mask
};

ReadCase in_model_space(const std::string& id, const TrainingCase& c,
                        const image::ModelSpace& space, const Context& context) {
  const Volume<float>& image = c.images.at(0);
  return {id, c.group, image.grid(),
          image::to_model_space(image, space, context, "'" + c.name + "'")};
}

/// Returns the truth of a case; adds its labels to `seen`.
PosedCase truth_of(const TrainingCase& c, const hdn::Model& model, std::set<int>& seen) {
  PosedCase out;
  if (c.labels.empty()) {
    for (const hdn::Structure& s : model.structures) {
      const auto pose = c.poses.find(s.name);
      out.poses.push_back(pose == c.poses.end() ? std::nullopt : std::optional(pose->second));
    }
    return out;
  }
  seen.merge(labels_in(c.labels));
  for (const hdn::Structure& s : model.structures) {
    out.masks.push_back(pose::mask_of(c.labels, s.labels));
    if (!out.masks.back().empty()) {
      pose::check_mask(out.masks.back(), "'" + c.name + "': '" + s.name + "'");
    }
  }
  return out;
}

/// Returns the pose of a symmetric shape that is turned the least, among all that it has.
Pose least_turned(const Pose& pose, const std::vector<pose::Symmetry>& symmetries) {
  Pose best = pose;
  for (const pose::Symmetry& symmetry : symmetries) {
    const Pose other = with_axes_renamed(pose, symmetry.rotation);
    if (std::abs(other.rotation.w) > std::abs(best.rotation.w)) best = other;
  }
  return best;
}

/// Warns once of the cases in which a structure is cut by the border of its image.
void warn_of_border(const std::string& structure, const std::vector<std::string>& cases,
                    const std::string& result, const Context& context) {
  if (cases.empty()) return;
  const bool is_one = cases.size() == 1;
  context.warn("'" + structure + "' touches the border of the image in " +
               (is_one ? "the case" : std::to_string(cases.size()) + " cases") + ", " + result +
               ": " + cases[0] + (is_one ? "" : ", ..., " + cases.back()));
}

/// The poses of a structure in the cases that have masks of it.
void fit_structure(size_t s, const hdn::HdnConfig& config, std::vector<PosedCase>& all,
                   hdn::Model& model, const Context& context) {
  std::vector<Volume<uint8_t>> masks;
  std::vector<size_t> of;
  for (size_t c = 0; c < all.size(); ++c) {
    if (all[c].masks.empty()) continue;
    all[c].poses.resize(model.structures.size());
    if (all[c].masks[s].empty()) continue;
    masks.push_back(std::move(all[c].masks[s]));
    of.push_back(c);
  }
  if (masks.empty()) return;
  hdn::Structure& structure = model.structures[s];
  const hdn::StructureConfig& wanted =
      *std::ranges::find(config.structures, structure.name, &hdn::StructureConfig::name);
  pose::PoseTruth truth = pose::fit_poses(masks, config.orientation, context);
  structure.mean_distance_mm = std::move(truth.mean_distance_mm);
  double residual = 0;
  std::vector<std::string> cut;
  for (size_t k = 0; k < of.size(); ++k) {
    const pose::CasePose& found = truth.cases[k];
    residual += found.residual_mm / static_cast<double>(of.size());
    all[of[k]].poses[s] =
        wanted.symmetric ? least_turned(found.pose, truth.symmetries) : found.pose;
    if (found.touches_border) cut.push_back(all[of[k]].name);
  }
  warn_of_border(structure.name, cut, "so that its box may be too small", context);
  context.info("'" + structure.name + "' in " + std::to_string(of.size()) +
               " label maps: mean distance from the mean shape " + formatted("%.2f mm", residual));
  for (const pose::Symmetry& symmetry : truth.symmetries) {
    if (wanted.symmetric) structure.symmetries.push_back(symmetry.rotation);
  }
  if (!truth.symmetries.empty() && !wanted.symmetric) {
    context.warn("'" + structure.name + "' looks the same after rotations (" +
                 std::to_string(truth.symmetries.size()) +
                 ") that exchange the axes of its box, so that its orientation is one of several; "
                 "set \"symmetric\" for this structure");
  }
}

/// On the CPU the images of the cases are in the memory that the training may take. Throws
/// MemoryError.
template <class Cases, class Image>
void count_images(const Cases& cases, const Image& image_of, voxels::TrainConfig& config,
                  const Context& context) {
  if (config.memory_bytes == 0 || context.device.is_cuda()) return;
  int64_t bytes = 0;
  for (const auto& c : cases) {
    for (const Volume<int16_t>& level : image_of(c).levels) bytes += 2 * level.voxels();
  }
  if (bytes >= config.memory_bytes) voxels::throw_lack_of_memory(2 * bytes, context);
  config.memory_bytes -= bytes;
}

std::vector<hdn::TrainingCase> posed_cases(const TrainingCases& cases, const hdn::HdnConfig& config,
                                           hdn::Model& model, const Context& context) {
  std::vector<PosedCase> all;
  std::set<int> seen;
  for_each_case(cases, context, [&](size_t i, const TrainingCase& c) {
    ReadCase& one = all.emplace_back(truth_of(c, model, seen));
    one = in_model_space(cases.ids[i], c, model.space, context);
  });
  for (size_t s = 0; s < model.structures.size(); ++s) {
    const std::vector<int32_t>& labels = model.structures[s].labels;
    if (!seen.empty()) check_labels(labels, seen, "hdn/structures/labels");
    fit_structure(s, config, all, model, context);
  }
  std::vector<hdn::TrainingCase> posed;
  std::vector<std::string> group_of;
  for (PosedCase& c : all) {
    posed.push_back(hdn::make_training_case(c.name, std::move(c.voxels), c.grid, c.poses,
                                            config.halvings, context));
    vary_intensity(posed.back(), config.gain, config.offset, model.space.intensity, context.seed);
    group_of.push_back(c.group);
    c = {};
  }
  group_and_sort(posed, group_of);
  return posed;
}

/// Returns a configuration for each structure, and completes the names of the structures.
std::vector<boundary::BoundaryConfig> by_structure(boundary::BoundaryConfig& config,
                                                   const hdn::Model* network) {
  std::vector<std::string>& names = config.structures;
  if (names.empty() && network != nullptr) {
    for (const hdn::Structure& s : network->structures) names.push_back(s.name);
  }
  if (names.empty()) names = {"structure"};
  if (names.size() > 1 && (network == nullptr || !config.labels.empty())) {
    throw UsageError(
        "boundary/structures: several structures have the labels that --start-model knows, not "
        "boundary/labels");
  }
  std::vector<boundary::BoundaryConfig> all(names.size(), config);
  for (size_t s = 0; s < names.size(); ++s) {
    if (std::ranges::count(names, names[s]) > 1) {
      throw UsageError("boundary/structures: '" + names[s] + "' stands twice");
    }
    all[s].structures = {names[s]};
  }
  return all;
}

/// The structure as a network knows it, or as the configuration says.
struct KnownStructure {
  Volume<float> mean_distance_mm{};
  pose::RelativeGaussian errors{};
};

/// Completes the configuration of a structure by a network.
KnownStructure known_structure(boundary::BoundaryConfig& config, const hdn::Model* network) {
  if (config.refine.search != boundary::ShapeSearch::kBoundary) {
    config::require_default(config.refine, "boundary.refine.", "--boundary.refine.search boundary",
                            {"search_modes"});
  }
  KnownStructure known;
  known.errors = boundary::errors_of(config);
  if (network == nullptr) return known;
  const std::string& name = config.structures.at(0);
  const auto found = std::ranges::find(network->structures, name, &hdn::Structure::name);
  if (found == network->structures.end()) {
    std::string names;
    for (const auto& s : network->structures) names += (names.empty() ? "" : ", ") + s.name;
    throw InputError("boundary/structures: the network has no structure '" + name + "'; it has " +
                     names);
  }
  if (found->mean_distance_mm.empty()) {
    throw InputError("the network has no mean shape of '" + name +
                     "': train it on label maps with hdn/orientation fit");
  }
  if (config.labels.empty()) config.labels.assign(found->labels.begin(), found->labels.end());
  known.mean_distance_mm = found->mean_distance_mm;
  if (found->errors.count > 1) {
    known.errors = found->errors;
    config::require_default(config, "boundary.", "trainings without the errors of --start-model",
                            {"error_mm", "error_deg", "error_scale"});
  }
  return known;
}

/// Returns the largest component of the structure, its holes filled; warns where it does not occur.
Volume<uint8_t> mask_of(const TrainingCase& c, const boundary::Model& model, std::set<int>& seen,
                        const Context& context) {
  seen.merge(labels_in(c.labels));
  const LabelVolume used = mapped<int32_t>(c.labels, [&](int32_t label) {
    return std::ranges::count(c.left_out, label) > 0 ? 0 : label;
  });
  Volume<uint8_t> mask = pose::structure_mask(used, model.labels);
  if (mask.empty()) {
    context.warn("'" + c.name + "': '" + model.structure +
                 "' does not occur; the case is left out");
  } else {
    pose::check_mask(mask, "'" + c.name + "'");
  }
  return mask;
}

/// Returns the cases in which the structure occurs, in an order that does not depend on the list.
std::vector<SurfaceCase> surface_cases(const TrainingCases& cases, const boundary::Model& model,
                                       const Context& context) {
  std::vector<SurfaceCase> all;
  std::set<int> seen;
  for_each_case(cases, context, [&](size_t i, const TrainingCase& c) {
    SurfaceCase one{in_model_space(cases.ids[i], c, model.space, context)};
    one.mask = mask_of(c, model, seen, context);
    if (one.mask.empty()) return;
    Sha256 sha;
    add_to_digest(one.voxels, sha);
    add_to_digest(one.mask, sha);
    one.digest = hex(sha.digest());
    all.push_back(std::move(one));
  });
  std::stable_sort(all.begin(), all.end(), [](const SurfaceCase& a, const SurfaceCase& b) {
    return std::tie(a.digest, a.group) < std::tie(b.digest, b.group);
  });
  check_boundary_cases(all.size(), seen, model);
  return all;
}

/// Finds true poses and surfaces: the poses of the network's mean shape, or of one that is made of
/// the cases.
void fit_cases(const KnownStructure& known, std::vector<SurfaceCase>& all, boundary::Model& model,
               const Context& context) {
  std::vector<pose::CasePose> poses(all.size());
  model.mean_distance_mm = known.mean_distance_mm;
  if (model.mean_distance_mm.empty()) {
    std::vector<Volume<uint8_t>> masks;
    masks.reserve(all.size());
    for (const SurfaceCase& c : all) masks.push_back(c.mask);
    pose::PoseTruth truth = pose::fit_poses(masks, pose::OrientationKind::kFit, context);
    poses = std::move(truth.cases);
    model.mean_distance_mm = std::move(truth.mean_distance_mm);
  }
  parallel_for_each(context.threads, static_cast<int64_t>(all.size()), 1, [&](size_t i) {
    if (!known.mean_distance_mm.empty()) {
      poses[i] = pose::fit_pose(all[i].mask, known.mean_distance_mm);
    }
    all[i].distance_mm = pose::distance_map(all[i].mask, kLongestMap);
  });
  std::vector<std::string> cut;
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].pose = poses[i].pose;
    if (poses[i].touches_border) cut.push_back(all[i].name);
  }
  warn_of_border(model.structure, cut, "where its surface is none", context);
}

/// Learns the shape of the cases, and reports those that are left out of it.
void learn_shape(const std::vector<SurfaceCase>& all, boundary::Model& model,
                 boundary::TrainReport& report, const Context& context) {
  std::vector<Volume<float>> distances;
  std::vector<Pose> poses, accepted_poses;
  for (const SurfaceCase& c : all) {
    distances.push_back(c.distance_mm);
    poses.push_back(c.pose);
  }
  const shape::Correspondence found =
      shape::correspond(distances, poses, model.mean_distance_mm, context);
  std::vector<std::vector<Vec3d>> accepted;
  for (size_t i = 0; i < all.size(); ++i) {
    const shape::CorrespondedCase& c = found.cases[i];
    report.retried += c.is_retried ? 1 : 0;
    report.accepted_strictly += c.rejection.empty() && c.flipped_strictly == 0 ? 1 : 0;
    if (!c.rejection.empty()) {
      report.rejected.emplace_back(all[i].name, c.rejection);
      continue;
    }
    report.distance_voxels += c.distance_voxels;
    accepted.push_back(c.vertices_mm);
    accepted_poses.push_back(poses[i]);
  }
  if (accepted.empty()) {
    throw InputError(
        "the template fits the surface of no case; see whether the labels are those "
        "of one closed structure");
  }
  report.accepted = accepted.size();
  report.distance_voxels /= static_cast<double>(accepted.size());
  model.shape = shape::make_shape_model(accepted, accepted_poses, context);
  context.info("shape of '" + model.structure + "': " + std::to_string(accepted.size()) + " of " +
               std::to_string(all.size()) + " cases, " +
               formatted("%.2f voxels", report.distance_voxels) + " off their surfaces, " +
               std::to_string(model.shape.modes.size()) + " modes with " +
               formatted("%.0f %%", 100 * model.shape.quality.share) + " of the variance");
  if (accepted.size() < shape::kMinimumCases) {
    context.warn("fewer than " + std::to_string(shape::kMinimumCases) +
                 " shapes: the model has a mean and no modes");
  }
}

std::vector<boundary::TrainingCase> boundary_cases(std::vector<SurfaceCase> all,
                                                   const boundary::BoundaryConfig& config,
                                                   const boundary::Model& model,
                                                   const Context& context) {
  std::vector<hdn::TrainingCase> images;
  std::vector<std::string> group_of;
  std::map<std::string, Volume<float>> distances;
  for (SurfaceCase& c : all) {
    const std::optional<Pose> truth = c.pose;
    images.push_back(
        hdn::make_training_case(c.name, std::move(c.voxels), c.grid, {&truth, 1}, 0, context));
    vary_intensity(images.back(), config.gain, config.offset, model.space.intensity, context.seed);
    group_of.push_back(c.group);
    distances[c.name] = std::move(c.distance_mm);
    c = {};
  }
  group_and_sort(images, group_of);
  std::vector<boundary::TrainingCase> cases;
  for (hdn::TrainingCase& c : images) {
    Volume<float>& distance = distances[c.name];
    cases.push_back({std::move(c), std::move(distance)});
  }
  return cases;
}

}  // namespace

boundary::Models start_boundary(boundary::BoundaryConfig& config, const voxels::TrainConfig& shared,
                                const hdn::Model* network) {
  image::check_rule(shared.space.intensity);
  const double mm = config.finest_spacing_mm;
  boundary::Models models;
  models.space = {{mm, mm, mm}, image::Orientation::kWorld, shared.space.intensity};
  for (boundary::BoundaryConfig& of : by_structure(config, network)) {
    known_structure(of, network);
    boundary::Model& model = models.structures.emplace_back();
    model.space = models.space;
    model.structure = of.structures[0];
    model.labels.assign(of.labels.begin(), of.labels.end());
    model.refine = config.refine;
  }
  return models;
}

std::vector<bool> structures_of(const TrainingCase& c, const hdn::Model& start,
                                std::set<int>& seen) {
  const PosedCase truth = truth_of(c, start, seen);
  std::vector<bool> occurs;
  for (size_t s = 0; s < start.structures.size(); ++s) occurs.push_back(truth.has(s));
  return occurs;
}

bool has_structure(const TrainingCase& c, const boundary::Model& start, std::set<int>& seen,
                   const Context& context) {
  return !mask_of(c, start, seen, context).empty();
}

void check_boundary_cases(size_t count, const std::set<int>& seen, const boundary::Model& start) {
  check_labels(start.labels, seen, "boundary/labels");
  if (count < 2) throw InputError("a boundary is learned from at least two cases");
}

TrainResult train_network(const TrainingCases& cases, hdn::HdnConfig config,
                          const voxels::TrainConfig& given, const TrainingRun& run,
                          const Context& side) {
  const Turn turn = side.turn();
  const Context& context = turn.context();
  voxels::TrainConfig shared = voxels::with_constants(given);
  hdn::Model start = start_network(config, shared, cases.declared, context.seed);
  std::vector<hdn::TrainingCase> posed = posed_cases(cases, config, start, context);
  count_images(posed, std::identity(), shared, context);
  const std::string settings =
      Json{{"shared", config::to_json(shared)}, {"hdn", config::to_json(config)}}.dump();
  std::vector<std::string> digests;
  digests.reserve(posed.size());
  for (const hdn::TrainingCase& c : posed) {
    digests.push_back(c.digest + " " + std::to_string(c.group));
  }
  const std::string print = models::fingerprint(settings, context.seed, digests);
  if (config.order == hdn::Order::kAuto) hdn::choose_order(posed, start, config, shared, context);
  const models::TrainingCheckpoint<hdn::PartialTraining> checkpoint(
      run.checkpoint, run.resume, print,
      [](const hdn::PartialTraining& partial) {
        return std::to_string(partial.report.stages.size()) + " detectors";
      },
      context);
  const auto report = std::make_shared<hdn::TrainReport>();
  hdn::Model model =
      hdn::train_network(posed, start, config, shared, checkpoint.hooks(), *report, context);
  model.info.tool_version = run.tool_version;
  model.info.training_config_json = settings;
  model.info.about = models::about_model(run.card, model.info.case_digests);
  std::vector<std::pair<std::string, double>> figures{
      {"training_cases", double(posed.size())},
      {"structures", double(model.structures.size())},
      {"detectors", double(report->stages.size())}};
  return {std::make_shared<models::AnyModel>(std::move(model)), std::move(figures), {}, report};
}

namespace {

boundary::Model train_structure(const TrainingCases& cases, boundary::BoundaryConfig config,
                                voxels::TrainConfig shared, const hdn::Model* network,
                                const TrainingRun& run, boundary::TrainReport& report,
                                const Context& context) {
  boundary::Model model = std::move(start_boundary(config, shared, network).structures[0]);
  const KnownStructure known = known_structure(config, network);
  std::vector<SurfaceCase> all = surface_cases(cases, model, context);
  fit_cases(known, all, model, context);
  learn_shape(all, model, report, context);
  const std::vector<boundary::TrainingCase> learned =
      boundary_cases(std::move(all), config, model, context);
  count_images(learned, std::mem_fn(&boundary::TrainingCase::image), shared, context);
  const std::string settings =
      Json{{"shared", config::to_json(shared)}, {"boundary", config::to_json(config)}}.dump();
  std::vector<std::string> digests;
  digests.reserve(learned.size() + 1);
  for (const boundary::TrainingCase& c : learned) {
    digests.push_back(c.image.digest + " " + std::to_string(c.image.group));
  }
  std::string& errors = digests.emplace_back();
  for (const double v : known.errors.covariance) errors += formatted(" %a", v);
  for (const double v : known.errors.mean) errors += formatted(" %a", v);
  const models::TrainingCheckpoint<boundary::PartialTraining> checkpoint(
      run.checkpoint, run.resume, models::fingerprint(settings, context.seed, digests),
      [](const boundary::PartialTraining& partial) {
        return std::to_string(partial.report.size()) + " levels of '" + partial.model.structure +
               "'";
      },
      context);
  model = boundary::train_boundary(learned, model, config, shared, known.errors, checkpoint.hooks(),
                                   report.levels, context);
  if (!model.confidence.is_known()) {
    context.warn("'" + model.structure +
                 "': too few cases (or one fold) to learn how sure results are: boundary-refine "
                 "will not tell whether it is in the right place");
  }
  return model;
}

}  // namespace

TrainResult train_boundary(const TrainingCases& cases, boundary::BoundaryConfig config,
                           const voxels::TrainConfig& given, const hdn::Model* network,
                           const TrainingRun& run, const Context& side) {
  const Turn turn = side.turn();
  Context context = turn.context();
  const voxels::TrainConfig shared = voxels::with_constants(given);
  boundary::Models models = start_boundary(config, shared, network);
  ModelInfo& info = models.info;
  info = {run.tool_version, {}, {}, context.seed, {}};
  info.training_config_json =
      Json{{"shared", config::to_json(shared)}, {"boundary", config::to_json(config)}}.dump();
  const auto reports = std::make_shared<std::vector<boundary::TrainReport>>();
  std::vector<std::pair<std::string, double>> figures{
      {"training_cases", 0}, {"modes", 0}, {"recall", 0}, {"distance_mm", 0}};
  const auto count = static_cast<double>(models.structures.size());
  for (const boundary::BoundaryConfig& of : by_structure(config, network)) {
    const size_t s = reports->size();
    context.progress_sink = [&](double part, std::string_view phrase) {
      turn.context().progress((static_cast<double>(s) + part) / count,
                              "'" + of.structures[0] + "': " + std::string(phrase));
    };
    TrainingRun own = run;
    if (s > 0 && !run.checkpoint.empty()) {
      own.checkpoint += "." + std::to_string(s + 1);
      own.resume = run.resume && is_file(own.checkpoint);
    }
    boundary::TrainReport& report = reports->emplace_back();
    boundary::Model& model = models.structures[s];
    model = train_structure(cases, of, shared, network, own, report, context);
    const std::vector<std::string>& digests = model.info.case_digests;
    info.case_digests.insert(info.case_digests.end(), digests.begin(), digests.end());
    figures[0].second += static_cast<double>(digests.size()) / count;
    figures[1].second += static_cast<double>(model.shape.modes.size()) / count;
    figures[2].second += report.levels.back().recall / count;
    figures[3].second += report.levels.back().after_mm / count;
  }
  info.about = models::about_model(run.card, info.case_digests);
  return {
      std::make_shared<models::AnyModel>(std::move(models)), std::move(figures), {}, {}, reports};
}

}  // namespace larch
