// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/dsa/dsa_config.h"
#include "larch/pipeline/angiography/input/angiography_input.h"

namespace larch::pipeline {

/// The sha256, as text, of all that decides the pixels of a subtraction: the bytes of the file
/// `path` and of those that its header names, configuration, masks, region and collimator, and the
/// version of Larch. UIDs are made of it, so that the same run gives the same file, and no other
/// run one with the same UIDs. Throws InputError if a file cannot be read.
std::string angiography_identity(const std::string& path, const dsa::DsaConfig& config,
                                 const OpenAngiogram& open);

}  // namespace larch::pipeline
