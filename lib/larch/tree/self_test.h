// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/tree/ensemble.h"

namespace larch::tree {

/// Vectors of feature responses, drawn by hash over the range that each feature's weak classifiers
/// know, with the posterior they lead to. `features`: how many the weak classifiers refer to.
std::vector<SelfTest> make_self_tests(const Ensemble& trees, size_t features, uint64_t seed,
                                      size_t count = 64);

/// Evaluates them again. Throws InputError when one differs: the file or this program is damaged.
void run_self_tests(const Ensemble& trees, size_t features);

}  // namespace larch::tree
