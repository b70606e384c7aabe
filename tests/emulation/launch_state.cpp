// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/launch_state.h"

#include <bit>
#include <cstdlib>
#include <mutex>

larch::emulation::Dim3 gridDim, blockDim;

namespace larch::emulation {

constinit thread_local DeviceThread* running = nullptr;
Launch* launch = nullptr;
Stacks stacks;

namespace {

void thread_main() {
  launch->kernel();
  launch->end_thread();
}

}  // namespace

Launch::Launch(const LaunchShape& shape, const std::function<void()>& kernel, uint64_t number)
    : shape(shape), kernel(kernel), state_(hash64(seed(), 1, number)) {
  const auto draw = [&](auto... choices) {
    const uint32_t all[] = {static_cast<uint32_t>(choices)...};
    return all[below(sizeof...(choices))];
  };
  schedule_ = {draw(64, 1024, 8192, 32768), draw(1, 3, 20, 200), draw(0, 0, 1, 2), draw(16, 1024)};
  slow_kind_ = below(4);
  slow_warp_ = below(kLanes);
}

void Launch::make_block(size_t b, const Dim3& index) {
  const uint32_t warps = (per_block_ + kLanes - 1) / kLanes;
  Block& block = blocks_[b];
  block.index = index;
  block.alive = per_block_;
  block.first_warp = static_cast<uint32_t>(b) * warps;
  block.warps = warps;
  block.barriers.assign(kNamedBarriers, {});
  for (Barrier& barrier : block.barriers) barrier.waiting.assign(warps, 0);
  block.shared = std::make_unique_for_overwrite<uint64_t[]>(kMaximumShared / sizeof(uint64_t) + 2);
  block.add_shared(shape.shared_bytes, next());
  block.races.begin(warps);
  for (uint32_t t = 0; t < per_block_; ++t) {
    const size_t at = b * per_block_ + t;
    DeviceThread& thread = threads_[at];
    Warp& warp = warps_[block.first_warp + t / kLanes];
    thread.block = &block;
    thread.warp = &warp;
    thread.lane = t % kLanes;
    thread.index = {t % shape.threads.x, t / shape.threads.x % shape.threads.y,
                    t / shape.threads.x / shape.threads.y};
    if (thread.lane == 0) {
      warp.number = block.first_warp + t / kLanes;
      warp.lanes = &thread;
      warp.is_slow = is_slow(t / kLanes);
    }
    warp.alive |= 1U << thread.lane;
    wake(warp, 1U << thread.lane);
    thread.stack = stacks.begin(at, thread_main);
  }
}

/// Some launches have warps that are behind the others as far as barriers let them: none, one,
/// the first of each group of eight, or every second.
bool Launch::is_slow(uint32_t warp_in_block) {
  if (slow_kind_ == 1) return warp_in_block == slow_warp_;
  if (slow_kind_ == 2) return warp_in_block % 8 == slow_warp_ % 8;
  return slow_kind_ == 3 && warp_in_block % 2 == slow_warp_ % 2;
}

void Launch::run(const std::vector<Dim3>& blocks) {
  per_block_ = shape.threads.x * shape.threads.y * shape.threads.z;
  const uint32_t warps = (per_block_ + kLanes - 1) / kLanes;
  alive_ = static_cast<uint32_t>(blocks.size()) * per_block_;
  blocks_ = std::vector<Block>(blocks.size());
  warps_.assign(blocks.size() * warps, {});
  threads_.assign(alive_, {});
  stacks.reserve(alive_);
  ready_.clear();
  grid_barrier.waiting.assign(warps_.size(), 0);
  for (size_t b = 0; b < blocks.size(); ++b) make_block(b, blocks[b]);
  running = &threads_[below(threads_.size())];
  running = draw();
  switch_stacks(&host_stack_, running->stack);
  running = nullptr;
}

DeviceThread* Launch::draw() {
  if (ready_.empty()) return nullptr;
  Warp* warp = running->warp;
  const uint64_t bits = next();
  if (warp->ready == 0 || (bits & 0xffff) < schedule_.leave_warp) {
    for (int attempt = 0; attempt < 6; ++attempt) {
      warp = ready_[below(ready_.size())];
      if (!warp->is_slow || below(1 << 16) < schedule_.hurry_slow) break;
    }
  }
  until_switch_ =
      1 + static_cast<int32_t>((bits >> 16 & 0xffff) * 2 * kStep * schedule_.steps >> 16);
  uint32_t lane = 0;
  if (schedule_.lane_order == 0) {
    const auto turn = static_cast<uint32_t>(bits >> 32) % kLanes;
    const uint32_t turned = warp->ready >> turn | warp->ready << (kLanes - turn) % kLanes;
    lane = (static_cast<uint32_t>(std::countr_zero(turned)) + turn) % kLanes;
  } else {
    lane = static_cast<uint32_t>(schedule_.lane_order == 1 ? __builtin_ctz(warp->ready)
                                                           : 31 - __builtin_clz(warp->ready));
  }
  return warp->lanes + lane;
}

void Launch::leave() {
  DeviceThread* const here = running;
  DeviceThread* const there = draw();
  if (there == here) return;
  if (there == nullptr) fail(who_waits());
  running = there;
  switch_stacks(&here->stack, there->stack);
}

void Launch::wake(Warp& warp, uint32_t lanes) {
  if (warp.ready == 0 && lanes != 0) {
    warp.place = ready_.size();
    ready_.push_back(&warp);
  }
  warp.ready |= lanes;
}

void Launch::put_to_sleep() {
  Warp& warp = *running->warp;
  warp.ready &= ~(1U << running->lane);
  if (warp.ready != 0) return;
  ready_[warp.place] = ready_.back();
  ready_[warp.place]->place = warp.place;
  ready_.pop_back();
}

void Launch::back_to_host() {
  void* never = nullptr;
  switch_stacks(&never, host_stack_);
}

void Launch::fail(const std::string& text) {
  error = text;
  back_to_host();
  std::abort();
}

void Launch::end_thread() {
  if (!stacks.is_whole(static_cast<size_t>(running - threads_.data()))) {
    fail("a thread needs a larger stack than kStackBytes");
  }
  Warp& warp = *running->warp;
  Block& block = *running->block;
  put_to_sleep();
  warp.alive &= ~(1U << running->lane);
  --alive_;
  --block.alive;
  if (alive_ == 0) back_to_host();
  // Those that wait for all who have not ended may wait for nobody now.
  if (warp.in_collective != 0) end_collective(warp);
  Barrier& all = block.barriers[0];
  if (all.arrived > 0 && all.count == 0 && all.arrived == block.alive) open(all, block.first_warp);
  if (all_at_grid_barrier()) open(grid_barrier, 0);
  leave();
  std::abort();
}

namespace {
bool has_ended(const DeviceThread& thread) {
  return (thread.warp->alive >> thread.lane & 1) == 0;
}
std::string where(const DeviceThread& thread) {
  if (has_ended(thread)) return "ended";
  if (thread.barrier == kGridBarrier) return "at the barrier of the grid";
  if (thread.barrier < 0) return "in an operation of their warp";
  const Barrier& at = thread.block->barriers[static_cast<size_t>(thread.barrier)];
  return "at barrier " + std::to_string(thread.barrier) + ", where " + std::to_string(at.arrived) +
         " of " + std::to_string(at.count == 0 ? thread.block->alive : at.count) + " are";
}
}  // namespace

std::string Launch::who_waits() const {
  std::string text = "threads wait for ever:";
  int lines = 0;
  for (size_t i = 0; i < threads_.size() && lines < 12; ++lines) {
    const DeviceThread& first = threads_[i];
    size_t last = i;
    const auto is_same = [&](const DeviceThread& t) {
      return t.block == first.block && t.barrier == first.barrier &&
             t.collective == first.collective && has_ended(t) == has_ended(first);
    };
    while (last + 1 < threads_.size() && is_same(threads_[last + 1])) ++last;
    const auto number = [&](size_t t) { return std::to_string(t % per_block_); };
    const Dim3& block = first.block->index;
    text += "\n  block " + std::to_string(block.x) + "," + std::to_string(block.y) + "," +
            std::to_string(block.z) + " threads " + number(i) + " to " + number(last) + ": ";
    text += where(first);
    i = last + 1;
  }
  return text;
}

uint64_t seed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("LARCH_EMULATION_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  }();
  return value;
}

int32_t processors() {
  return 3 + static_cast<int32_t>(hash_below(seed(), 0, 0, 6));
}

namespace {
/// The blocks of a launch in the order in which they start, which is drawn.
std::vector<Dim3> blocks_in_order(const LaunchShape& shape, uint64_t number) {
  std::vector<Dim3> blocks;
  const Dim3& size = shape.blocks;
  for (uint32_t b = 0; b < size.x * size.y * size.z; ++b) {
    blocks.push_back({b % size.x, b / size.x % size.y, b / size.x / size.y});
  }
  for (size_t b = blocks.size(); b > 1; --b) {
    std::swap(blocks[b - 1], blocks[hash_below(seed() + number, 2, b, static_cast<uint32_t>(b))]);
  }
  return blocks;
}
}  // namespace

std::string run(const LaunchShape& shape, const std::function<void()>& kernel) {
  static std::mutex mutex;
  static uint64_t launches = 0;
  const std::lock_guard lock(mutex);
  const uint32_t threads = shape.threads.x * shape.threads.y * shape.threads.z;
  if (threads == 0 || threads > kMaximumThreads || shape.shared_bytes > kMaximumShared) {
    return "a block cannot have " + std::to_string(threads) + " threads and " +
           std::to_string(shape.shared_bytes) + " shared bytes";
  }
  const uint64_t number = launches++;
  const std::vector<Dim3> blocks = blocks_in_order(shape, number);
  const auto at_once = static_cast<size_t>(processors());
  if (shape.is_cooperative && blocks.size() > at_once) return "more blocks than run at once";
  Launch one(shape, kernel, number);
  launch = &one;
  gridDim = shape.blocks;
  blockDim = shape.threads;
  for (size_t first = 0; first < blocks.size() && one.error.empty(); first += at_once) {
    const auto begin = blocks.begin() + static_cast<std::ptrdiff_t>(first);
    const size_t count = std::min(at_once, blocks.size() - first);
    one.run({begin, begin + static_cast<std::ptrdiff_t>(count)});
  }
  launch = nullptr;
  return one.error;
}

}  // namespace larch::emulation
