// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/dsa/dsa_config.h"
#include "larch/pipeline/angiography/subtract_sequence.h"

// What is said of a subtraction and would have no effect is refused before anything is read.
namespace larch::pipeline {

/// Throws UsageError for settings that the literal method decides otherwise.
void check_literal(const dsa::DsaConfig& given);

/// Throws UsageError for what is of sequences alone, where a volume is subtracted from another.
void check_volume_options(const SequenceRequest& request, const dsa::DsaConfig& config);

}  // namespace larch::pipeline
