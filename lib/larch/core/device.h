// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

namespace larch {

/// Where an operation runs. A run-time value: nothing is compiled twice for it.
struct Device {
  enum class Kind { kCpu, kCuda };
  Kind kind = Kind::kCpu;
  int index = 0;  ///< CUDA ordinal among the visible devices; 0 for the CPU
  /// The queue of the device that kernels, copies, allocations and releases go to: the handle of a
  /// Stream (larch/core/stream.h), or null for the device's default queue. It says in which order
  /// work is done, not where, so that devices which differ in it alone are equal.
  void* stream = nullptr;

  static Device cpu() { return {}; }
  static Device cuda(int index = 0) { return {Kind::kCuda, index}; }
  bool is_cuda() const { return kind == Kind::kCuda; }
  friend bool operator==(const Device& a, const Device& b) {
    return a.kind == b.kind && a.index == b.index;
  }
};

/// "cpu" or "cuda:0".
std::string to_string(const Device& device);

/// True when this build contains the CUDA code.
bool built_with_cuda();

/// Number of visible CUDA devices; 0 without CUDA, without a driver or without a card.
int cuda_device_count();

/// A line for people: "NVIDIA H200 (cuda:0), 139.8 GiB" or "cpu, 16 threads".
std::string describe(const Device& device, int threads);

/// Parses auto, cpu, cuda or cuda:N. `auto` takes cuda:0 if there is one, else the CPU, and puts
/// the reason in `*reason`. An explicit cuda never falls back: throws DeviceError that says why.
/// Throws UsageError for anything else.
Device choose_device(const std::string& text, std::string* reason = nullptr);

/// Free bytes of the device's memory; of the host, what this process may still take: see
/// free_host_memory.
size_t free_memory_bytes(const Device& device);

}  // namespace larch
