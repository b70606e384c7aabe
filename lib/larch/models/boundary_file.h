// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/boundary/train/train.h"

namespace larch::models {

/// A boundary model as a container of the kind "boundary", as read_network and write_network have
/// networks: reading checks everything, with boundary::check_model and the self-test vectors of
/// every classifier. Throw InputError, write_boundary OutputError too.
void write_boundary(const std::string& path, const boundary::Model& model);
boundary::Model read_boundary(const std::string& path);

/// The kind of container that a checkpoint of a boundary model is.
inline constexpr const char* kBoundaryCheckpointKind = "boundary-checkpoint";

/// The same for a training that is not finished, as write_training and read_training.
void write_boundary_training(const std::string& path, const boundary::PartialTraining& training,
                             const std::string& fingerprint);
boundary::PartialTraining read_boundary_training(const std::string& path,
                                                 const std::string& fingerprint);

/// A boundary model as JSON text without loss, and a summary for people.
std::string export_boundary_json(const boundary::Model& model);
std::string describe_boundary(const boundary::Model& model);

}  // namespace larch::models
