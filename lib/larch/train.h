// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "larch/boundary/boundary_config.h"
#include "larch/core/context.h"
#include "larch/data/model_info.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"
#include "larch/hdn/hdn_config.h"
#include "larch/voxels/train_config.h"

/// Training of models from images in memory. A model depends on the voxels, the labels or poses,
/// the configuration and context.seed alone: not on the device, the number of threads, the order of
/// the cases, their names or interruptions.
namespace larch {

namespace models {
struct AnyModel;
}
namespace hdn {
struct Model;
struct TrainReport;
}  // namespace hdn
namespace boundary {
struct Model;
struct Models;
struct TrainReport;
}  // namespace boundary

/// An image with its truth.
struct TrainingCase {
  std::string name;                   ///< for messages: of the image
  std::vector<Volume<float>> images;  ///< its components, on one grid; most models take one
  LabelVolume labels{};               ///< on the same grid
  /// Networks: in place of labels, the poses of the structures by name, in mm of world space.
  std::map<std::string, Pose> poses{};
  /// Says what makes cases alike, such as the patient: they are held out together. Empty: nothing.
  std::string group{};
  /// Labels whose voxels are not used, beside those that the configuration names.
  std::vector<int> left_out{};
};

/// The cases of a training, which are asked for one by one, so that their images need not be in
/// memory together.
struct TrainingCases {
  std::vector<std::string> ids;  ///< for messages
  /// Is called once for each case, and for boundaries once for each structure.
  std::function<TrainingCase(size_t)> read;
  /// Is called with each case that was read, in their order; may be empty.
  std::function<void(size_t, TrainingCase&)> complete{};
  std::function<Grid(size_t)> grid;           ///< of an image, before it is read
  std::function<LabelVolume(size_t)> labels;  ///< of an image, before it is read
  std::vector<DatasetLabel> declared{};       ///< what a data set calls its labels
  bool side_by_side = false;                  ///< several threads may call `read`
};

/// How a training is kept.
struct TrainingRun {
  std::string checkpoint{};    ///< file that is written as the training goes; empty: none
  bool resume = false;         ///< goes on from the checkpoint
  std::string tool_version{};  ///< for the model
  ModelCard card{};            ///< the same
};

/// A model that was trained, and what the training says of it.
struct TrainResult {
  std::shared_ptr<const models::AnyModel> model;
  std::vector<std::pair<std::string, double>> figures{};
  /// Of a forest: Dice of the classes in held-out volumes, by name.
  std::vector<std::pair<std::string, double>> class_dice{};
  std::shared_ptr<const hdn::TrainReport> network{};  ///< of a network
  /// Of boundaries, by structure.
  std::shared_ptr<const std::vector<boundary::TrainReport>> boundary{};
  std::vector<size_t> held_out{};  ///< of trees and forests: the numbers of such cases
};

/// Writes a model to a file, whole or not at all. Throws OutputError.
void write_model(const std::string& path, const models::AnyModel& model);

/// Trains boosting trees (Tu 2005; Birkbeck, Sofka, Zhou 2011) or a decision forest (Sharp 2008),
/// which label the voxels of an image, on images with label maps. Keys that are null become what
/// fits the cases; model space has the median spacing of the images, unless it is configured.
/// Figures: training_volumes, held_out_volumes, what the model is made of, and its scores on
/// held-out volumes, such as held_out_dice. Throws InputError (grids that differ, a label that
/// never occurs, one class alone), UsageError (configuration), MemoryError, and Stopped after a
/// checkpoint.
TrainResult train_trees(const TrainingCases& cases, const voxels::TrainConfig& config,
                        const TrainingRun& run, const Context& context);

/// Trains a hierarchical detection network (Zheng et al. 2008; Sofka et al. 2010) on images with
/// label maps, to whose structures poses are fitted, or with poses. `shared`: of its keys
/// classifier, space.intensity, space.padding, features, mining, tree, ensemble and forest count.
/// Where the configuration names no structure every declared label is one. Figures:
/// training_cases, structures, detectors. Throws InputError for a structure that occurs in no case,
/// UsageError, MemoryError, and Stopped after a checkpoint.
TrainResult train_network(const TrainingCases& cases, hdn::HdnConfig config,
                          const voxels::TrainConfig& shared, const TrainingRun& run,
                          const Context& context);

/// Trains shapes and boundaries of structures, one after another, on images with label maps; cases
/// without a structure are left out of it. `network`: has the structures, their mean shapes give
/// the poses and their errors displace them; null: both are found from the cases and the
/// configuration, for one structure. `shared`: of its keys space.intensity, space.padding, tree and
/// ensemble count. A structure is what it would be alone; the second one has the checkpoint ".2"
/// behind the name of the first one's. Figures: means over the structures of training_cases, modes,
/// recall and distance_mm of the last level. Throws InputError, UsageError, MemoryError, and
/// Stopped after a checkpoint.
TrainResult train_boundary(const TrainingCases& cases, boundary::BoundaryConfig config,
                           const voxels::TrainConfig& shared, const hdn::Model* network,
                           const TrainingRun& run, const Context& context);

// What can be said of a training before it begins.

/// Throws UsageError for keys of trees and forests without effect for the classifier that is
/// chosen.
void check_keys(const voxels::TrainConfig& config);
/// Sets the classifier and labels/border_voxels. The classifier is the one that the other keys are
/// for, or else a tree where one class is named or the label maps hold one beside the background,
/// and a forest where they hold several. `values`: of the label maps.
void choose_classifier(voxels::TrainConfig& config, const std::set<int>& values,
                       const Context& context);
/// Returns the share of so many volumes that is held out: validation/fraction, or else what their
/// number suggests.
double held_out_fraction(const voxels::TrainConfig& config, size_t volumes);
/// Returns the values of label maps: those that are declared, or of as many as it takes to find two
/// beside the background.
std::set<int> label_values(const TrainingCases& cases, const voxels::TrainConfig& config);
/// Returns the space of trees and forests of images on these grids, which are not looked at if the
/// configuration gives the spacing.
image::ModelSpace model_space(const std::vector<Grid>& grids, const voxels::SpaceConfig& config);

/// Says what a training of trees or forests on images on these grids takes on the device of the
/// context, and in how many portions. The classifier is chosen. Throws MemoryError.
std::string memory_of_training(const std::vector<Grid>& grids, const image::ModelSpace& space,
                               const voxels::TrainConfig& config, const Context& context);

/// A network without detectors, and boundaries without shapes, as a training begins with; they
/// complete the configuration. Throw UsageError, and InputError for a network without a
/// structure.
hdn::Model start_network(hdn::HdnConfig& config, const voxels::TrainConfig& shared,
                         const std::vector<DatasetLabel>& declared, uint64_t seed);
boundary::Models start_boundary(boundary::BoundaryConfig& config, const voxels::TrainConfig& shared,
                                const hdn::Model* network);
/// Tell which structures of the model a case has, whose images may be missing; add its labels to
/// `seen`. Throw InputError for a structure of too few voxels for a pose. The one of a boundary
/// warns where the structure does not occur.
std::vector<bool> structures_of(const TrainingCase& c, const hdn::Model& start,
                                std::set<int>& seen);
bool has_structure(const TrainingCase& c, const boundary::Model& start, std::set<int>& seen,
                   const Context& context);

/// Throws InputError if `count` cases with the structure, whose label maps hold the values `seen`,
/// are none to learn a boundary from.
void check_boundary_cases(size_t count, const std::set<int>& seen, const boundary::Model& start);

/// Throws InputError for a wanted label that is not among those that were seen; `key`: of the
/// configuration.
void check_labels(const std::vector<int>& wanted, const std::set<int>& seen, const char* key);

/// Calls `use` with each case in turn; its errors get the name of the case. Cases that are read
/// side by side before their turn take at most `ahead_bytes`; 0: one thread at a time reads. Throws
/// Stopped.
void for_each_case(const TrainingCases& cases, const Context& context,
                   const std::function<void(size_t, TrainingCase&)>& use, int64_t ahead_bytes = 0);

}  // namespace larch
