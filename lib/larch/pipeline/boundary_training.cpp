// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/boundary_training.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/app/build_info.h"
#include "larch/cases/images.h"
#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/data/volume_digest.h"
#include "larch/filters/components.h"
#include "larch/picture/surface_view.h"
#include "larch/pose/distance_map.h"
#include "larch/pose/truth.h"
#include "larch/shape/correspondence.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

constexpr int32_t kLongestMap = 128;  ///< voxels of a distance map

/// A case as it is read.
struct SurfaceCase {
  std::string name, group;
  Grid grid;  ///< of the image as it is stored
  Volume<int16_t> voxels{};
  Volume<uint8_t> mask{};  ///< one component, without holes; empty: the structure does not occur
  Pose pose{};             ///< world
  Volume<float> distance_mm{};  ///< signed, from the surface of the mask
  std::string digest{};         ///< of voxels and mask
};

/// The structure as a network knows it, or as the configuration says.
struct KnownStructure {
  Volume<float> mean_distance_mm{};
  pose::RelativeGaussian errors{};
};

std::string text_of(const char* pattern, double value) {
  char text[64];
  std::snprintf(text, sizeof text, pattern, value);
  return text;
}

/// Completes the configuration by a network.
KnownStructure known_structure(boundary::BoundaryConfig& config, const std::string& start_model) {
  if (config.refine.search != boundary::ShapeSearch::kBoundary) {
    config::require_default(config.refine, "boundary.refine.", "--boundary.refine.search boundary",
                            {"search_modes"});
  }
  KnownStructure known;
  known.errors = boundary::errors_of(config);
  if (start_model.empty()) {
    if (config.structure.empty()) config.structure = "structure";
    return known;
  }
  const hdn::Model network = models::read_model<hdn::Model>(start_model);
  const auto found = std::find_if(
      network.structures.begin(), network.structures.end(),
      [&](const auto& s) { return config.structure.empty() || s.name == config.structure; });
  if (found == network.structures.end()) {
    std::string names;
    for (const auto& s : network.structures) names += (names.empty() ? "" : ", ") + s.name;
    throw InputError("boundary/structure: '" + start_model + "' has no structure '" +
                     config.structure + "'; it has " + names);
  }
  if (found->mean_distance_mm.empty()) {
    throw InputError("'" + start_model + "' has no mean shape of '" + found->name +
                     "': train it on label maps with hdn/orientation fit");
  }
  config.structure = found->name;
  if (config.labels.empty()) config.labels.assign(found->labels.begin(), found->labels.end());
  known.mean_distance_mm = found->mean_distance_mm;
  if (found->errors.count > 1) {
    known.errors = found->errors;
    config::require_default(config, "boundary.", "trainings without the errors of --start-model",
                            {"error_mm", "error_deg", "error_scale"});
  }
  return known;
}

boundary::Model start_model_of(const boundary::BoundaryConfig& config,
                               const hdn::SharedConfig& shared) {
  boundary::Model model;
  const double mm = config.finest_spacing_mm;
  model.space = {{mm, mm, mm}, image::Orientation::kWorld, shared.space.intensity};
  model.structure = config.structure;
  model.labels.assign(config.labels.begin(), config.labels.end());
  model.refine = config.refine;
  return model;
}

std::string digest_of(const SurfaceCase& c) {
  Sha256 sha;
  add_to_digest(c.voxels, sha);
  add_to_digest(c.mask, sha);
  return hex(sha.digest());
}

/// Reads the label map of an image on the grid `grid`, and warns if it lacks the structure.
Volume<uint8_t> read_mask(const Case& c, const TrainingFiles& files, const Grid& grid,
                          const boundary::Model& model, std::set<int>& seen,
                          const Context& context) {
  LabelVolume labels = read_labels(c.label, label_options(files.read, grid));
  cases::require_same_grid(c.image, grid, c.label, labels.grid());
  const std::vector<int> left_out =
      left_out_labels(files, c, {labels.begin(), labels.end()},
                      {model.labels.begin(), model.labels.end()}, seen, context);
  for (int32_t& label : labels) {
    if (std::find(left_out.begin(), left_out.end(), label) != left_out.end()) label = 0;
  }
  Volume<uint8_t> mask = structure_mask(labels, model.labels);
  if (mask.empty()) {
    context.warn("case '" + c.id + "': the structure does not occur; it is left out");
  } else {
    pose::check_mask(mask, "'" + c.label + "'");
  }
  return mask;
}

/// Throws InputError if `count` cases, whose label maps hold the values `seen`, are none to learn
/// from.
void check_cases(size_t count, const std::set<int>& seen, const boundary::Model& model) {
  check_labels({model.labels.begin(), model.labels.end()}, seen, "boundary/labels");
  if (count < 2) throw InputError("a boundary is learned from at least two cases");
}

SurfaceCase read_surface_case(const Case& c, const TrainingFiles& files,
                              const boundary::Model& model, std::set<int>& seen,
                              const Context& context) {
  try {
    const Volume<float> image = read_volume<float>(c.image, cases::options_of_case(c, files.read));
    SurfaceCase out{c.id, cell_of(c, kGroupColumn), image.grid()};
    out.voxels = image::to_model_space(image, model.space, context, "'" + c.image + "'");
    out.mask = read_mask(c, files, out.grid, model, seen, context);
    return out;
  } catch (const Error& error) {
    std::throw_with_nested(
        Error(error.code(), "cannot use the case '" + c.id + "' (" + c.image + ")"));
  }
}

/// The cases in which the structure occurs, in an order that does not depend on the list.
std::vector<SurfaceCase> read_surface_cases(const TrainingFiles& files, boundary::Model& model,
                                            const Context& context) {
  std::vector<SurfaceCase> all;
  std::set<int> seen;
  for (const Case& c : files.cases) {
    context.progress(0, "reading " + c.id);
    SurfaceCase one = read_surface_case(c, files, model, seen, context);
    if (!one.mask.empty()) {
      one.digest = digest_of(one);
      all.push_back(std::move(one));
    }
    context.throw_if_stopped("stopped while reading");
  }
  std::stable_sort(all.begin(), all.end(), [](const SurfaceCase& a, const SurfaceCase& b) {
    return std::tie(a.digest, a.group) < std::tie(b.digest, b.group);
  });
  check_cases(all.size(), seen, model);
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
  parallel_for(context.threads, static_cast<int64_t>(all.size()), 1,
               [&](int64_t begin, int64_t end) {
                 for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
                   if (!known.mean_distance_mm.empty()) {
                     poses[i] = pose::fit_pose(all[i].mask, known.mean_distance_mm);
                   }
                   all[i].distance_mm = pose::distance_map(all[i].mask, kLongestMap);
                 }
               });
  for (size_t i = 0; i < all.size(); ++i) {
    all[i].pose = poses[i].pose;
    if (poses[i].touches_border) {
      context.warn("case '" + all[i].name +
                   "': the structure touches the border of the image, where its surface is none");
    }
  }
}

/// The shape of the cases, and a report of those that are left out of it.
Json learn_shape(const std::vector<SurfaceCase>& all, boundary::Model& model,
                 const Context& context) {
  std::vector<Volume<float>> distances;
  std::vector<Pose> poses, accepted_poses;
  for (const SurfaceCase& c : all) {
    distances.push_back(c.distance_mm);
    poses.push_back(c.pose);
  }
  const shape::Correspondence found =
      shape::correspond(distances, poses, model.mean_distance_mm, context);
  std::vector<std::vector<Vec3d>> accepted;
  Json rejected = Json::array();
  int retried = 0, strict = 0;
  double voxels = 0;
  for (size_t i = 0; i < all.size(); ++i) {
    const shape::CorrespondedCase& c = found.cases[i];
    retried += c.is_retried ? 1 : 0;
    strict += c.rejection.empty() && c.flipped_strictly == 0 ? 1 : 0;
    if (!c.rejection.empty()) {
      rejected.push_back({{"case", all[i].name}, {"reason", c.rejection}});
      continue;
    }
    voxels += c.distance_voxels;
    accepted.push_back(c.vertices_mm);
    accepted_poses.push_back(poses[i]);
  }
  if (accepted.empty()) {
    throw InputError(
        "the template fits the surface of no case; see whether the labels are those "
        "of one closed structure");
  }
  voxels /= static_cast<double>(accepted.size());
  model.shape = shape::make_shape_model(accepted, accepted_poses, context);
  context.info("shape: " + std::to_string(accepted.size()) + " of " + std::to_string(all.size()) +
               " cases, " + text_of("%.2f voxels", voxels) + " off their surfaces, " +
               std::to_string(model.shape.modes.size()) + " modes with " +
               text_of("%.0f %%", 100 * model.shape.quality.share) + " of the variance");
  if (accepted.size() < shape::kLeastCases) {
    context.warn("fewer than " + std::to_string(shape::kLeastCases) +
                 " shapes: the model has a mean and no modes");
  }
  const shape::ShapeQuality& q = model.shape.quality;
  return {{"accepted", accepted.size()},
          {"accepted_strictly", strict},
          {"retried", retried},
          {"rejected", rejected},
          {"distance_voxels", voxels},
          {"modes", model.shape.modes.size()},
          {"variance_share", q.share},
          {"modes_95", q.modes_95},
          {"generalisation_mm", q.generalisation_mm},
          {"specificity_mm", q.specificity_mm}};
}

std::vector<boundary::TrainingCase> training_cases(std::vector<SurfaceCase> all,
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

Mesh mode_shape(const shape::ShapeModel& shape, size_t mode, double deviations) {
  Mesh mesh{shape.mean_mm, mesh::sphere_template().levels.back().triangles};
  const double b =
      mode < shape.modes.size() ? deviations * std::sqrt(shape.variances_mm2[mode]) : 0;
  for (size_t v = 0; b != 0 && v < mesh.vertices_mm.size(); ++v) {
    mesh.vertices_mm[v] += b * shape.modes[mode][v];
  }
  return mesh;
}

/// The mean and the first three modes at two deviations to either side.
RgbImage modes_picture(const shape::ShapeModel& shape) {
  std::vector<picture::SurfaceTile> tiles;
  for (size_t mode = 0; mode < std::max<size_t>(1, std::min<size_t>(3, shape.modes.size()));
       ++mode) {
    for (const double deviations : {-2.0, 0.0, 2.0}) {
      char text[64];
      std::snprintf(text, sizeof text, "mode %zu, %+.0f sd", mode + 1, deviations);
      tiles.push_back({mode_shape(shape, mode, deviations), deviations == 0 ? "mean" : text});
    }
  }
  return picture::surface_picture(tiles, 3);
}

Outputs training_outputs(const TrainingFiles& files, const boundary::Model& model,
                         const std::vector<boundary::LevelReport>& report, size_t cases,
                         const Json& shape) {
  Outputs outputs;
  outputs.metric("training_cases", static_cast<double>(cases))
      .metric("modes", static_cast<double>(model.shape.modes.size()));
  Json levels = Json::array();
  for (size_t l = 0; l < report.size(); ++l) {
    const boundary::LevelReport& r = report[l];
    levels.push_back({{"vertices", mesh::kTemplateVertices[l]},
                      {"spacing_mm", model.scale(static_cast<int>(l)).spacing_mm},
                      {"range_voxels", r.range_voxels},
                      {"positives", r.positives},
                      {"negatives", r.negatives},
                      {"recall", r.recall},
                      {"distance_before_mm", r.before_mm},
                      {"distance_after_mm", r.after_mm},
                      {"seconds_features", r.seconds_features},
                      {"seconds_trees", r.seconds_trees},
                      {"seconds_refinement", r.seconds_refinement}});
  }
  outputs.metric("recall", report.back().recall).metric("distance_mm", report.back().after_mm);
  outputs.report("shape", shape);
  outputs.report("levels", levels);
  outputs.add(files.output, [model](const std::string& path) { models::write_model(path, model); });
  outputs.add(files.plot, [picture = modes_picture(model.shape)](const std::string& path) {
    write_png(path, picture);
  });
  return outputs;
}

}  // namespace

Volume<uint8_t> structure_mask(const LabelVolume& labels, const std::vector<int32_t>& values) {
  std::vector<int32_t> wanted = values;
  if (wanted.empty()) {
    const std::set<int32_t> all(labels.begin(), labels.end());
    for (const int32_t value : all) {
      if (value != 0) wanted.push_back(value);
    }
  }
  Volume<uint8_t> mask = pose::mask_of(labels, wanted);
  if (mask.empty()) return mask;
  return filters::fill_holes(filters::keep_largest_component(mask));
}

Outputs train_boundary(const TrainingFiles& files, boundary::BoundaryConfig config,
                       const hdn::SharedConfig& shared, const std::string& start_model,
                       const Context& context) {
  image::check_rule(shared.space.intensity);
  const KnownStructure known = known_structure(config, start_model);
  boundary::Model model = start_model_of(config, shared);
  std::vector<SurfaceCase> all = read_surface_cases(files, model, context);
  fit_cases(known, all, model, context);
  const Json shape = learn_shape(all, model, context);
  const std::vector<boundary::TrainingCase> cases =
      training_cases(std::move(all), config, model, context);
  const std::string settings =
      Json{{"shared", config::to_json(shared)}, {"boundary", config::to_json(config)}}.dump();
  std::vector<std::string> digests;
  digests.reserve(cases.size() + 1);
  for (const boundary::TrainingCase& c : cases) {
    digests.push_back(c.image.digest + " " + std::to_string(c.image.group));
  }
  std::string errors;
  for (const double v : known.errors.covariance) errors += text_of(" %a", v);
  for (const double v : known.errors.mean) errors += text_of(" %a", v);
  digests.push_back(errors);
  const std::string print = fingerprint(settings, context.seed, digests);
  boundary::TrainHooks hooks;
  const TrainingCheckpoint<boundary::PartialTraining> checkpoint(
      files, print,
      [](const boundary::PartialTraining& partial) {
        return std::to_string(partial.report.size()) + " levels";
      },
      context);
  hooks.resume = checkpoint.resumed();
  hooks.after_step = [&](const boundary::PartialTraining& partial) { checkpoint.write(partial); };
  std::vector<boundary::LevelReport> report;
  model =
      boundary::train_boundary(cases, model, config, shared, known.errors, hooks, report, context);
  if (!model.confidence.is_known()) {
    context.warn(
        "too few cases (or one fold) to learn how sure results are: boundary-refine will "
        "not tell whether it is in the right place");
  }
  model.info.tool_version = version();
  model.info.training_config_json = settings;
  return training_outputs(files, model, report, cases.size(), shape);
}

Plan plan_boundary_training(const TrainingFiles& files, boundary::BoundaryConfig config,
                            const hdn::SharedConfig& shared, const std::string& start_model,
                            const Context& context) {
  image::check_rule(shared.space.intensity);
  known_structure(config, start_model);
  const boundary::Model model = start_model_of(config, shared);
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm"}};
  size_t count = 0;
  std::set<int> seen;
  const auto look = [&](const Case& c) {
    const Grid grid = cases::probe_one_volume(c.image, cases::options_of_case(c, files.read)).grid;
    image::model_grid(grid, model.space, "'" + c.image + "'");
    count += read_mask(c, files, grid, model, seen, context).empty() ? 0 : 1;
    plan.table.push_back({c.id, cases::size_cell(grid), cases::spacing_cell(grid)});
  };
  for (const Case& c : files.cases) {
    note_failure(plan, "case '" + c.id + "': ", [&] { look(c); });
    context.throw_if_stopped("stopped");
  }
  if (plan.problems.empty()) note_failure(plan, "", [&] { check_cases(count, seen, model); });
  plan.notes.push_back("levels: " + std::to_string(config.halvings.size()) +
                       ", structure: " + config.structure);
  return plan;
}

}  // namespace larch::pipeline
