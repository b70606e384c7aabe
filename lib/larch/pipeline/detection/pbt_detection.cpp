// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/pbt_detection.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <limits>
#include <utility>

#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/filters/components.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/pbt/evaluate/candidates.h"
#include "larch/pbt/evaluate/slabs.h"

namespace larch::pipeline {
namespace {

/// The region of interest in model space: voxels whose nearest input voxel is set.
Volume<uint8_t> roi_in_model_space(const Volume<uint8_t>& roi, const Grid& grid,
                                   const Context& context) {
  LabelVolume labels(roi.grid());
  std::copy(roi.begin(), roi.end(), labels.begin());
  const LabelVolume resampled = image::resample_labels(labels, grid, context);
  Volume<uint8_t> out(grid);
  std::transform(resampled.begin(), resampled.end(), out.begin(),
                 [](int32_t v) { return static_cast<uint8_t>(v != 0); });
  return out;
}

/// Tells whether a graph is cut.
bool cuts(const DetectConfig& config, const Wanted& wanted) {
  return wanted.structure && config.structure.regularise;
}

/// Tells whether the image is used after the evaluation.
bool needs_image(const DetectConfig& config, const Wanted& wanted) {
  return wanted.image || (cuts(config, wanted) &&
                          config.structure.graph_cut.weights == regularise::EdgeCost::kContrast);
}

/// Moves the threshold to 1/2 on the logit scale, so that the energy of the graph cut, which knows
/// only 1/2, respects it.
Volume<float> centred(const Volume<float>& probability, double threshold) {
  Volume<float> out = probability;
  for (float& p : out) {
    const double on = p * (1 - threshold), off = (1 - p) * threshold;
    p = static_cast<float>(on / (on + off));
  }
  return out;
}

/// The posterior becomes the probability on the grid of the image, 0 outside of the region of
/// interest.
void to_input_grid(DetectionJob& job, const Context& context) {
  Volume<float>& probability = job.found.probability;
  const bool same = describe_difference(job.posterior.grid(), job.grid, 1e-6).empty();
  probability = same ? std::move(job.posterior) : image::resample(job.posterior, job.grid, context);
  probability.set_geometry(job.grid);  // a single slice agrees whatever the spacing across it is
  job.posterior = {};
  for (int64_t i = 0; i < job.roi.voxels(); ++i) {
    if (job.roi[i] == 0) probability[i] = 0;
  }
}

/// `image` is empty unless the weights of the graph need it.
Volume<uint8_t> segment(const Volume<float>& probability, const Volume<float>& image,
                        const StructureConfig& config, const Context& context) {
  const Volume<float> moved =
      config.threshold == 0.5 ? Volume<float>() : centred(probability, config.threshold);
  const Volume<float>& p = config.threshold == 0.5 ? probability : moved;
  Volume<uint8_t> mask;
  if (config.regularise) {
    mask = regularise::graph_cut(p, image.empty() ? nullptr : &image, config.graph_cut, context);
  } else {
    mask = Volume<uint8_t>(p.grid());
    std::transform(p.begin(), p.end(), mask.begin(),
                   [](float value) { return static_cast<uint8_t>(value > 0.5F); });
  }
  if (config.keep_components > 0)
    mask = filters::keep_largest_component(mask, config.keep_components, context.threads);
  if (config.fill_holes) mask = filters::fill_holes(mask, context.threads);
  return mask;
}

/// The probabilities as integers: 1 becomes the largest value of T.
template <class T>
Volume<T> scaled(const Volume<float>& probability) {
  Volume<T> out(probability.grid());
  std::transform(probability.begin(), probability.end(), out.begin(), [](float p) {
    return static_cast<T>(std::nearbyint(p * double{std::numeric_limits<T>::max()}));
  });
  return out;
}

}  // namespace

void check_structure(const DetectConfig& config, const Wanted& wanted, const Grid& grid) {
  if (cuts(config, wanted)) regularise::check_lambda(config.structure.graph_cut, grid);
}

void prepare(const pbt::Model& model, const DetectConfig& config, DetectionJob& job,
             const Context& context) {
  const cases::Step step(job.found.seconds, "model space", 0, context);
  job.grid = job.image.grid();
  check_structure(config, job.wanted, job.grid);
  job.voxels = image::to_model_space(job.image, model.space, context, job.name);
  if (!job.roi.empty()) job.nearby = roi_in_model_space(job.roi, job.voxels.grid(), context);
  if (!needs_image(config, job.wanted)) job.image = {};
}

void evaluate(const pbt::Model& model, const DetectConfig& config, DetectionJob& job,
              const Context& context) {
  const cases::Step step(job.found.seconds, "evaluation", 0.2, context);
  job.posterior = pbt::evaluate_volume<float>(model, job.voxels, config.evaluate, job.memory_bytes,
                                              context, job.nearby.empty() ? nullptr : &job.nearby);
  job.voxels = {};
  job.nearby = {};
}

void find_structure(const pbt::Model& model, const DetectConfig& config, DetectionJob& job,
                    const Context& context) {
  Detection& found = job.found;
  const cases::Step step(found.seconds, "structure", 0.6, context);
  to_input_grid(job, context);
  if (job.wanted.structure) {
    Volume<uint8_t> mask = segment(found.probability, job.image, config.structure, context);
    found.voxels = std::count_if(mask.begin(), mask.end(), [](uint8_t m) { return m != 0; });
    found.labels = LabelVolume(job.grid);
    std::transform(mask.begin(), mask.end(), found.labels.begin(),
                   [&](uint8_t m) { return m != 0 ? model.info.class_value : 0; });
    if (job.wanted.surface) {
      job.surface_size = mesh::surface_size(mask, context);
      job.mask = std::move(mask);
    }
  } else {
    const auto threshold = static_cast<float>(config.structure.threshold);
    found.voxels = std::count_if(found.probability.begin(), found.probability.end(),
                                 [=](float p) { return p > threshold; });
  }
  found.volume_mm3 = static_cast<double>(found.voxels) * job.grid.voxel_volume_mm3();
}

void find_surface(const DetectConfig& config, DetectionJob& job, const Context& context) {
  if (!job.wanted.surface) return;
  const cases::Step step(job.found.seconds, "surface", 0.9, context);
  const int64_t bytes =
      std::max(mesh::marching_cubes_bytes(job.surface_size, job.grid.size, context.threads),
               mesh::smooth_bytes(job.surface_size, config.smooth));
  const auto free_bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
  if (bytes > free_bytes) {
    throw MemoryError("surface mesh: needs " + std::to_string(bytes) + " bytes for " +
                      describe(job.surface_size) + ", free are " + std::to_string(free_bytes) +
                      "; leave the mesh out, or run where more is free");
  }
  Mesh surface = mesh::marching_cubes(job.mask, context);
  job.mask = {};
  job.found.surface = mesh::smooth(std::move(surface), config.smooth, context);
}

void write_probability(const std::string& path, const Volume<float>& probability,
                       pbt::ProbabilityType type, int threads) {
  switch (type) {
    case pbt::ProbabilityType::kFloat32:
      write_volume(path, probability, threads);
      break;
    case pbt::ProbabilityType::kUint16:
      write_volume(path, scaled<uint16_t>(probability), threads);
      break;
    case pbt::ProbabilityType::kUint8:
      write_volume(path, scaled<uint8_t>(probability), threads);
      break;
  }
}

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

}  // namespace larch::pipeline
