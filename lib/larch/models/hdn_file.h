// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/hdn/train/train.h"

namespace larch::models {

/// A network as a container of the kind "hdn", as write_model and read_model (pbt_file.h) have
/// boosting trees: equal models give equal bytes, and reading checks everything, with
/// hdn::check_model and the self-test vectors of every detector. Throw InputError, write_network
/// OutputError too.
void write_network(const std::string& path, const hdn::Model& model);
hdn::Model read_network(const std::string& path);

/// The kind of container that a checkpoint of a network is.
inline constexpr const char* kNetworkCheckpointKind = "hdn-checkpoint";

/// The same for a training that is not finished. `fingerprint` is a digest of all that it depends
/// on; reading with another one throws InputError, and so does reading a model.
void write_training(const std::string& path, const hdn::PartialTraining& training,
                    const std::string& fingerprint);
hdn::PartialTraining read_training(const std::string& path, const std::string& fingerprint);

/// A network as JSON text without loss, as export_json.
std::string export_network_json(const hdn::Model& model);

/// A summary for people, lines under 100 columns, with tables of the structures and the detectors.
std::string describe_network(const hdn::Model& model);

}  // namespace larch::models
