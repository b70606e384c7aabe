// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <tuple>
#include <type_traits>
#include <utility>

#include "tests/emulation/device_threads.h"

using dim3 = larch::emulation::Dim3;
using cudaStream_t = struct CUstream_st*;

// Launches of kernels. as_cpp.py writes calls of these in place of CUDA's own syntax.
namespace larch::emulation {

/// A kernel with arguments, which are copied from where these point to.
using Bind = std::function<std::function<void()>(void** arguments)>;
void remember_kernel(const void* address, const char* name, Bind bind);
/// Runs it, and keeps what went wrong for cudaGetLastError.
void launch_kernel(const LaunchShape& shape, const std::function<void()>& kernel);

/// `name<<<blocks, threads, shared_bytes, stream>>>`, to be called with the arguments.
template <class Kernel>
auto launcher(const char* name, Kernel kernel, dim3 blocks, dim3 threads, size_t shared_bytes = 0,
              cudaStream_t /*stream*/ = nullptr) {
  return [=](const auto&... arguments) {
    launch_kernel({name, blocks, threads, shared_bytes}, [&] { kernel(arguments...); });
  };
}

/// The address of a kernel, which can be launched by it from then on.
template <class... P>
void* kernel_address(const char* name, void (*kernel)(P...)) {
  auto* address = reinterpret_cast<void*>(kernel);
  remember_kernel(address, name, [kernel](void** arguments) -> std::function<void()> {
    return [&]<size_t... I>(std::index_sequence<I...>) {
      using All = std::tuple<std::remove_cvref_t<P>...>;
      return [kernel, all = All(*static_cast<std::remove_cvref_t<P>*>(arguments[I])...)] {
        std::apply(kernel, all);
      };
    }
    (std::index_sequence_for<P...>());
  });
  return address;
}

}  // namespace larch::emulation
