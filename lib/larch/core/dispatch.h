// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "larch_build.h"  // generated: LARCH_WITH_CUDA is 0 or 1

#include "larch/core/device.h"
#include "larch/core/error.h"

// The one place that asks whether CUDA was built. In a CPU-only build the slot is null.
#if LARCH_WITH_CUDA
#define LARCH_CUDA_FN(function) (function)
#else
#define LARCH_CUDA_FN(function) nullptr
#endif

namespace larch {

inline constexpr bool kBuiltWithCuda = LARCH_WITH_CUDA != 0;

/// The implementations of one operation, one slot per kind of device. A null slot is a clean error;
/// there is no fallback.
template <class R>
struct Dispatch;

template <class R, class... A>
struct Dispatch<R(A...)> {
  const char* name;
  R (*cpu)(A...);
  R (*cuda)(A...);

  template <class... B>
  R operator()(const Device& device, B&&... arguments) const {
    R (*function)(A...) = device.is_cuda() ? cuda : cpu;
    if (function == nullptr) {
      throw DeviceError(std::string(name) + ": no implementation for " + to_string(device) +
                        " in this build; use --device " + (device.is_cuda() ? "cpu" : "cuda"));
    }
    return function(std::forward<B>(arguments)...);
  }
};

}  // namespace larch
