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

/// Calls a kernel with arguments that cudaLaunchCooperativeKernel was given.
using Invoke = std::function<void(void** arguments)>;
void remember_kernel(const void* address, const char* name, Invoke invoke);
/// Runs it, and keeps what went wrong for cudaGetLastError.
void launch_kernel(const LaunchShape& shape, const std::function<void()>& kernel);

/// `name<<<blocks, threads, shared_bytes, stream>>>`, to be called with the arguments.
template <class... P>
auto launcher(const char* name, void (*kernel)(P...), dim3 blocks, dim3 threads,
              size_t shared_bytes = 0, cudaStream_t /*stream*/ = nullptr) {
  return [=](P... arguments) {
    launch_kernel({name, blocks, threads, shared_bytes}, [&] { kernel(arguments...); });
  };
}

/// The address of a kernel, which can be launched by it from then on.
template <class... P>
const void* kernel_address(const char* name, void (*kernel)(P...)) {
  const auto* address = reinterpret_cast<const void*>(kernel);
  remember_kernel(address, name, [kernel](void** arguments) {
    [&]<size_t... I>(std::index_sequence<I...>) {
      kernel(*static_cast<std::remove_cvref_t<P>*>(arguments[I])...);
    }
    (std::index_sequence_for<P...>());
  });
  return address;
}

}  // namespace larch::emulation
