// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/context.h"
#include "larch/core/device.h"

namespace larch::test {

/// A context on a CUDA device (or a stream of one), with four threads for what stays on the host.
inline Context cuda_context(const Device& device = Device::cuda()) {
  Context context;
  context.threads = 4;
  context.seed = 1;
  context.device = device;
  return context;
}

}  // namespace larch::test
