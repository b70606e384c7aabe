// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"
#include "larch/mesh/smooth.h"
#include "larch/models.h"
#include "larch/pbt/evaluate/evaluate_config.h"
#include "larch/regularise/graph_cut.h"

// Label maps, probabilities and surfaces of what a model of voxels finds.
namespace larch {

/// From probability to labels.
struct StructureConfig {
  std::optional<double> threshold{};
  std::optional<bool> regularise{};
  regularise::GraphCutConfig graph_cut;
  int keep_components = 1;
  bool fill_holes = true;
  int64_t min_voxels = 1;

  template <class F>
  void fields(F&& f) {
    f(Field{"threshold", threshold,
            "probability from which a voxel is the class; null: the model's, which was the best on "
            "its held-out volumes, or 0.5",
            0.001, 0.999},
      Field{
          "regularise", regularise,
          "minimise surface area by graph cuts; false: threshold only; null: unless the model has "
          "experts"},
      Field{"graph_cut", graph_cut, "the regularisation"},
      Field{"keep_components", keep_components,
            "largest connected components to keep, for each class; 0: all of them", 0, 1000},
      Field{"fill_holes", fill_holes, "fill enclosed background"},
      Field{"min_voxels", min_voxels, "fewer voxels than this count as no detection", 0,
            1000000000000});
  }
};

/// All settings of a detection.
struct DetectConfig {
  pbt::EvaluateConfig evaluate;
  pbt::ProbabilityType probability_type = pbt::ProbabilityType::kFloat32;
  StructureConfig structure;
  mesh::SmoothConfig smooth;
  int candidate_count = 100;
  int leaf_trees = 0;
  double margin_mm = 10;

  template <class F>
  void fields(F&& f) {
    f(Field{"evaluate", evaluate, "how the tree is evaluated"},
      Field{"probability_type", probability_type, "float32, uint16 (x 65535) or uint8 (x 255)"},
      Field{"structure", structure, "from probabilities to labels"},
      Field{"smooth", smooth, "smoothing of the surface mesh"},
      Field{"candidate_count", candidate_count, "length of the candidate list", 1, 100000000},
      Field{"leaf_trees", leaf_trees, "leaves of the first trees alone; 0: of all", 0, 1024},
      Field{"margin_mm", margin_mm, "by this the boxes of poses are wider on each side", 0, 1000});
  }
};

/// Holds what is asked for. A model without a background class gives labels, distribution and
/// leaves.
struct DetectRequest {
  DetectConfig config{};
  bool probability = false;   ///< of the structures together
  bool labels = true;         ///< without it, voxels above the threshold are counted
  bool surfaces = false;      ///< goes with labels
  bool distribution = false;  ///< of a forest: the probability of each class
  bool leaves = false;        ///< of a forest: the leaf that each tree leads a voxel to
  bool shown = false;         ///< the mean of the images that the model takes together
  Volume<uint8_t> region{};   ///< on the grid of the image: 0 where nothing is looked for
  /// By structure of the model: the box, widened by config.margin_mm, without which it is not
  /// looked for, and outside of which no voxel is of it. Empty: everywhere.
  std::vector<std::optional<Pose>> boxes{};
  int64_t memory_bytes = 0;        ///< of the evaluation on its device; 0: most of what is free
  std::string name = "the image";  ///< for messages

  bool cuts_graph() const { return labels && config.structure.regularise.value_or(true); }
};

/// Holds what was found, on the grid of the image; what was not asked for is empty. Outside of the
/// region, and of all boxes, probabilities are 0, leaves -1 and labels those of the background.
struct Detection {
  Volume<float> probability{};
  std::vector<Volume<float>> distribution{};
  std::vector<LabelVolume> leaves{};
  LabelVolume labels{};
  std::vector<Mesh> surfaces{};  ///< of the structures together, then of each of several; LPS mm
  Volume<float> shown{};
  int64_t voxels = -1;                ///< of the structures; -1: they were not looked for
  std::vector<size_t> outside{};      ///< structures whose boxes hold no voxel of the image
  std::optional<double> threshold{};  ///< from which a voxel is of a structure
  StepSeconds seconds{};
};

/// Evaluates a model at every voxel of an image (Birkbeck, Sofka, Zhou 2011; Sharp 2008), lets the
/// experts of the model look again or regularises the probabilities by a graph cut, and makes label
/// map and surfaces. `components`: the images that the model takes together (Model::components), on
/// one grid in LPS mm; one if it names none. Outside of its box the probability of a class counts
/// to the background. The result does not depend on the device, the number of threads or the
/// memory. Throws UsageError for a model of another kind and for boxes with one that has no
/// background class, InputError for images that do not fit it, MemoryError, and Stopped.
Detection detect(const Model& model, std::vector<Volume<float>> components,
                 const DetectRequest& request, const Context& context);

/// A voxel and its probability.
struct Candidate {
  int64_t voxel = 0;  ///< linear index
  float probability = 0;
};
/// Returns the `count` best voxels by descending probability, then ascending index; all of them if
/// there are no more. Takes time linear in the voxels and memory for 2 `count` candidates.
std::vector<Candidate> top_candidates(const Volume<float>& probability, int64_t count);

/// Returns the memory that the evaluation of an image on a grid takes on the device, by the request
/// without its region. Throws MemoryError.
int64_t detection_bytes(const Model& model, const Grid& grid, const DetectRequest& request,
                        bool has_region, const Device& device);

/// Throws UsageError for settings that a model has no use for.
void check_settings(const Model& model, const DetectConfig& config);

}  // namespace larch
