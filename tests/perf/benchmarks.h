// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace larch::perf {

/// Register the benchmarks of one operation for every place.
void register_integral();
void register_evaluate();
void register_boost();
void register_train();
void register_dsa();
void register_levelset();

}  // namespace larch::perf
