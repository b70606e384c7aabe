// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_detection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <memory>
#include <utility>

#include "larch/cases/step.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/filters/components.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/pbt/evaluate/candidates.h"
#include "larch/pbt/evaluate/slabs.h"
#include "larch/picture/qc.h"

namespace larch::pipeline {
namespace {

/// One image on its way; what nothing needs any more is let go.
struct DetectionJob {
  Volume<float> image{};  ///< empty after the evaluation unless a step behind it needs the image
  Grid grid{};            ///< of the image
  Volume<uint8_t> roi{};  ///< empty: everywhere
  Volume<float> probability{};
  LabelVolume labels{};  ///< the value of the class, or 0
  Mesh surface{};        ///< LPS mm
  int64_t voxels = 0;    ///< of the structure
  cases::StepSeconds seconds{};
};
using DetectionPtr = std::shared_ptr<DetectionJob>;

/// The threshold of the settings, or else of the model.
double threshold_of(const StructureConfig& config, const pbt::Model& model) {
  if (config.threshold) return *config.threshold;
  return model.info.measured("threshold").value_or(0.5);
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

void read_input(const cases::CaseJob& c, const DetectionRequest& request, DetectionJob& job) {
  job.image = read_volume<float>(c.row.image, c.read);
  job.grid = job.image.grid();
  check_fits(c, request.config, job.grid);
  if (request.roi.empty()) return;
  job.roi = read_volume<uint8_t>(request.roi, label_options(c.read));
  cases::require_same_grid(request.roi, job.roi.grid(), c.row.image, job.grid);
}

/// The region of interest in model space: voxels whose nearest input voxel is set.
Volume<uint8_t> roi_in_model_space(const Volume<uint8_t>& roi, const Grid& grid,
                                   const Context& context) {
  const auto labels = mapped<int32_t>(roi, [](uint8_t value) { return value; });
  return mapped<uint8_t>(image::resample_labels(labels, grid, context),
                         [](int32_t value) { return value != 0; });
}

/// The posterior of each voxel of model space: the image is resampled and quantised as the model
/// wants it; in the turn of the case channels are integrated, and the trees evaluated.
Volume<float> evaluate(const cases::CaseJob& c, const DetectionRequest& request,
                       const pbt::Model& model, DetectionJob& job) {
  Volume<int16_t> voxels;
  Volume<uint8_t> nearby;
  {
    const cases::Step step(job.seconds, "model space", 0, c.context());
    voxels = image::to_model_space(job.image, model.space, c.context(), "'" + c.row.image + "'");
    if (!job.roi.empty()) nearby = roi_in_model_space(job.roi, voxels.grid(), c.context());
    const bool has_contrast =
        request.config.structure.graph_cut.weights == regularise::EdgeCost::kContrast;
    if (!c.wants("qc") && !(cuts_graph(c, request.config) && has_contrast)) job.image = {};
  }
  const cases::Turn turn = c.turn();
  const cases::Step step(job.seconds, "evaluation", 0.2, turn.context());
  return pbt::evaluate_volume<float>(model, voxels, request.config.evaluate, request.memory_bytes,
                                     turn.context(), nearby.empty() ? nullptr : &nearby);
}

/// The probability on the grid of the image, 0 outside of the region of interest.
Volume<float> on_input_grid(Volume<float> posterior, const DetectionJob& job,
                            const Context& context) {
  const bool same = describe_difference(posterior.grid(), job.grid, 1e-6).empty();
  Volume<float> probability =
      same ? std::move(posterior) : image::resample(posterior, job.grid, context);
  probability.set_geometry(job.grid);  // a single slice agrees whatever the spacing across it is
  for (int64_t i = 0; i < job.roi.voxels(); ++i) {
    if (job.roi[i] == 0) probability[i] = 0;
  }
  return probability;
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
  Volume<uint8_t> mask =
      config.regularise
          ? regularise::graph_cut(p, image.empty() ? nullptr : &image, config.graph_cut, context)
          : mapped<uint8_t>(p, [](float value) { return value > 0.5F; });
  if (config.keep_components > 0) {
    mask = filters::keep_largest_component(mask, config.keep_components, context.threads);
  }
  if (config.fill_holes) mask = filters::fill_holes(mask, context.threads);
  return mask;
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

/// From the posterior to the labels and their surface.
void find_structure(const cases::CaseJob& c, const DetectConfig& config, const pbt::Model& model,
                    Volume<float> posterior, DetectionJob& job) {
  const double threshold = threshold_of(config.structure, model);
  Volume<uint8_t> mask;
  {
    const cases::Step step(job.seconds, "structure", 0.6, c.context());
    job.probability = on_input_grid(std::move(posterior), job, c.context());
    if (!wants_structure(c)) {
      job.voxels = std::count_if(job.probability.begin(), job.probability.end(),
                                 [t = static_cast<float>(threshold)](float p) { return p > t; });
      return;
    }
    mask = segment(job.probability, job.image, config.structure, threshold, c.context());
    job.voxels = std::count_if(mask.begin(), mask.end(), [](uint8_t m) { return m != 0; });
    job.labels = mapped<int32_t>(
        mask, [&](uint8_t m) { return m != 0 ? int32_t{model.info.class_value} : 0; });
  }
  if (!c.wants("mesh")) return;
  const cases::Step step(job.seconds, "surface", 0.9, c.context());
  job.surface = surface_of(std::move(mask), config.smooth, c.context());
}

/// Writes the probabilities as integers: 1 becomes the largest value of T.
template <class T>
void write_scaled(const std::string& path, const Volume<float>& probability, int threads) {
  const auto scaled = mapped<T>(probability, [](float p) {
    return std::nearbyint(p * double{std::numeric_limits<T>::max()});
  });
  write_volume(path, scaled, threads);
}

void write_probability(const std::string& path, const Volume<float>& probability,
                       pbt::ProbabilityType type, int threads) {
  switch (type) {
    case pbt::ProbabilityType::kFloat32:
      return write_volume(path, probability, threads);
    case pbt::ProbabilityType::kUint16:
      return write_scaled<uint16_t>(path, probability, threads);
    case pbt::ProbabilityType::kUint8:
      return write_scaled<uint8_t>(path, probability, threads);
  }
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

void add_files(const cases::CaseJob& c, const DetectionPtr& job, const LabelTable& table,
               const DetectConfig& config, Outputs& outputs) {
  const std::string labels = c.file("output");
  const int threads = c.context().threads;
  outputs.add(labels,
              [=](const std::string& path) { write_labelmap(path, job->labels, table, threads); });
  if (!labels.empty()) {
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(c.file("probability"), [=, type = config.probability_type](const std::string& path) {
    write_probability(path, job->probability, type, threads);
  });
  outputs.add(c.file("mesh"), [=](const std::string& path) { write_mesh(path, job->surface); });
  outputs.add(c.file("qc"), [=](const std::string& path) {
    picture::QcOptions picture;
    picture.colours = table;
    write_png(path, picture::qc_picture(job->image, job->labels, picture));
  });
  outputs.add(c.file("candidates"), [=, count = config.candidate_count](const std::string& path) {
    write_file(path, candidates_tsv(job->probability, count));
  });
}

}  // namespace

Outputs detect_case(const cases::CaseJob& c, const DetectionRequest& request,
                    const pbt::Model& model) {
  const auto job = std::make_shared<DetectionJob>();
  read_input(c, request, *job);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  find_structure(c, request.config, model, evaluate(c, request, model, *job), *job);
  c.context().progress(1, "done");

  Outputs outputs;
  outputs.grid(c.row.image, describe(job->grid));
  outputs.metric("voxels", static_cast<double>(job->voxels))
      .metric("volume_ml", static_cast<double>(job->voxels) * job->grid.voxel_volume_mm3() / 1000)
      .metric("threshold", threshold_of(request.config.structure, model));
  for (const auto& [step, seconds] : job->seconds) outputs.metric("seconds: " + step, seconds);
  const std::string& name = model.info.class_name;
  add_files(c, job, {{model.info.class_value, name, {230, 60, 50}}}, request.config, outputs);
  if (job->voxels < request.config.structure.min_voxels) {
    outputs.status("rejected", "nothing was detected: " + std::to_string(job->voxels) +
                                   " voxels of '" + name + "'");
  }
  return outputs;
}

cases::CaseLook look_at_detection(const cases::CaseJob& c, const DetectionRequest& request,
                                  const pbt::Model& model) {
  pbt::check_config(request.config.evaluate);
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  cases::CaseLook look = cases::look_of(grid);
  check_fits(c, request.config, grid);
  if (!request.roi.empty()) {
    cases::require_same_grid(request.roi, probe_image(request.roi, label_options(c.read)).grid,
                             c.row.image, grid);
  }
  const Device& device = c.context().device;
  pbt::SlabProblem problem{image::model_grid(grid, model.space).size};
  problem.roi = !request.roi.empty();
  problem.on_gpu = device.is_cuda();
  problem.memory_bytes =
      request.memory_bytes > 0 ? request.memory_bytes : pbt::default_memory_bytes(device);
  look.bytes = pbt::plan_slabs(model, problem).bytes;
  return look;
}

}  // namespace larch::pipeline
