// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/device_threads.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "larch/core/random_math.h"

// Keeps the registers that a function must keep (System V ABI for x86-64) on the old stack, and
// takes those of the new one.
extern "C" void larch_switch_stacks(void** save, void* next);
asm(R"(
  .text
  .globl larch_switch_stacks
  .type larch_switch_stacks, @function
larch_switch_stacks:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
  .size larch_switch_stacks, . - larch_switch_stacks
)");

namespace larch::emulation {

DeviceThread* running = nullptr;

namespace {

constexpr uint32_t kLanes = 32;
constexpr int32_t kNamedBarriers = 16, kGridBarrier = kNamedBarriers;
/// Of one thread. Not a power of two: the same places of all stacks would share a line of cache.
constexpr size_t kStackBytes = (24 << 10) + 320;
constexpr uint64_t kEndOfStack = 0x5ca1ab1e0ddba115ULL;

struct Barrier {
  uint32_t count = 0;  ///< of threads that the first one asked for
  uint32_t arrived = 0;
  bool any = false, result = false;
  std::vector<uint32_t> waiting{};  ///< lanes, by warp
};

}  // namespace

struct Warp {
  uint32_t number = 0;        ///< in the launch
  uint32_t alive = 0;         ///< lanes that have not ended
  uint32_t ready = 0;         ///< lanes that wait for nothing
  uint32_t in_collective = 0; ///< lanes that wait in one
  bool is_slow = false;       ///< runs when others cannot
  DeviceThread* lanes = nullptr;
};

struct Block {
  Dim3 index{};
  uint32_t alive = 0;  ///< threads
  uint32_t first_warp = 0, warps = 0;
  std::vector<Barrier> barriers{};
  std::vector<uint64_t> dynamic{};
  std::vector<std::pair<const void*, std::vector<uint64_t>>> variables{};
};

namespace {

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
  Launch(const LaunchShape& shape, const std::function<void()>& kernel, uint64_t number)
      : shape(shape), kernel(kernel), state_(hash64(seed(), 1, number)) {
    const auto draw = [&](auto... choices) {
      const uint32_t all[] = {static_cast<uint32_t>(choices)...};
      return all[below(sizeof...(choices))];
    };
    schedule_ = {draw(64, 1024, 8192, 32768), draw(1, 3, 20, 200), draw(0, 0, 1, 2), draw(16, 1024)};
    slow_kind_ = below(4);
    slow_warp_ = below(kLanes);
  }

  /// Runs blocks, all at once.
  void run(const std::vector<Dim3>& blocks);
  /// The next thread that runs, which may be the same; null: all wait.
  DeviceThread* draw();
  /// Another thread goes on, if one is drawn.
  void leave();
  void stay_or_leave() {
    if (--until_switch_ <= 0) leave();
  }
  [[noreturn]] void end_thread();
  [[noreturn]] void fail(const std::string& text);

  void wait_in_collective();
  bool try_collective(Warp& warp);
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
  int64_t until_switch_ = 1;
  uint32_t alive_ = 0;  ///< threads
  uint32_t per_block_ = 0;
  std::vector<Block> blocks_{};
  std::vector<Warp> warps_{};
  std::vector<DeviceThread> threads_{};
  std::vector<Warp*> ready_{};  ///< warps with a lane that is ready
  void* host_stack_ = nullptr;
};

Launch* launch = nullptr;

/// The stacks of all threads, kept until the program ends.
char* stacks(size_t threads) {
  static char* memory = nullptr;
  static size_t bytes = 0;
  const size_t wanted = threads * kStackBytes;
  if (wanted > bytes) {
    if (memory != nullptr) munmap(memory, bytes);
    void* got = mmap(nullptr, wanted, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (got == MAP_FAILED) std::abort();
    memory = static_cast<char*>(got);
    bytes = wanted;
  }
  return memory;
}

void thread_main() {
  launch->kernel();
  launch->end_thread();
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
  block.dynamic.assign((shape.shared_bytes + 7) / 8, next());
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
      ready_.push_back(&warp);
    }
    warp.alive |= 1U << thread.lane;
    warp.ready |= 1U << thread.lane;
    char* stack = stacks(threads_.size()) + at * kStackBytes;
    std::memcpy(stack, &kEndOfStack, sizeof kEndOfStack);
    // The registers that are taken, where to go, and the place of a return address, which puts the
    // stack where it is at the start of every function.
    auto* top = reinterpret_cast<void**>(stack + kStackBytes) - 8;
    std::fill(top, top + 8, nullptr);
    top[6] = reinterpret_cast<void*>(thread_main);
    thread.stack = top;
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
  blocks_.assign(blocks.size(), {});
  warps_.assign(blocks.size() * warps, {});
  threads_.assign(alive_, {});
  ready_.clear();
  grid_barrier.waiting.assign(warps_.size(), 0);
  for (size_t b = 0; b < blocks.size(); ++b) make_block(b, blocks[b]);
  running = &threads_[below(threads_.size())];
  running = draw();
  larch_switch_stacks(&host_stack_, running->stack);
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
  until_switch_ = schedule_.steps == 1 ? 1 : 1 + static_cast<int64_t>((bits >> 16 & 0xffff) * 2 *
                                                                      schedule_.steps >> 16);
  uint32_t lane = 0;
  if (schedule_.lane_order == 0) {
    const auto turn = static_cast<uint32_t>(bits >> 32) % kLanes;
    const uint32_t turned = warp->ready >> turn | warp->ready << (kLanes - turn) % kLanes;
    lane = (static_cast<uint32_t>(__builtin_ctz(turned)) + turn) % kLanes;
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
  larch_switch_stacks(&here->stack, there->stack);
}

void Launch::wake(Warp& warp, uint32_t lanes) {
  if (warp.ready == 0 && lanes != 0) ready_.push_back(&warp);
  warp.ready |= lanes;
}

void Launch::put_to_sleep() {
  Warp& warp = *running->warp;
  warp.ready &= ~(1U << running->lane);
  if (warp.ready != 0) return;
  const auto at = std::find(ready_.begin(), ready_.end(), &warp);
  *at = ready_.back();
  ready_.pop_back();
}

void Launch::back_to_host() {
  void* never = nullptr;
  larch_switch_stacks(&never, host_stack_);
}

void Launch::fail(const std::string& text) {
  error = text;
  back_to_host();
  std::abort();
}

void Launch::end_thread() {
  const char* stack = stacks(threads_.size()) + (running - threads_.data()) * kStackBytes;
  if (std::memcmp(stack, &kEndOfStack, sizeof kEndOfStack) != 0) {
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
  try_collective(warp);
  Barrier& all = block.barriers[0];
  if (all.arrived > 0 && all.count == 0 && all.arrived == block.alive) open(all, block.first_warp);
  if (all_at_grid_barrier()) open(grid_barrier, 0);
  leave();
  std::abort();
}

/// Ends a collective whose lanes have all come.
bool Launch::try_collective(Warp& warp) {
  if (warp.in_collective == 0) return false;
  const auto of = [&](uint32_t lane) -> DeviceThread& { return warp.lanes[lane]; };
  for (uint32_t rest = warp.in_collective; rest != 0;) {
    const DeviceThread& first = of(static_cast<uint32_t>(__builtin_ctz(rest)));
    const uint32_t lanes = first.mask & warp.alive;
    if ((lanes & ~warp.in_collective) != 0) {
      rest &= ~first.mask;
      continue;
    }
    uint64_t all = first.value;
    for (uint32_t l = 0; l < kLanes; ++l) {
      if ((lanes >> l & 1) == 0) continue;
      if (of(l).collective != first.collective || of(l).mask != first.mask) {
        fail("lanes of one warp wait in different collectives: lanes " + std::to_string(first.lane) +
             " and " + std::to_string(l) + " of warp " + std::to_string(warp.number));
      }
      if (l == first.lane) {
        if (first.collective == Collective::kBallot) all = uint64_t{first.value != 0} << l;
        continue;
      }
      const uint64_t value = of(l).value;
      switch (first.collective) {
        case Collective::kBallot: all |= uint64_t{value != 0} << l; break;
        case Collective::kAdd: all += value; break;
        case Collective::kOr: all |= value; break;
        case Collective::kAnd: all &= value; break;
        case Collective::kMin: all = std::min(all, value); break;
        case Collective::kMax: all = std::max(all, value); break;
        default: break;
      }
    }
    for (uint32_t l = 0; l < kLanes; ++l) {
      if ((lanes >> l & 1) == 0) continue;
      const bool is_shuffle = first.collective == Collective::kShuffle;
      // What a lane that does not take part would give is not defined.
      of(l).result = !is_shuffle ? all : (lanes >> of(l).source & 1) != 0 ? of(of(l).source).value : next();
    }
    for (uint32_t l = 0; l < kLanes; ++l) {
      if ((lanes >> l & 1) != 0) of(l).collective = Collective::kNone;
    }
    warp.in_collective &= ~lanes;
    wake(warp, lanes);
    return true;
  }
  return false;
}

void Launch::wait_in_collective() {
  Warp& warp = *running->warp;
  put_to_sleep();
  warp.in_collective |= 1U << running->lane;
  const uint32_t wanted = running->mask & warp.alive;
  if ((wanted & ~warp.in_collective) == 0) try_collective(warp);
  leave();
}

void Launch::open(Barrier& barrier, uint32_t first_warp) {
  for (size_t w = 0; w < barrier.waiting.size(); ++w) {
    Warp& warp = warps_[first_warp + w];
    const uint32_t lanes = std::exchange(barrier.waiting[w], 0);
    for (uint32_t l = 0; l < kLanes; ++l) {
      if ((lanes >> l & 1) != 0) warp.lanes[l].barrier = -1;
    }
    wake(warp, lanes);
  }
  barrier.arrived = 0;
  barrier.result = std::exchange(barrier.any, false);
}

/// The threads of a block that ended are not waited for, but a block that ended is.
bool Launch::all_at_grid_barrier() const {
  if (grid_barrier.arrived == 0 || grid_barrier.arrived != alive_) return false;
  return std::all_of(blocks_.begin(), blocks_.end(), [](const Block& b) { return b.alive > 0; });
}

bool Launch::wait_at(Barrier& barrier, int32_t number, uint32_t place, bool value, bool is_last) {
  put_to_sleep();
  running->barrier = number;
  barrier.waiting[place] |= 1U << running->lane;
  barrier.any = barrier.any || value;
  if (is_last) open(barrier, number == kGridBarrier ? 0 : running->block->first_warp);
  leave();
  return barrier.result;
}

std::string Launch::who_waits() const {
  std::string text = "threads wait for ever:";
  int lines = 0;
  for (size_t i = 0; i < threads_.size() && lines < 12; ++lines) {
    const DeviceThread& first = threads_[i];
    size_t last = i;
    const auto is_same = [&](const DeviceThread& t) {
      return t.block == first.block && t.barrier == first.barrier && t.collective == first.collective &&
             (t.warp->alive >> t.lane & 1) == (first.warp->alive >> first.lane & 1);
    };
    while (last + 1 < threads_.size() && is_same(threads_[last + 1])) ++last;
    const auto number = [&](size_t t) { return std::to_string(t % per_block_); };
    const Dim3& block = first.block->index;
    text += "\n  block " + std::to_string(block.x) + "," + std::to_string(block.y) + "," +
            std::to_string(block.z) + " threads " + number(i) + " to " + number(last) + ": ";
    if ((first.warp->alive >> first.lane & 1) == 0) text += "ended";
    else if (first.barrier == kGridBarrier) text += "at the barrier of the grid";
    else if (first.barrier >= 0) {
      const Barrier& at = first.block->barriers[static_cast<size_t>(first.barrier)];
      text += "at barrier " + std::to_string(first.barrier) + ", where " + std::to_string(at.arrived) +
              " of " + std::to_string(at.count == 0 ? first.block->alive : at.count) + " are";
    } else text += "in an operation of their warp";
    i = last + 1;
  }
  return text;
}

}  // namespace

const Dim3& block_index() { return running->block->index; }
const Dim3& block_size() { return launch->shape.threads; }
const Dim3& grid_size() { return launch->shape.blocks; }

void switch_point() {
  if (running != nullptr) launch->stay_or_leave();
}

uint64_t collective(Collective what, uint32_t mask, uint64_t value, uint32_t source) {
  DeviceThread& own = *running;
  if ((mask >> own.lane & 1) == 0) launch->fail("a lane is not in the mask of its own collective");
  own.collective = what;
  own.mask = mask;
  own.value = value;
  own.source = source;
  launch->wait_in_collective();
  return own.result;
}

namespace {
bool wait_in_block(uint32_t number, uint32_t count, bool value) {
  const Block& block = *running->block;
  if (number >= kNamedBarriers) launch->fail("barrier " + std::to_string(number) + " does not exist");
  Barrier& barrier = running->block->barriers[number];
  if (barrier.arrived > 0 && barrier.count != count) {
    launch->fail("threads wait at barrier " + std::to_string(number) + " for different numbers of threads");
  }
  barrier.count = count;
  const bool is_last = ++barrier.arrived == (count == 0 ? block.alive : count);
  return launch->wait_at(barrier, static_cast<int32_t>(number), running->warp->number - block.first_warp, value,
                         is_last);
}
}  // namespace

void barrier(uint32_t number, uint32_t count) { wait_in_block(number, count, false); }
bool any_of_block(bool value) { return wait_in_block(0, 0, value); }
void grid_barrier() {
  if (!launch->shape.is_cooperative) launch->fail("blocks that wait for each other need a cooperative launch");
  ++launch->grid_barrier.arrived;
  launch->wait_at(launch->grid_barrier, kGridBarrier, running->warp->number, false,
                  launch->all_at_grid_barrier());
}

void* dynamic_shared() { return running->block->dynamic.data(); }
void* shared_variable(const void* key, size_t bytes) {
  auto& variables = running->block->variables;
  for (auto& [own, memory] : variables) {
    if (own == key) return memory.data();
  }
  variables.emplace_back(key, std::vector<uint64_t>((bytes + 7) / 8, launch->pattern()));
  return variables.back().second.data();
}

uint64_t seed() {
  static const uint64_t value = [] {
    const char* text = std::getenv("LARCH_EMULATION_SEED");
    return text != nullptr ? std::strtoull(text, nullptr, 10) : 1;
  }();
  return value;
}

int32_t processors() { return 3 + static_cast<int32_t>(hash_below(seed(), 0, 0, 6)); }

std::string run(const LaunchShape& shape, const std::function<void()>& kernel) {
  static std::mutex mutex;
  static uint64_t launches = 0;
  const std::lock_guard lock(mutex);
  const uint32_t threads = shape.threads.x * shape.threads.y * shape.threads.z;
  if (threads == 0 || threads > kMostThreads || shape.shared_bytes > kMostShared) {
    return "a block cannot have " + std::to_string(threads) + " threads and " +
           std::to_string(shape.shared_bytes) + " shared bytes";
  }
  std::vector<Dim3> blocks;
  for (uint32_t z = 0; z < shape.blocks.z; ++z)
    for (uint32_t y = 0; y < shape.blocks.y; ++y)
      for (uint32_t x = 0; x < shape.blocks.x; ++x) blocks.push_back({x, y, z});
  if (shape.is_cooperative && static_cast<int32_t>(blocks.size()) > processors()) {
    return "more blocks than run at once";
  }
  const uint64_t number = launches++;
  if (!shape.is_cooperative) {
    for (size_t b = blocks.size(); b > 1; --b) {
      std::swap(blocks[b - 1], blocks[hash_below(seed() + number, 2, b, static_cast<uint32_t>(b))]);
    }
  }
  Launch one(shape, kernel, number);
  launch = &one;
  const size_t at_once = shape.is_cooperative ? blocks.size() : static_cast<size_t>(processors());
  for (size_t first = 0; first < blocks.size() && one.error.empty(); first += at_once) {
    const size_t last = std::min(blocks.size(), first + at_once);
    one.run({blocks.begin() + static_cast<std::ptrdiff_t>(first), blocks.begin() + static_cast<std::ptrdiff_t>(last)});
  }
  launch = nullptr;
  return one.error;
}

}  // namespace larch::emulation
