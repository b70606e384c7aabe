// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <variant>

#include "larch/forest/model.h"
#include "larch/forest/train.h"
#include "larch/pbt/model.h"

namespace larch::models {

/// The same as for boosting trees (pbt_file.h), of the kind "forest".
void write_forest(const std::string& path, const forest::Model& model);
forest::Model read_forest(const std::string& path);
std::string export_forest_json(const forest::Model& model);
std::string describe_forest(const forest::Model& model);

inline constexpr const char* kForestCheckpointKind = "forest-checkpoint";
void write_forest_partial(const std::string& path, const forest::PartialForest& partial,
                          const std::string& fingerprint);
forest::PartialForest read_forest_partial(const std::string& path, const std::string& fingerprint);

/// A model that labels voxels, of either kind. Throws InputError as read_model.
using VoxelModel = std::variant<pbt::Model, forest::Model>;
VoxelModel read_voxel_model(const std::string& path);

}  // namespace larch::models
