// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/device.h"
#include "larch/core/digest.h"
#include "larch/data/grid.h"
#include "larch/data/mesh.h"

// A model of pbt-train on a device. It is opened once, for as many images as wanted.
namespace larch {

namespace models {
struct AnyModel;
}

enum class ModelKind : uint8_t {
  kVoxels,    ///< boosting trees or a decision forest: detect.h
  kNetwork,   ///< a hierarchical detection network: poses.h
  kBoundary,  ///< boundary.h
};

/// Settings by which a network is put on a device.
struct NetworkConfig {
  struct Evaluate {
    bool hard = false;
    double e1 = 0;

    template <class F>
    void fields(F&& f) {
      f(Field{"hard", hard, "descend one child only: the plain boosting tree"},
        Field{"e1", e1, "certainty beyond which one child gets the whole weight; 0: the model's", 0,
              0.5});
    }
  } evaluate;
  double gpu_share = 1;

  template <class F>
  void fields(F&& f) {
    f(Field{"evaluate", evaluate, "how the trees are evaluated"},
      Field{"gpu_share", gpu_share,
            "of the hypotheses of orientation that the GPU tries, while the CPU tries the others",
            0, 1}
          .no_effect_on_results());
  }
};

/// An opened model. Copies share it, and threads may use it at the same time.
class Model {
 public:
  struct Opened;  ///< the model itself, which the functions of this library look into

  explicit Model(std::shared_ptr<const Opened> opened) : opened_(std::move(opened)) {}
  const Opened& opened() const { return *opened_; }

  ModelKind kind() const;
  bool is_forest() const;  ///< a decision forest, not boosting trees
  /// Tells whether a model of voxels parts structures from what is around them.
  bool has_background() const;
  /// The images that it takes together, by name; empty: one image.
  const std::vector<std::string>& components() const;
  /// Returns what it finds, in the order of the results. A network's structures count from 1, and
  /// so do those of a boundary model unless each has one label and all of them differ, which are
  /// their values then; the classes of a model of voxels are those beside the background.
  LabelTable structures() const;
  /// Returns the label values that the training took for a structure of a boundary model, by its
  /// place, or for the one of another model, none for all but 0, and those that it left out. A
  /// network's structures have none. Throws UsageError if the model does not tell.
  struct TrainedLabels {
    std::vector<int> positive{}, ignored{};
  };
  TrainedLabels trained_labels(size_t structure = 0) const;

 private:
  std::shared_ptr<const Opened> opened_;
};

/// Opens a file of pbt-train on a device. `kind`: the file must be of it; empty: of any. `digest`
/// receives the SHA-256 of the file. Throws InputError that names the file, what is wrong and what
/// to do, UsageError for settings that a network does not have, and DeviceError.
Model open_model(const std::string& path, std::optional<ModelKind> kind, const Device& device,
                 const NetworkConfig& config = {}, const DigestSink& digest = {});

/// Does the same with a model that has just been trained.
Model open_model(models::AnyModel model, const Device& device, const NetworkConfig& config = {});

/// The space in which a model sees an image on a grid, and about what it takes on the host to work
/// on it (0 for models of voxels: see detection_bytes). `name`: of the image, for messages. Throws
/// InputError for a grid that the space cannot hold.
struct ModelFit {
  Grid grid{};
  int64_t bytes = 0;
};
ModelFit fit_of(const Model& model, const Grid& grid, const std::string& name = "the image");

}  // namespace larch
