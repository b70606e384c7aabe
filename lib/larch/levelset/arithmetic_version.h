// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace larch::levelset {

/// Raise it whenever the same request gives other bits of phi at any step: another order or
/// rounding of operations in step/, other speeds (speed/), first surfaces (initial/) or time steps,
/// other rules of several labels or of ends. Faster ways to the same bits keep it.
///
/// --skip-existing takes results of another version for those of another run.
/// tests/regression/levelset_arithmetic_test.py has the recorded level sets that belong to it.
inline constexpr int kArithmeticVersion = 2;

}  // namespace larch::levelset
