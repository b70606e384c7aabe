// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <utility>
#include <vector>

// The threads of a CUDA device on one thread of the host. Each has a stack of its own, and another
// goes on where one waits: at a barrier, at an operation of its warp, and now and then where it
// touches memory that others may touch as well. Which one is drawn by a seed.
namespace larch::emulation {

struct Dim3 {
  uint32_t x, y, z;
  constexpr Dim3(uint32_t of_x = 1, uint32_t of_y = 1, uint32_t of_z = 1)  // NOLINT: as in CUDA
      : x(of_x), y(of_y), z(of_z) {}
};

struct Warp;
struct Block;

/// What a lane does together with others of its warp.
enum class Collective : uint8_t { kNone, kSync, kBallot, kShuffle, kAdd, kOr, kAnd, kMin, kMax };

struct DeviceThread {
  void* stack = nullptr;  ///< its stack pointer while others run
  Warp* warp = nullptr;
  Block* block = nullptr;
  Dim3 index{};
  uint32_t lane = 0;
  uint64_t value = 0, result = 0;  ///< given to a collective, and got from it
  uint32_t mask = 0, source = 0;
  Collective collective = Collective::kNone;            ///< that it waits in
  int32_t barrier = -1;                                 ///< that it waits at
  std::vector<std::pair<void*, const void*>> copies{};  ///< on their way: to, from
};

/// The thread that runs; null while the host does, as on other threads of the host always.
extern constinit thread_local DeviceThread* running;

const Dim3& block_index();

/// Here another thread may go on.
void switch_point();
/// Before memory is used that may not be the thread's own; `from`: where in the program.
void use_memory(const void* at, size_t bytes, bool is_write, const void* from);
void use_atomic(const void* at, size_t bytes, const void* from);
/// Waits for the lanes in `mask`. `source`: whose value a shuffle gets.
uint64_t collective(Collective what, uint32_t mask, uint64_t value, uint32_t source = 0);
/// bar.sync: waits until `count` threads of the block are there, or, for 0, all that have not
/// ended.
void barrier(uint32_t number, uint32_t count = 0);
/// Waits for all threads of a block. Is `value` true in one of them?
bool any_of_block(bool value);
/// Waits for all threads of all blocks of a cooperative launch.
void grid_barrier();

/// Shared memory of the block. A variable is known by the address of something static beside it.
void* dynamic_shared();
void* shared_variable(const void* key, size_t bytes);
template <class T>
T& shared(const void* key) {
  return *static_cast<T*>(shared_variable(key, sizeof(T)));
}

/// What is launched, and on how many threads.
struct LaunchShape {
  const char* kernel;
  Dim3 blocks, threads;
  size_t shared_bytes = 0;
  bool is_cooperative = false;  ///< all blocks run at once and may wait for each other
};

/// Runs a kernel to its end. Returns what is wrong, for example threads that wait for ever, or
/// nothing.
std::string run(const LaunchShape& shape, const std::function<void()>& kernel);

/// LARCH_EMULATION_SEED, or 1.
uint64_t seed();
/// Processors of the device, which each hold one block of a cooperative launch; drawn.
int32_t processors();
/// Threads of a block at most, and bytes that a block may share.
constexpr uint32_t kMaximumThreads = 1024;
constexpr size_t kMaximumShared = 227 << 10;

}  // namespace larch::emulation

/// Of the launch that runs. No macros as the others: structs of the runtime have such members.
extern larch::emulation::Dim3 gridDim, blockDim;
