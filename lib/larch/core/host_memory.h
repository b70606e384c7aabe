// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <new>
#include <string>

namespace larch {

/// Holds what this process may still take of the host's memory.
struct HostMemory {
  size_t bytes = 0;
  std::string limit;  ///< what sets it: "physical memory", "memory limit of the control group", ...
};

/// Returns the least of: available physical memory; the limits of the control groups (version 1 and
/// 2) that the process is in, from its own up to the mount, less what they use and could not give
/// back; the limits on address space and data (ulimit -v and -d), less what the process has; and,
/// where the kernel promises no more than it has (vm.overcommit_memory=2), what it still may
/// promise. What cannot be read does not limit. Cheap enough to be asked before each large
/// allocation. `root` stands in front of /proc and of the mount points: a test puts a folder of
/// such files there.
HostMemory free_host_memory(const std::string& root = "");

/// An allocation on the host that failed; what operator new of the executables throws.
class OutOfMemory : public std::bad_alloc {
 public:
  explicit OutOfMemory(size_t needed_bytes) noexcept : needed_bytes_(needed_bytes) {}
  const char* what() const noexcept override { return "out of memory"; }
  size_t needed_bytes() const noexcept { return needed_bytes_; }

 private:
  size_t needed_bytes_;
};

/// False for an allocation that exceeds what is free: the kernel would promise the memory all the
/// same, and end the process when it is touched. What is free is looked at for each large
/// allocation, and for the sum of smaller ones.
bool host_memory_allows(size_t bytes);

/// "out of memory: 1.5 GiB (1610612736 bytes) needed, 0.4 GiB (... bytes) free (ulimit -v): run
/// where more is free or allowed, or on a smaller or coarser image". 0: how much was needed is not
/// known.
std::string out_of_memory_text(size_t needed_bytes);

}  // namespace larch
