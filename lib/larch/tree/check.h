// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "larch/tree/ensemble.h"

namespace larch::tree {

/// Checks every invariant of the trees that evaluation relies on: children after parents and in
/// range, weak classifiers in range and their `features` features, depth, alpha sums, table length;
/// and those of the history, which pictures rely on.
/// Throws InputError that says which one failed.
void check_ensemble(const Ensemble& trees, size_t features);

/// Throws the InputError of a model that breaks a rule: `what` says which.
[[noreturn]] void refuse_model(const std::string& what);

/// Vectors of feature responses, drawn by hash over the range that each feature's weak classifiers
/// know, with the posterior they lead to. `features`: how many the weak classifiers refer to.
std::vector<SelfTest> make_self_tests(const Ensemble& trees, size_t features, uint64_t seed,
                                      size_t count = 64);

/// Evaluates them again. Throws InputError when one differs: the file or this program is damaged.
void run_self_tests(const Ensemble& trees, size_t features);

}  // namespace larch::tree
