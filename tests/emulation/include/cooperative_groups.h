// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "tests/emulation/device_threads.h"

// What the kernels use of CUDA's header of this name.
namespace cooperative_groups {

struct grid_group {
  void sync() const { larch::emulation::grid_barrier(); }
};
inline grid_group this_grid() {
  return {};
}

}  // namespace cooperative_groups
