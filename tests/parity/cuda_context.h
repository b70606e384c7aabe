// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdlib>
#include <cstring>
#include <string_view>
#include <vector>

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

inline Context cpu_context() {
  return cuda_context(Device::cpu());
}

template <class T>
bool same_bytes(const std::vector<T>& a, const std::vector<T>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(T)) == 0;
}

/// Does the environment ask for small tests? racecheck is a hundred times slower.
inline bool small_tests() {
  const char* asked = std::getenv("LARCH_TEST_SMALL");
  return asked != nullptr && std::string_view(asked) == "1";
}

/// A choice between the usual case and the small one.
template <class T>
T sized(const T& usual, const T& small) {
  return small_tests() ? small : usual;
}

}  // namespace larch::test
