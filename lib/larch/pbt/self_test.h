// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/pbt/model.h"

namespace larch::pbt {

/// 64 vectors of feature responses, drawn by hash over the range that each feature's weak
/// classifiers know, with the posterior they lead to.
std::vector<SelfTest> make_self_tests(const Model& model, uint64_t seed);

/// Evaluates them again. Throws InputError when one differs: the file or this program is damaged.
void run_self_tests(const Model& model);

}  // namespace larch::pbt
