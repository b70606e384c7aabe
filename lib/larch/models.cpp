// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models.h"

#include <set>
#include <utility>

#include "larch/config/config.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/models/model_file.h"
#include "larch/opened_model.h"
#include "larch/picture/draw.h"

namespace larch {
namespace {

using Opened = Model::Opened;

LabelTable classes_of(const forest::Model& model) {
  LabelTable table;
  for (size_t c = 0; c < model.class_table.size(); ++c) {
    if (static_cast<int32_t>(c) == model.background) continue;
    table.push_back(coloured_label(model.class_table[c].value, model.class_table[c].name));
  }
  return table;
}

hdn::ResidentModel resident(hdn::Model model, const NetworkConfig& config, const Device& device) {
  const NetworkConfig::Evaluate& e = config.evaluate;
  const tree::EvaluationRule rule{e.e1 > 0 ? e.e1 : -1, e.hard};
  const bool is_forest = model.structures[0].detectors[0].is_forest();
  if (is_forest) config::require_default(e, "evaluate.", "networks of boosting trees");
  return hdn::make_resident(std::move(model), rule, device, config.gpu_share);
}

models::AnyModel read(const std::string& path, std::optional<ModelKind> kind,
                      const DigestSink& digest) {
  if (!kind) return models::read_any_model(path, digest);
  if (*kind == ModelKind::kNetwork) return models::read_model<hdn::Model>(path, digest);
  if (*kind == ModelKind::kBoundary) return models::read_model<boundary::Models>(path, digest);
  return std::visit([](auto m) { return models::AnyModel(std::move(m)); },
                    models::read_voxel_model(path, digest));
}

/// Returns the memory of an image, and of each level voxels, texels and integrals, the former two
/// twice where the CPU shares the work of a GPU.
int64_t bytes_of(const hdn::ResidentModel& network, const Grid& grid, const Grid& space) {
  const hdn::Model& model = network.model;
  const int64_t twins = network.on_host ? 2 : 1;
  int64_t bytes = 4 * grid.voxels() + 2 * space.voxels();
  Vec3i size = space.size;
  for (int halvings = 0; halvings < model.halvings + features::kSteerableLevels; ++halvings) {
    const int64_t voxels = int64_t{size.x} * size.y * size.z;
    bytes += twins * voxels * static_cast<int64_t>(sizeof(int16_t) + sizeof(image::Texel));
    const int level = model.halvings - halvings;
    if (level >= 0 && network.sums_boxes[static_cast<size_t>(level)]) {
      bytes += 4 * image::total_elements(image::layouts_for(size, model.channels, network.reach));
    }
    size = image::pyramid_size(size);
  }
  return bytes;
}

/// Returns the memory of an image, and of each resolution voxels and texels, together a seventh
/// more.
int64_t bytes_of(const boundary::ResidentModels&, const Grid& grid, const Grid& space) {
  const auto per_voxel = static_cast<int64_t>(sizeof(int16_t) + sizeof(image::Texel));
  return 4 * grid.voxels() + 2 * space.voxels() + per_voxel * space.voxels() * 8 / 7;
}

}  // namespace

const voxels::ImageModel& image_model(const Model& model) {
  if (const forest::Model* forest = forest_of(model)) return *forest;
  return opened_as<pbt::ResidentModel>(model,
                                       "one that labels voxels, of boosting trees or a forest")
      .model;
}

ModelKind Model::kind() const {
  if (std::holds_alternative<hdn::ResidentModel>(opened_->any)) return ModelKind::kNetwork;
  if (std::holds_alternative<boundary::ResidentModels>(opened_->any)) return ModelKind::kBoundary;
  return ModelKind::kVoxels;
}

bool Model::is_forest() const {
  return forest_of(*this) != nullptr;
}

bool Model::has_background() const {
  const forest::Model* forest = forest_of(*this);
  return forest == nullptr || forest->background >= 0;
}

const std::vector<std::string>& Model::components() const {
  static const std::vector<std::string> one{};
  return kind() == ModelKind::kVoxels ? image_model(*this).components : one;
}

LabelTable Model::structures() const {
  if (const forest::Model* forest = forest_of(*this)) return classes_of(*forest);
  if (std::holds_alternative<pbt::ResidentModel>(opened_->any)) {
    const voxels::ImageModel& trees = image_model(*this);
    if (trees.experts.table.empty()) {
      return {{trees.info.class_value, trees.info.class_name, {230, 60, 50}}};
    }
    LabelTable parts;
    for (const auto& [value, name] : trees.experts.table) {
      parts.push_back(coloured_label(value, name));
    }
    return parts;
  }
  LabelTable table;
  const auto add = [&](int32_t value, const std::string& name) {
    const picture::Rgb c = picture::palette_colour(value);
    table.push_back({value, name, {c.r, c.g, c.b}});
  };
  if (const auto* refined = std::get_if<boundary::ResidentModels>(&opened_->any)) {
    std::set<int32_t> own;  // the single labels
    for (const auto& s : *refined) {
      if (s.model.labels.size() == 1) own.insert(s.model.labels[0]);
    }
    for (const auto& s : *refined) {
      const bool is_own = own.size() == refined->size();
      add(is_own ? s.model.labels[0] : static_cast<int32_t>(table.size()) + 1, s.model.structure);
    }
    return table;
  }
  for (const auto& s : std::get<hdn::ResidentModel>(opened_->any).model.structures) {
    add(static_cast<int32_t>(table.size()) + 1, s.name);
  }
  return table;
}

Model::TrainedLabels Model::trained_labels(size_t structure) const {
  if (const auto* refined = std::get_if<boundary::ResidentModels>(&opened_->any)) {
    return {refined->at(structure).model.labels};
  }
  if (kind() != ModelKind::kVoxels) return {};
  voxels::TrainConfig config;
  const config::Json trained =
      config::parse(image_model(*this).info.training_config_json, "the model");
  const auto labels = trained.find("labels");
  if (labels != trained.end()) config::from_json(config.labels, *labels, "the model");
  return {config.labels.positive, config.labels.ignore};
}

Model open_model(const std::string& path, std::optional<ModelKind> kind, const Device& device,
                 const NetworkConfig& config, const DigestSink& digest) {
  if (!device.is_cuda()) config::require_default(config, "", "--device cuda", {"gpu_share"});
  return open_model(read(path, kind, digest), device, config);
}

Model open_model(models::AnyModel model, const Device& device, const NetworkConfig& config) {
  Opened opened;
  if (auto* network = std::get_if<hdn::Model>(&model)) {
    opened.any = resident(std::move(*network), config, device);
  } else if (auto* boundaries = std::get_if<boundary::Models>(&model)) {
    auto& all = opened.any.emplace<boundary::ResidentModels>();
    for (boundary::Model& one : boundaries->structures) {
      all.push_back(boundary::make_resident(std::move(one), device));
    }
  } else if (auto* forest = std::get_if<forest::Model>(&model)) {
    opened.experts = experts::make_resident(forest->experts, device);
    opened.any.emplace<forest::ResidentModel>(std::move(*forest), device);
  } else {
    auto& trees = std::get<pbt::Model>(model);
    opened.experts = experts::make_resident(trees.experts, device);
    opened.any.emplace<pbt::ResidentModel>(std::move(trees), device);
  }
  return Model(std::make_shared<const Opened>(std::move(opened)));
}

ModelFit fit_of(const Model& model, const Grid& grid, const std::string& name) {
  ModelFit fit;
  if (const auto* network = std::get_if<hdn::ResidentModel>(&model.opened().any)) {
    fit.grid = image::model_grid(grid, network->model.space, name);
    fit.bytes = bytes_of(*network, grid, fit.grid);
  } else if (const auto* refined = std::get_if<boundary::ResidentModels>(&model.opened().any)) {
    fit.grid = image::model_grid(grid, refined->at(0).model.space, name);
    fit.bytes = bytes_of(*refined, grid, fit.grid);
  } else {
    fit.grid = image::model_grid(grid, image_model(model).space, name);
  }
  return fit;
}

}  // namespace larch
