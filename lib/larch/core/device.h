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
  /// Stream, or null for the device's default queue. It says in which order
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

/// Returns the number of visible CUDA devices; 0 without CUDA, without a driver or without a card.
int cuda_device_count();

/// Returns a line for people: "NVIDIA H200 (cuda:0), 139.8 GiB" or "cpu, 16 threads".
std::string describe(const Device& device, int threads);

/// Parses auto, cpu, cuda or cuda:N. `auto` takes cuda:0 if there is one, else the CPU, and puts
/// the reason in `*reason`. An explicit cuda never falls back: throws DeviceError that says why.
/// Throws UsageError for anything else; cuda:all, of several cards, is of programs over lists
/// alone.
Device choose_device(const std::string& text, std::string* reason = nullptr);

/// Free bytes of the device's memory; of the host, what this process may still take: see
/// free_host_memory.
size_t free_memory_bytes(const Device& device);

/// Returns when all work of the queue that `device` names is done; at once on the CPU. Throws
/// DeviceError, which may be that of earlier work.
void wait_for(const Device& device);

/// A queue of work on a device of its own, for a thread that works beside others: work in one
/// stream is done in order, work in two streams at the same time. Give each thread a Context whose
/// device is `device()` of a stream of its own. What a buffer of one stream holds may be read in
/// another one as soon as the call that filled it has returned, if that call says that the work is
/// done then. On the CPU a stream is nothing at all.
class Stream {
 public:
  /// Throws DeviceError.
  explicit Stream(const Device& device);
  /// All buffers that were made on `device()` must be gone.
  ~Stream();  // NOLINT(bugprone-exception-escape)
  Stream(const Stream&) = delete;
  Stream& operator=(const Stream&) = delete;

  /// The device, with its work going to this stream.
  const Device& device() const { return device_; }

 private:
  Device device_;
};

}  // namespace larch
