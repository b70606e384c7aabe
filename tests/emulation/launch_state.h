// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "larch/core/random_math.h"
#include "tests/emulation/device_threads.h"
#include "tests/emulation/shared_races.h"
#include "tests/emulation/stacks.h"

// The launch that runs: its threads, who is ready, and who is next.
namespace larch::emulation {

constexpr uint32_t kLanes = 32;
constexpr int32_t kNamedBarriers = 16, kGridBarrier = kNamedBarriers;
/// Where threads are known to touch what others touch, as many accesses to memory of other kinds.
constexpr int32_t kStep = 16;

struct Barrier {
  uint32_t count = 0;  ///< of threads that the first one asked for
  uint32_t arrived = 0;
  bool any = false, result = false;
  std::vector<uint32_t> waiting{};  ///< lanes, by warp
};

struct Warp {
  uint32_t number = 0;         ///< in the launch
  uint32_t alive = 0;          ///< lanes that have not ended
  uint32_t ready = 0;          ///< lanes that wait for nothing
  uint32_t in_collective = 0;  ///< lanes that wait in one
  size_t place = 0;            ///< in the list of warps that are ready
  bool is_slow = false;        ///< runs when others cannot
  DeviceThread* lanes = nullptr;
};

struct Block {
  Dim3 index{};
  uint32_t alive = 0;  ///< threads
  uint32_t first_warp = 0, warps = 0;
  std::vector<Barrier> barriers{};
  std::unique_ptr<uint64_t[]> shared{};  ///< dynamic memory, then variables as they are met
  size_t shared_bytes = 0;
  std::vector<std::pair<const void*, size_t>> variables{};  ///< and their offsets
  SharedRaces races{};

  /// More shared memory, aligned; returns its offset. It holds a pattern.
  size_t add_shared(size_t bytes, uint64_t pattern) {
    const size_t words = (bytes + 15) / 16 * 2, first = shared_bytes / 8;
    std::fill_n(shared.get() + first, words, pattern);
    shared_bytes += words * 8;
    return first * 8;
  }
};

/// How the threads of a launch take turns. Each launch has another way.
struct Schedule {
  uint32_t leave_warp = 0;  ///< of 2^16: how often a switch goes to another warp without need
  uint32_t steps = 1;       ///< switch points between two switches, about
  uint32_t lane_order = 0;  ///< 0: drawn, 1: the first lane first, 2: the last
  uint32_t hurry_slow = 0;  ///< of 2^16: how often a slow warp runs all the same
};

/// One launch. The functions below it are called by the threads.
class Launch {
 public:
  Launch(const LaunchShape& shape, const std::function<void()>& kernel, uint64_t number);

  /// Runs blocks, all at once.
  void run(const std::vector<Dim3>& blocks);
  /// The next thread that runs, which may be the same; null: all wait.
  DeviceThread* draw();
  /// Another thread goes on, if one is drawn.
  void leave();
  void stay_or_leave(int32_t steps) {
    until_switch_ -= steps;
    if (until_switch_ <= 0) leave();
  }
  void check_shared(const void* at, size_t bytes, const SharedAccess& access);
  [[noreturn]] void end_thread();
  [[noreturn]] void fail(const std::string& text);

  void wait_in_collective();
  static uint64_t joined(const Warp& warp, uint32_t lanes, Collective what);
  void end_collective(Warp& warp);
  bool wait_at(Barrier& barrier, int32_t number, uint32_t place, bool value, bool is_last);
  void open(Barrier& barrier, uint32_t first_warp);
  bool all_at_grid_barrier() const;

  const LaunchShape& shape;
  const std::function<void()>& kernel;
  Barrier grid_barrier{};
  std::string error{};
  uint64_t pattern() { return next(); }

 private:
  uint64_t next() { return mix64(state_ += 0x9e3779b97f4a7c15ULL); }
  uint32_t below(uint64_t n) { return static_cast<uint32_t>(((next() >> 32) * n) >> 32); }
  void make_block(size_t b, const Dim3& index);
  bool is_slow(uint32_t warp_in_block);
  void wake(Warp& warp, uint32_t lanes);
  void put_to_sleep();
  void back_to_host();
  std::string who_waits() const;

  uint64_t state_;
  Schedule schedule_{};
  uint32_t slow_kind_ = 0, slow_warp_ = 0;
  int32_t until_switch_ = 1;
  uint32_t alive_ = 0;  ///< threads
  uint32_t per_block_ = 0;
  std::vector<Block> blocks_{};
  std::vector<Warp> warps_{};
  std::vector<DeviceThread> threads_{};
  std::vector<Warp*> ready_{};  ///< warps with a lane that is ready
  void* host_stack_ = nullptr;
};

extern Launch* launch;
extern Stacks stacks;

}  // namespace larch::emulation
