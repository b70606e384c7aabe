// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/boundary_training.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/boundary/train/train.h"
#include "larch/cases/images.h"
#include "larch/config/text.h"
#include "larch/core/text.h"
#include "larch/mesh/sphere_template.h"
#include "larch/models/model_file.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/case_labels.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Returns what a list says of an image on a grid.
TrainingCase read_case(const Case& c, const TrainingFiles& files, const Grid& grid,
                       const boundary::Models& start, std::set<int>& seen, const Context& context) {
  TrainingCase out{image_and_label(c), {}, read_case_labels(c, grid, files.labels, files.read)};
  std::vector<int> wanted;
  for (const boundary::Model& one : start.structures) {
    wanted.insert(wanted.end(), one.labels.begin(), one.labels.end());
  }
  out.left_out = left_out_labels(files, c, labels_in(out.labels), wanted, seen, context);
  return out;
}

/// Returns the network with the structure; none if there is no name.
std::optional<hdn::Model> network_of(const std::string& start_model) {
  if (start_model.empty()) return {};
  return models::read_model<hdn::Model>(start_model);
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

/// Shows of each structure the mean and the first modes, three unless there are many structures, at
/// two deviations to either side.
RgbImage modes_picture(const std::vector<boundary::Model>& structures) {
  const size_t most = std::clamp<size_t>(12 / structures.size(), 1, 3);  // fits the screen
  std::vector<picture::SurfaceTile> tiles;
  for (const boundary::Model& model : structures) {
    const shape::ShapeModel& shape = model.shape;
    const std::string of = structures.size() > 1 ? model.structure + ": " : "";
    for (size_t mode = 0; mode < std::clamp<size_t>(shape.modes.size(), 1, most); ++mode) {
      for (const double deviations : {-2.0, 0.0, 2.0}) {
        const auto text = formatted("mode %zu, %+.0f sd", mode + 1, deviations);
        tiles.push_back(
            {mode_shape(shape, mode, deviations), of + (deviations == 0 ? "mean" : text)});
      }
    }
  }
  return picture::surface_picture(tiles, 3);
}

Json report_of(const boundary::Model& model, const boundary::TrainReport& report) {
  Json rejected = Json::array(), levels = Json::array();
  for (const auto& [id, reason] : report.rejected) {
    rejected.push_back({{"case", id}, {"reason", reason}});
  }
  const shape::ShapeQuality& q = model.shape.quality;
  const Json shape{{"accepted", report.accepted},
                   {"accepted_strictly", report.accepted_strictly},
                   {"retried", report.retried},
                   {"rejected", rejected},
                   {"distance_voxels", report.distance_voxels},
                   {"modes", model.shape.modes.size()},
                   {"variance_share", q.share},
                   {"modes_95", q.modes_95},
                   {"generalisation_mm", q.generalisation_mm},
                   {"specificity_mm", q.specificity_mm}};
  for (size_t l = 0; l < report.levels.size(); ++l) {
    const boundary::LevelReport& r = report.levels[l];
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
  return {{"name", model.structure}, {"shape", shape}, {"levels", levels}};
}

}  // namespace

Outputs train_boundary(const TrainingFiles& files, boundary::BoundaryConfig config,
                       const voxels::TrainConfig& shared, const std::string& start_model,
                       const Context& context) {
  const std::optional<hdn::Model> network = network_of(start_model);
  const hdn::Model* known = network ? &*network : nullptr;
  const boundary::Models start = start_boundary(config, shared, known);
  std::set<int> seen;
  const TrainingCases cases = training_cases(files, {}, [&](const Case& c, const Grid& grid) {
    return read_case(c, files, grid, start, seen, context);
  });
  const TrainResult result =
      larch::train_boundary(cases, config, shared, known, training_run(files, context), context);
  const auto& structures = std::get<boundary::Models>(*result.model).structures;
  Outputs outputs = training_outputs(files, result);
  Json report = Json::array();
  for (size_t s = 0; s < structures.size(); ++s) {
    report.push_back(report_of(structures[s], (*result.boundary)[s]));
  }
  outputs.report("structures", report);
  outputs.add(files.plot, [picture = modes_picture(structures)](const std::string& path) {
    write_png(path, picture);
  });
  return outputs;
}

Plan plan_boundary_training(const TrainingFiles& files, boundary::BoundaryConfig config,
                            const voxels::TrainConfig& shared, const std::string& start_model,
                            const Context& context) {
  const std::optional<hdn::Model> network = network_of(start_model);
  const boundary::Models start = start_boundary(config, shared, network ? &*network : nullptr);
  Plan plan;
  plan.table = {{"id", "voxels", "spacing_mm"}};
  std::vector<size_t> counts(start.structures.size(), 0);
  std::set<int> seen, in_maps;
  const auto look = [&](const Case& c) {
    const Grid grid = cases::probe_one_volume(c.image, cases::options_of_case(c, files.read)).grid;
    image::model_grid(grid, start.space, "'" + c.image + "'");
    const TrainingCase one = read_case(c, files, grid, start, seen, context);
    for (size_t s = 0; s < counts.size(); ++s) {
      counts[s] += has_structure(one, start.structures[s], in_maps, context) ? 1 : 0;
    }
    plan.table.push_back({c.id, cases::size_cell(grid), cases::spacing_cell(grid)});
  };
  for (const Case& c : files.cases) {
    note_failure(plan, "case '" + c.id + "': ", [&] { look(c); });
    context.throw_if_stopped("stopped");
  }
  for (size_t s = 0; s < counts.size() && plan.problems.empty(); ++s) {
    note_failure(plan, "", [&] { check_boundary_cases(counts[s], in_maps, start.structures[s]); });
  }
  plan.notes.push_back("levels: " + std::to_string(config.halvings.size()) +
                       ", structures: " + config::join(config.structures));
  return plan;
}

}  // namespace larch::pipeline
