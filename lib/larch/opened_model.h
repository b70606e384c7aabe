// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <variant>

#include "larch/boundary/refine.h"
#include "larch/core/error.h"
#include "larch/forest/evaluate.h"
#include "larch/hdn/detect.h"
#include "larch/models.h"
#include "larch/pbt/evaluate/compiled_model.h"

namespace larch {

/// All of it is on the device.
struct Model::Opened {
  std::variant<hdn::ResidentModel, boundary::ResidentModels, pbt::ResidentModel,
               forest::ResidentModel>
      any;
  experts::Resident experts{};  ///< of the last two
};

/// The model as M. Throws UsageError, which says what is `needed`, if it is of another kind.
template <class M>
const M& opened_as(const Model& model, const char* needed) {
  const M* found = std::get_if<M>(&model.opened().any);
  if (found == nullptr)
    throw UsageError(std::string("the model is of another kind: needed is ") + needed);
  return *found;
}

/// Returns the decision forest of a model; null if it is none.
inline const forest::Model* forest_of(const Model& model) {
  const auto* resident = std::get_if<forest::ResidentModel>(&model.opened().any);
  return resident != nullptr ? &resident->model : nullptr;
}

/// Returns what boosting trees and forests of voxels have in common. Throws UsageError as
/// opened_as.
const voxels::ImageModel& image_model(const Model& model);

}  // namespace larch
