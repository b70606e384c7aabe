// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_detection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <map>
#include <memory>
#include <span>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/core/step.h"
#include "larch/files/file.h"
#include "larch/filters/components.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/pbt/evaluate/candidates.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/components.h"
#include "larch/pipeline/voxel_model.h"

namespace larch::pipeline {
namespace {

/// One image on its way; what nothing needs any more is let go.
struct DetectionJob {
  std::vector<Volume<float>> components{};  ///< of the image; empty after the evaluation
  Volume<float> image{};  ///< what is shown of them, empty unless a step behind it needs the image
  Grid grid{};            ///< of the image
  Region roi{};
  VoxelMaps maps{};
  LabelVolume labels{};          ///< the values of classes, or that of the background
  LabelTable classes{};          ///< of the model, beside the background
  std::vector<Mesh> surfaces{};  ///< of the structures together, then of each of several; LPS mm
  int64_t voxels = -1;           ///< of the structures; -1: they were not looked for
  StepSeconds seconds{};
};
using DetectionPtr = std::shared_ptr<DetectionJob>;

/// The threshold of the settings, or else of the model.
double threshold_of(const StructureConfig& config, const models::VoxelModel& model) {
  if (config.threshold) return *config.threshold;
  return image_model(model).info.measured("threshold").value_or(0.5);
}

/// Tells whether labels are made; without them the voxels above the threshold are counted.
bool wants_structure(const cases::CaseJob& c) {
  return c.wants("output") || c.wants("mesh") || c.wants("qc");
}

bool cuts_graph(const cases::CaseJob& c, const DetectConfig& config) {
  return wants_structure(c) && config.structure.regularise;
}

/// Throws UsageError if an image on this grid does not fit the format of its file, or its structure
/// cannot be regularised.
void check_fits(const cases::CaseJob& c, const DetectConfig& config, const Grid& grid) {
  for (const char* flag : {"output", "probability"}) {
    if (c.wants(flag)) require_image_holds(c.file(flag), grid.size);
  }
  if (cuts_graph(c, config)) regularise::check_lambda(config.structure.graph_cut, grid);
}

void read_input(const cases::CaseJob& c, const DetectionRequest& request,
                const models::VoxelModel& model, DetectionJob& job) {
  job.components = read_components(c.row, image_model(model).components, c.read);
  job.grid = job.components[0].grid();
  check_fits(c, request.config, job.grid);
  if (request.roi.empty()) return;
  const LabelVolume labels = read_labels(request.roi, label_options(c.read, job.grid));
  job.roi.in_image = mapped<uint8_t>(labels, [](int32_t label) { return label != 0; });
  cases::require_same_grid(request.roi, job.roi.in_image.grid(), c.row.image, job.grid);
}

/// What is shown of an image: the mean of its components.
Volume<float> shown(std::vector<Volume<float>> components) {
  Volume<float> image = std::move(components[0]);
  for (size_t k = 1; k < components.size(); ++k) {
    for (int64_t i = 0; i < image.voxels(); ++i) image[i] += components[k][i];
  }
  for (float& value : image) value /= static_cast<float>(components.size());
  return image;
}

/// The region of interest in model space: voxels whose nearest input voxel is set.
Volume<uint8_t> roi_in_model_space(const Volume<uint8_t>& roi, const Grid& grid,
                                   const Context& context) {
  const auto labels = mapped<int32_t>(roi, [](uint8_t value) { return value; });
  return mapped<uint8_t>(image::resample_labels(labels, grid, context),
                         [](int32_t value) { return value != 0; });
}

/// What a case needs of a model.
VoxelRequest request_of(const cases::CaseJob& c, const DetectionRequest& request,
                        const models::VoxelModel& model) {
  const bool finds = wants_structure(c) || c.wants("probability") || c.wants("candidates");
  VoxelRequest out;
  out.probability = finds && has_background(model);
  out.maps.labels = finds && !has_background(model);
  out.maps.distribution = c.wants("distribution");
  out.maps.leaves = c.wants("leaves");
  const int trees = request.config.leaf_trees;
  if (trees > 0) out.maps.leaf_trees = static_cast<uint32_t>(trees);
  out.trees = request.config.evaluate;
  out.memory_bytes = request.memory_bytes;
  return out;
}

/// What a model says of the image, which is resampled and quantised as the model wants it; in the
/// turn of the case channels are integrated, and the trees evaluated.
void evaluate(const cases::CaseJob& c, const DetectionRequest& request,
              const models::VoxelModel& model, DetectionJob& job) {
  std::vector<Volume<int16_t>> voxels;
  {
    const Step step(job.seconds, "model space", 0, c.context());
    for (const Volume<float>& image : job.components) {
      voxels.push_back(image::to_model_space(image, image_model(model).space, c.context(),
                                             "'" + c.row.image + "'"));
    }
    if (!job.roi.in_image.empty()) {
      job.roi.in_model_space = roi_in_model_space(job.roi.in_image, voxels[0].grid(), c.context());
    }
    const bool has_contrast =
        request.config.structure.graph_cut.weights == regularise::EdgeCost::kContrast;
    if (c.wants("qc") || (cuts_graph(c, request.config) && has_contrast)) {
      job.image = shown(std::move(job.components));
    }
    job.components.clear();
  }
  const Turn turn = c.context().turn();
  const Step step(job.seconds, "evaluation", 0.2, turn.context());
  job.maps = evaluate_voxels(model, voxels, request_of(c, request, model), job.roi, job.grid,
                             turn.context());
}

/// Moves the threshold to 1/2 on the logit scale, so that the energy of the graph cut, which knows
/// only 1/2, respects it.
Volume<float> centred(const Volume<float>& probability, double threshold) {
  return mapped<float>(probability, [=](float p) {
    const double on = p * (1 - threshold), off = (1 - p) * threshold;
    return on / (on + off);
  });
}

/// `image` is empty unless the weights of the graph need it.
Volume<uint8_t> segment(const Volume<float>& probability, const Volume<float>& image,
                        const StructureConfig& config, double threshold, const Context& context) {
  Volume<float> moved;
  if (threshold != 0.5) moved = centred(probability, threshold);
  const Volume<float>& p = threshold == 0.5 ? probability : moved;
  if (!config.regularise) return mapped<uint8_t>(p, [](float value) { return value > 0.5F; });
  return regularise::graph_cut(p, image.empty() ? nullptr : &image, config.graph_cut, context);
}

/// The smoothed surface. Throws MemoryError, before it is made, if it takes more than is free.
Mesh surface_of(Volume<uint8_t> mask, const mesh::SmoothConfig& config, const Context& context) {
  const mesh::SurfaceSize size = mesh::surface_size(mask, context);
  mesh::require_memory(size,
                       std::max(mesh::marching_cubes_bytes(size, mask.size(), context.threads),
                                mesh::smooth_bytes(size, config)));
  Mesh surface = mesh::marching_cubes(mask, context);
  mask = {};
  return mesh::smooth(std::move(surface), config, context);
}

/// From the probability to the labels and their surfaces.
void find_structure(const cases::CaseJob& c, const DetectConfig& config,
                    const models::VoxelModel& model, DetectionJob& job) {
  auto step = std::make_unique<Step>(job.seconds, "structure", 0.6, c.context());
  if (!job.maps.labels.empty()) {  // every voxel is of a class
    job.labels = std::move(job.maps.labels[0]);
    const Volume<uint8_t>& roi = job.roi.in_image;
    job.voxels = job.grid.voxels() - std::count(roi.begin(), roi.end(), 0);
  }
  if (job.maps.probability.empty()) return;
  const double threshold = threshold_of(config.structure, model);
  const Volume<float>& probability = job.maps.probability;
  if (!wants_structure(c)) {
    job.voxels = std::count_if(probability.begin(), probability.end(),
                               [t = static_cast<float>(threshold)](float p) { return p > t; });
    return;
  }
  Volume<uint8_t> mask = segment(probability, job.image, config.structure, threshold, c.context());
  if (config.structure.keep_components > 0) {
    const bool many = job.classes.size() > 1;
    const LabelVolume classes = many ? classes_inside(mask, model, job.maps) : LabelVolume{};
    mask = filters::keep_largest_component(mask, config.structure.keep_components,
                                           c.context().threads, many ? &classes : nullptr);
  }
  if (config.structure.fill_holes) mask = filters::fill_holes(mask, c.context().threads);
  job.voxels = std::count_if(mask.begin(), mask.end(), [](uint8_t m) { return m != 0; });
  job.labels = classes_inside(mask, model, job.maps);
  if (!c.wants("mesh")) return;
  step.reset();
  const Step surfaces(job.seconds, "surface", 0.9, c.context());
  job.surfaces.push_back(surface_of(std::move(mask), config.smooth, c.context()));
  for (size_t k = 0; k < job.classes.size() && job.classes.size() > 1; ++k) {
    const auto of_class =
        mapped<uint8_t>(job.labels, [&](int32_t label) { return label == job.classes[k].value; });
    job.surfaces.push_back(surface_of(of_class, config.smooth, c.context()));
  }
}

/// Writes probabilities, a distribution as the volumes of one file.
template <class T>
void write_maps(const std::string& path, std::span<const Volume<T>> maps, bool is_series,
                int threads) {
  if (is_series) return write_volume_series<T>(path, maps, threads);
  write_volume(path, maps[0], threads);
}

/// Writes them as integers: 1 becomes the largest value of T.
template <class T>
void write_scaled(const std::string& path, std::span<const Volume<float>> maps, bool is_series,
                  int threads) {
  std::vector<Volume<T>> scaled;
  for (const Volume<float>& map : maps) {
    scaled.push_back(mapped<T>(
        map, [](float p) { return std::nearbyint(p * double{std::numeric_limits<T>::max()}); }));
  }
  write_maps<T>(path, scaled, is_series, threads);
}

void write_probabilities(const std::string& path, std::span<const Volume<float>> maps,
                         bool is_series, pbt::ProbabilityType type, int threads) {
  const auto write = type == pbt::ProbabilityType::kFloat32  ? write_maps<float>
                     : type == pbt::ProbabilityType::kUint16 ? write_scaled<uint16_t>
                                                             : write_scaled<uint8_t>;
  write(path, maps, is_series, threads);
}

/// The candidate list as text: rank, index (x, y, z), LPS mm and probability, tab-separated.
std::string candidates_tsv(const Volume<float>& probability, int64_t count) {
  std::string text = "rank\ti\tj\tk\tx_mm\ty_mm\tz_mm\tprobability\n";
  int rank = 1;
  for (const pbt::Candidate& c : pbt::top_candidates(probability, count)) {
    const Vec3i at = probability.grid().voxel(c.voxel);
    const Vec3d p = world_from_index(probability.grid(), at.cast<double>());
    char line[256];
    std::snprintf(line, sizeof line, "%d\t%d\t%d\t%d\t%.4f\t%.4f\t%.4f\t%.6f\n", rank++, at.x, at.y,
                  at.z, p.x, p.y, p.z, static_cast<double>(c.probability));
    text += line;
  }
  return text;
}

void add_files(const cases::CaseJob& c, const DetectionPtr& job, const DetectConfig& config,
               Outputs& outputs) {
  const LabelTable& table = job->classes;
  const std::string labels = c.file("output");
  const int threads = c.context().threads;
  outputs.add(labels,
              [=](const std::string& path) { write_labelmap(path, job->labels, table, threads); });
  if (!labels.empty()) {
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  const pbt::ProbabilityType type = config.probability_type;
  outputs.add(c.file("probability"), [=](const std::string& path) {
    write_probabilities(path, std::span(&job->maps.probability, 1), false, type, threads);
  });
  outputs.add(c.file("distribution"), [=](const std::string& path) {
    write_probabilities(path, job->maps.distribution, true, type, threads);
  });
  outputs.add(c.file("leaves"), [=](const std::string& path) {
    write_labelmap_series(path, job->maps.leaves, {}, threads);
  });
  const std::string mesh = c.file("mesh");
  outputs.add(mesh, [=](const std::string& path) { write_mesh(path, job->surfaces[0]); });
  for (size_t k = 1; k < job->surfaces.size(); ++k) {
    const std::string ending =
        ".class-" + std::to_string(table[k - 1].value) + file_extension(mesh);
    outputs.add_companion(cases::companion_of(mesh, ending),
                          [=](const std::string& path) { write_mesh(path, job->surfaces[k]); });
  }
  outputs.add(c.file("qc"), [=](const std::string& path) {
    picture::QcOptions picture;
    picture.colours = table;
    write_png(path, picture::qc_picture(job->image, job->labels, picture));
  });
  outputs.add(c.file("candidates"), [=, count = config.candidate_count](const std::string& path) {
    write_file(path, candidates_tsv(job->maps.probability, count));
  });
}

/// The voxels and the volume of each class.
nlohmann::ordered_json class_volumes(const DetectionJob& job) {
  std::map<int32_t, int64_t> counts;
  for (const int32_t label : job.labels) ++counts[label];
  auto classes = nlohmann::ordered_json::array();
  for (const LabelEntry& entry : job.classes) {
    const auto voxels = counts[entry.value];
    const double volume_ml = static_cast<double>(voxels) * job.grid.voxel_volume_mm3() / 1000;
    classes.push_back({{"value", entry.value},
                       {"name", entry.name},
                       {"voxels", voxels},
                       {"volume_ml", volume_ml}});
  }
  return classes;
}

}  // namespace

void check_for(const models::VoxelModel& model, const std::vector<CaseOutput>& files,
               const DetectConfig& config) {
  const auto refuse = [&](std::initializer_list<const char*> flags, const char* why) {
    for (const char* flag : flags) {
      if (!cases::file_of(files, flag).empty()) throw UsageError(std::string("--") + flag + why);
    }
  };
  if (std::holds_alternative<forest::Model>(model)) {
    config::require_default(config.evaluate, "evaluate.", "boosting trees");
  } else {
    refuse({"distribution", "leaves"}, ": the model is no decision forest");
  }
  if (config.leaf_trees != 0 && cases::file_of(files, "leaves").empty()) {
    throw UsageError("--leaf_trees goes with --leaves");
  }
  if (!has_background(model)) {
    config::require_default(config.structure, "structure.", "models with a background class");
    config::require_default(config.smooth, "smooth.", "models with a background class");
    refuse({"probability", "candidates", "mesh"},
           ": the model has no background class, from which structures could be told");
  }
  for (const char* flag : {"distribution", "leaves"}) {
    const std::string path = cases::file_of(files, flag);
    if (!path.empty()) require_series_ending(path);
  }
}

Outputs detect_case(const cases::CaseJob& c, const DetectionRequest& request,
                    const models::VoxelModel& model) {
  const auto job = std::make_shared<DetectionJob>();
  job->classes = classes_of(model);
  read_input(c, request, model, *job);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  evaluate(c, request, model, *job);
  find_structure(c, request.config, model, *job);
  c.context().progress(1, "done");

  Outputs outputs;
  outputs.grid(c.row.image, describe(job->grid));
  if (job->voxels >= 0) {
    const double volume_mm3 = static_cast<double>(job->voxels) * job->grid.voxel_volume_mm3();
    outputs.metric("voxels", static_cast<double>(job->voxels))
        .metric("volume_ml", volume_mm3 / 1000);
  }
  if (!job->maps.probability.empty()) {
    outputs.metric("threshold", threshold_of(request.config.structure, model));
  }
  if (std::holds_alternative<forest::Model>(model) && !job->labels.empty()) {
    outputs.report("classes", class_volumes(*job));
  }
  for (const auto& [step, seconds] : job->seconds) outputs.metric("seconds: " + step, seconds);
  add_files(c, job, request.config, outputs);
  if (job->voxels >= 0 && job->voxels < request.config.structure.min_voxels) {
    const std::string name = job->classes.size() == 1 ? job->classes[0].name : "any class";
    outputs.status("rejected", "nothing was detected: " + std::to_string(job->voxels) +
                                   " voxels of '" + name + "'");
  }
  return outputs;
}

cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionRequest& request,
                                  const models::VoxelModel& model) {
  const Grid grid = probe_components(c.row, image_model(model).components, c.read);
  cases::CaseLook look = cases::look_of(grid);
  check_fits(c, request.config, grid);
  if (!request.roi.empty()) {
    cases::require_same_grid(
        request.roi, probe_image(request.roi, label_options(c.read, grid)).grid, c.row.image, grid);
  }
  const Vec3i size = image::model_grid(grid, image_model(model).space).size;
  look.bytes = slab_bytes(model, size, request_of(c, request, model), !request.roi.empty(),
                          c.context().device);
  return look;
}

}  // namespace larch::pipeline
