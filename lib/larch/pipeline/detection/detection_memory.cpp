// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/detection/detection_memory.h"

#include <algorithm>
#include <string>

#include "larch/core/error.h"
#include "larch/image/preprocess.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/pbt/evaluate/slabs.h"

namespace larch::pipeline {
namespace {

// Bytes per voxel.
constexpr int64_t kImage = 4, kPosterior = 4, kModelSpace = 2;
/// Resampling in model space, before the values are rounded.
constexpr int64_t kResampling = 4;
/// The threshold's labels, the neighbourhood of the surface twice, and the set of band voxels.
constexpr int64_t kBand = 4;
/// The order of the voxels by probability.
constexpr int64_t kCandidates = 8;
/// Bytes per candidate: itself, and its line in a text that grows.
constexpr int64_t kPerCandidate = 16 + 3 * 128;
/// Mask, components and holes (labels, and the runs that they are found by), label map.
constexpr int64_t kAfterTheCut = 28;
/// Label map and mask while the surface is made.
constexpr int64_t kBesideSurface = 5;
/// A volume's copy while it is written, and what is compressed of it.
constexpr int64_t kWriting = 8;

int64_t candidates_bytes(const DetectConfig& config, int64_t voxels) {
  return kPerCandidate * std::min<int64_t>(voxels, config.candidate_count);
}

int64_t kept_image(const DetectConfig& config, const Wanted& wanted, int64_t voxels) {
  return needs_image(config, wanted) ? kImage * voxels : 0;
}

/// `graph`: of the cut.
int64_t finishing_bytes(const DetectConfig& config, const Wanted& wanted, int64_t voxels,
                        int64_t graph) {
  int64_t bytes =
      kPosterior * voxels + kept_image(config, wanted, voxels) + candidates_bytes(config, voxels);
  if (!wanted.structure) return bytes + kCandidates * voxels;
  if (config.structure.threshold != 0.5) bytes += kPosterior * voxels;
  return bytes + std::max(kAfterTheCut * voxels, kBand * voxels + graph);
}

/// The probability on the grid of the image and, for the cut, the band and moved probabilities.
int64_t surveying_bytes(const DetectConfig& config, const Wanted& wanted, int64_t voxels) {
  int64_t bytes = kPosterior * voxels;
  if (!cuts(config, wanted)) return bytes;
  if (config.structure.threshold != 0.5) bytes += kPosterior * voxels;
  return bytes + kBand * voxels;
}

}  // namespace

DetectionMemory detection_memory(const pbt::Model& model, const DetectConfig& config,
                                 const Wanted& wanted, const ImageInfo& image, int64_t memory_bytes,
                                 const Device& device) {
  const int64_t voxels = image.grid.voxels();
  const Grid model_space = image::model_grid(image.grid, model.space);
  const int64_t inner = model_space.voxels();
  const int64_t kept = kept_image(config, wanted, voxels);
  DetectionMemory memory;
  cases::MemoryNeed& need = memory.need;
  // What is read becomes float, and that is copied for its percentiles and resampled.
  need.reading = std::max(image.bytes, kImage * voxels) + kImage * voxels +
                 (kResampling + kModelSpace) * inner;
  need.resting = kept + std::max(kPosterior * inner, kPosterior * voxels);

  const int64_t beside = kept + (kModelSpace + kPosterior) * inner;
  memory.evaluation = memory_bytes;
  need.computing = beside;
  if (!device.is_cuda()) {
    pbt::SlabProblem problem{model_space.size};
    problem.bytes_per_value = kPosterior;
    problem.memory_bytes = INT64_MAX;
    const int64_t whole = pbt::plan_slabs(model, problem).bytes;
    const int64_t allowed = memory_bytes > 0 ? std::max<int64_t>(1, memory_bytes - beside) : whole;
    need.computing = beside + std::min(whole, allowed);
    if (memory_bytes > 0) memory.evaluation = std::min(whole, allowed);
  }
  need.surveying = kept + kPosterior * inner + surveying_bytes(config, wanted, voxels);
  const auto& cut = config.structure.graph_cut;
  const int64_t graph = cuts(config, wanted) ? std::min(voxels, cut.max_band_voxels) *
                                                   regularise::graph_cut_bytes_per_voxel(cut)
                                             : 0;
  need.finishing = kPosterior * inner + finishing_bytes(config, wanted, voxels, graph);
  need.least =
      std::max({need.reading, beside, need.surveying, finishing_bytes(config, wanted, voxels, 0)});
  return memory;
}

int64_t survey_structure(const DetectConfig& config, DetectionJob& job, const Context& context) {
  to_input_grid(job, context);
  int64_t graph = 0;
  if (cuts(config, job.wanted)) {
    const double threshold = config.structure.threshold;
    const Volume<float>& probability = job.found.probability;
    const auto& cut = config.structure.graph_cut;
    graph = threshold == 0.5
                ? regularise::graph_cut_bytes(probability, cut, context)
                : regularise::graph_cut_bytes(centred(probability, threshold), cut, context);
  }
  return finishing_bytes(config, job.wanted, job.grid.voxels(), graph);
}

int64_t bytes_with_surface(const DetectConfig& config, const DetectionJob& job,
                           const std::string& mesh_file, const Context& context) {
  const int64_t voxels = job.grid.voxels();
  const mesh::SurfaceSize& size = job.surface_size;
  const int64_t writing =
      size.bytes() + std::max(mesh_writing_bytes(mesh_file, size.vertices, size.triangles),
                              kWriting * voxels + candidates_bytes(config, voxels));
  return (kPosterior + kBesideSurface) * voxels + kept_image(config, job.wanted, voxels) +
         std::max(surface_bytes(config, job, context), writing);
}

}  // namespace larch::pipeline
