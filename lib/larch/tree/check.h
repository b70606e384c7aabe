// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "larch/tree/ensemble.h"

namespace larch::tree {

/// Checks every invariant of the trees that evaluation relies on: children after parents and in
/// range, weak classifiers in range and their `features` features, depth, alpha sums, table length;
/// and those of the history, which pictures rely on.
/// Throws InputError that says which one failed.
void check_ensemble(const Ensemble& trees, size_t features);

/// Throws the InputError of a model that breaks a rule: `what` says which.
[[noreturn]] void refuse_model(const std::string& what);

}  // namespace larch::tree
