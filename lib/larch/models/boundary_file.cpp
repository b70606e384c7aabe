// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/boundary_file.h"

#include <cmath>

#include "larch/core/error.h"
#include "larch/mesh/sphere_template.h"
#include "larch/models/binary_layout.h"
#include "larch/models/boundary_layout.h"
#include "larch/models/file.h"
#include "larch/models/json_layout.h"
#include "larch/models/text_layout.h"
#include "larch/tree/self_test.h"

namespace larch::models {
namespace {

void check_all(const boundary::Model& model) {
  boundary::check_model(model);
  for (const boundary::Stage& stage : model.stages) {
    tree::run_self_tests(stage.trees, stage.features.size());
  }
}

/// Throws InputError unless the meshes of a training are those after its last level.
void check_training(const boundary::PartialTraining& training) {
  const size_t levels = training.model.stages.size();
  bool is_good = levels > 0 && training.report.size() == levels && !training.meshes.empty() &&
                 training.astray.size() == training.meshes.size();
  for (const auto& of_case : training.meshes) {
    is_good = is_good && !of_case.empty() && of_case.size() == training.meshes[0].size();
  }
  for (const boundary::Meshes* meshes : {&training.meshes, &training.astray}) {
    for (const auto& of_case : *meshes) {
      for (const auto& mesh : of_case) {
        is_good =
            is_good && mesh.size() == static_cast<size_t>(mesh::kTemplateVertices[levels - 1]);
        for (const Vec3d& at : mesh) is_good = is_good && std::sqrt(dot(at, at)) <= kFarthestMm;
      }
    }
  }
  if (!is_good) {
    throw InputError("it is not what training leaves behind; delete it and train anew");
  }
}

}  // namespace

void write_boundary(const std::string& path, const boundary::Model& model) {
  boundary::check_model(model);
  write_container(path, to_container(model));
}

boundary::Model read_boundary(const std::string& path) {
  return naming_file("model", path, [&] {
    auto model = from_container<boundary::Model>(read_container(path));
    if (model.stages.empty()) throw InputError("it has no level; it is not finished");
    check_all(model);
    return model;
  });
}

void write_boundary_training(const std::string& path, const boundary::PartialTraining& training,
                             const std::string& fingerprint) {
  write_container(path, to_container(BoundaryCheckpoint{fingerprint, training}));
}

boundary::PartialTraining read_boundary_training(const std::string& path,
                                                 const std::string& fingerprint) {
  return naming_file("checkpoint", path, [&] {
    const Container container = read_container(path);
    if (container.kind == kBoundaryKind.name) {
      throw InputError("it is a finished model, not a checkpoint; train without --resume");
    }
    auto [found, training] = from_container<BoundaryCheckpoint>(container);
    require_fingerprint(found, fingerprint);
    check_all(training.model);
    check_training(training);
    return std::move(training);
  });
}

std::string export_boundary_json(const boundary::Model& model) {
  boundary::check_model(model);
  return model_to_json(model).dump(1) + "\n";
}

std::string describe_boundary(const boundary::Model& model) {
  boundary::check_model(model);
  const shape::ShapeQuality& quality = model.shape.quality;
  std::vector<Column> columns{{"vertices", {}}, {"features", {}}, {"trees", {}}, {"nodes", {}}};
  for (size_t i = 0; i < model.stages.size(); ++i) {
    const boundary::Stage& stage = model.stages[i];
    columns[0].cells.push_back(std::to_string(mesh::kTemplateVertices[i]));
    columns[1].cells.push_back(std::to_string(stage.features.size()));
    columns[2].cells.push_back(std::to_string(stage.trees.trees()));
    columns[3].cells.push_back(std::to_string(stage.trees.nodes.size()));
  }
  Facts facts;
  facts.lines = {{"trained",
                  {"on " + std::to_string(model.info.case_digests.size()) + " cases",
                   "written by Larch " + model.info.tool_version}},
                 {"shape",
                  {std::to_string(model.shape.modes.size()) + " modes of " +
                       std::to_string(quality.cases) + " cases",
                   decimal(100 * quality.share) + " % of the variance",
                   std::to_string(quality.modes_95) + " modes have 95 %",
                   "generalisation " + decimal(quality.generalisation_mm) + " mm",
                   "specificity " + decimal(quality.specificity_mm) + " mm"}}};
  // The description changes nothing.
  return description(BoundaryHead{const_cast<boundary::Model&>(model)}, facts) + "\nclassifiers\n" +
         table(columns);
}

}  // namespace larch::models
