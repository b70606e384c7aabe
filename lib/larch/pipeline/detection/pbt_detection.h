// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "larch/cases/step.h"
#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/volume.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/smooth.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/model.h"
#include "larch/regularise/graph_cut.h"

namespace larch::pipeline {

/// From probability to labels.
struct StructureConfig {
  double threshold = 0.5;
  bool regularise = true;
  regularise::GraphCutConfig graph_cut;
  int keep_components = 1;
  bool fill_holes = true;
  int64_t min_voxels = 1;

  template <class F>
  void fields(F&& f) {
    f(Field{"threshold", threshold, "probability from which a voxel is the class", 0.001, 0.999},
      Field{"regularise", regularise, "minimise surface area by graph cuts; false: threshold only"},
      Field{"graph_cut", graph_cut, "the regularisation"},
      Field{"keep_components", keep_components,
            "largest connected components to keep; 0: all of them", 0, 1000},
      Field{"fill_holes", fill_holes, "fill enclosed background"},
      Field{"min_voxels", min_voxels, "fewer voxels than this count as no detection", 0,
            1000000000000});
  }
};

/// All settings of pbt-detect.
struct DetectConfig {
  pbt::EvaluateConfig evaluate;
  pbt::ProbabilityType probability_type = pbt::ProbabilityType::kFloat32;
  StructureConfig structure;
  mesh::SmoothConfig smooth;
  int candidate_count = 100;

  template <class F>
  void fields(F&& f) {
    f(Field{"evaluate", evaluate, "how the tree is evaluated"},
      Field{"probability_type", probability_type, "float32, uint16 (x 65535) or uint8 (x 255)"},
      Field{"structure", structure, "from probabilities to labels"},
      Field{"smooth", smooth, "smoothing of the surface mesh"},
      Field{"candidate_count", candidate_count, "length of the candidate list", 1, 100000000});
  }
};

/// What a detection gives; volumes are on the grid of the input.
struct Detection {
  Volume<float> probability;
  LabelVolume labels;  ///< the class's value or 0
  Mesh surface;        ///< LPS mm
  int64_t voxels = 0;
  double volume_mm3 = 0;
  cases::StepSeconds seconds;  ///< of each step
};

/// What is asked for. The rest is not computed, and volumes that nothing needs any more are let go.
struct Wanted {
  bool structure = true;  ///< labels; without them the voxels above the threshold are counted
  bool surface = true;    ///< needs the structure
  bool image = true;      ///< the image is kept for a picture
};

/// One image on its way through a detection. The four steps below follow each other, for different
/// images in different threads if need be.
struct DetectionJob {
  std::string name = "the image";  ///< for messages
  Volume<float> image;
  Volume<uint8_t> roi;  ///< on the grid of the image; empty: everywhere
  Wanted wanted;
  int64_t memory_bytes = 0;  ///< what the evaluation may take; 0: most of what is free

  Grid grid{};              ///< of the image; from `prepare` on
  Volume<int16_t> voxels;   ///< in model space, between `prepare` and `evaluate`
  Volume<uint8_t> nearby;   ///< the region of interest in model space
  Volume<float> posterior;  ///< in model space, between `evaluate` and `find_structure`
  Volume<uint8_t> mask;     ///< of the structure, between `find_structure` and `find_surface`
  mesh::SurfaceSize surface_size;  ///< from `find_structure` on, if the surface is wanted
  Detection found;
};

/// Throws UsageError if the structure cannot be regularised on this grid of an image.
void check_structure(const DetectConfig& config, const Wanted& wanted, const Grid& grid);

/// Image to model space, after check_structure. On the host.
void prepare(const pbt::Model& model, const DetectConfig& config, DetectionJob& job,
             const Context& context);
/// The posterior of each voxel in model space, on context.device, in slabs if job.memory_bytes asks
/// for it (larch/pbt/slabs.h).
void evaluate(const pbt::Model& model, const DetectConfig& config, DetectionJob& job,
              const Context& context);
/// Probability back on the grid of the image (0 outside of the region of interest), regularisation,
/// components, holes; how large the surface will be. On the host.
void find_structure(const pbt::Model& model, const DetectConfig& config, DetectionJob& job,
                    const Context& context);
/// The smoothed surface, if it is wanted. On the host. Throws MemoryError, before it is made, if it
/// takes more than is free.
void find_surface(const DetectConfig& config, DetectionJob& job, const Context& context);

/// Writes the probabilities as an image of the wanted type, in the format of the path's ending.
/// Throws OutputError.
void write_probability(const std::string& path, const Volume<float>& probability,
                       pbt::ProbabilityType type, int threads);

/// The candidate list as text: rank, index (x, y, z), LPS mm and probability, tab-separated.
std::string candidates_tsv(const Volume<float>& probability, int64_t count);

}  // namespace larch::pipeline
