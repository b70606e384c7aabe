// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/device_threads.h"

#include <bit>
#include <cstdlib>
#include <string_view>

#include "tests/emulation/launch_state.h"

namespace larch::emulation {
namespace {

/// What LARCH_EMULATION_RACES says of the search for races in shared memory: by CUDA's guide no
/// operation of a warp but __syncwarp orders memory; on the hardware they all do.
enum class RaceSearch { kNone, kUsual, kStrict };
RaceSearch asked_race_search() {
  const char* text = std::getenv("LARCH_EMULATION_RACES");
  const std::string_view asked = text == nullptr ? "" : text;
  return asked == "0"        ? RaceSearch::kNone
         : asked == "strict" ? RaceSearch::kStrict
                             : RaceSearch::kUsual;
}
const RaceSearch race_search = asked_race_search();

}  // namespace

/// What all lanes of a collective get, but for a shuffle.
uint64_t Launch::joined(const Warp& warp, uint32_t lanes, Collective what) {
  uint64_t all = 0;
  bool is_first = true;
  for (uint32_t rest = lanes; rest != 0; rest &= rest - 1) {
    const DeviceThread& lane = warp.lanes[std::countr_zero(rest)];
    const uint64_t value = lane.value;
    switch (what) {
      case Collective::kBallot:
        all |= uint64_t{value != 0} << lane.lane;
        break;
      case Collective::kAdd:
        all += value;
        break;
      case Collective::kOr:
        all |= value;
        break;
      case Collective::kAnd:
        all = is_first ? value : all & value;
        break;
      case Collective::kMin:
        all = is_first ? value : std::min(all, value);
        break;
      case Collective::kMax:
        all = std::max(all, value);
        break;
      case Collective::kNone:
      case Collective::kSync:
      case Collective::kShuffle:
        break;
    }
    is_first = false;
  }
  return all;
}

/// Ends a collective of a warp whose lanes have all come.
void Launch::end_collective(Warp& warp) {
  for (uint32_t rest = warp.in_collective; rest != 0;) {
    const DeviceThread& first = warp.lanes[std::countr_zero(rest)];
    const uint32_t lanes = first.mask & warp.alive;
    rest &= ~first.mask;
    if ((lanes & ~warp.in_collective) != 0) continue;
    const Collective what = first.collective;
    const uint64_t all = joined(warp, lanes, what);
    for (uint32_t l = lanes; l != 0; l &= l - 1) {
      DeviceThread& lane = warp.lanes[std::countr_zero(l)];
      if (lane.collective != what || lane.mask != first.mask) {
        fail("threads " + std::to_string(first.index.x) + " and " + std::to_string(lane.index.x) +
             " of one warp wait in different operations");
      }
      lane.result = all;
      if (what != Collective::kShuffle) continue;
      // What a lane that takes no part would give is not defined.
      lane.result = (lanes >> lane.source & 1) != 0 ? warp.lanes[lane.source].value : next();
    }
    for (uint32_t l = lanes; l != 0; l &= l - 1) {
      warp.lanes[std::countr_zero(l)].collective = Collective::kNone;
    }
    warp.in_collective &= ~lanes;
    wake(warp, lanes);
    Block& block = *first.block;
    const bool orders = what == Collective::kSync || race_search != RaceSearch::kStrict;
    if (orders && lanes == warp.alive) block.races.sync_warp(warp.number - block.first_warp);
    return;
  }
}

void Launch::wait_in_collective() {
  Warp& warp = *running->warp;
  warp.in_collective |= 1U << running->lane;
  const uint32_t wanted = running->mask & warp.alive;
  if ((wanted & ~warp.in_collective) == 0) {
    end_collective(warp);
    stay_or_leave(kStep);
  }
  if (running->collective != Collective::kNone) {
    put_to_sleep();
    leave();
  }
}

void Launch::check_shared(const void* at, size_t bytes, const SharedAccess& access) {
  Block& block = *running->block;
  const auto offset = static_cast<size_t>(static_cast<const char*>(at) -
                                          reinterpret_cast<const char*>(block.shared.get()));
  if (race_search == RaceSearch::kNone || offset >= block.shared_bytes) return;
  if (block.races.use(offset, bytes, access)) fail(block.races.race());
}

void Launch::open(Barrier& barrier, uint32_t first_warp) {
  if (&barrier != &grid_barrier) {
    running->block->races.sync_block(barrier.waiting.data());
  } else {
    for (Block& block : blocks_) block.races.sync_block(barrier.waiting.data() + block.first_warp);
  }
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
  running->barrier = number;
  barrier.waiting[place] |= 1U << running->lane;
  barrier.any = barrier.any || value;
  if (is_last) {
    open(barrier, number == kGridBarrier ? 0 : running->block->first_warp);
  } else {
    put_to_sleep();
  }
  leave();
  return barrier.result;
}

const Dim3& block_index() {
  return running->block->index;
}

void switch_point() {
  if (running != nullptr) launch->stay_or_leave(kStep);
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
  if (number >= kNamedBarriers)
    launch->fail("barrier " + std::to_string(number) + " does not exist");
  Barrier& barrier = running->block->barriers[number];
  if (barrier.arrived > 0 && barrier.count != count) {
    launch->fail("threads wait at barrier " + std::to_string(number) +
                 " for different numbers of threads");
  }
  barrier.count = count;
  const bool is_last = ++barrier.arrived == (count == 0 ? block.alive : count);
  return launch->wait_at(barrier, static_cast<int32_t>(number),
                         running->warp->number - block.first_warp, value, is_last);
}
}  // namespace

void barrier(uint32_t number, uint32_t count) {
  wait_in_block(number, count, false);
}
bool any_of_block(bool value) {
  return wait_in_block(0, 0, value);
}
void grid_barrier() {
  if (!launch->shape.is_cooperative)
    launch->fail("blocks that wait for each other need a cooperative launch");
  ++launch->grid_barrier.arrived;
  launch->wait_at(launch->grid_barrier, kGridBarrier, running->warp->number, false,
                  launch->all_at_grid_barrier());
}

void* dynamic_shared() {
  return running->block->shared.get();
}
void* shared_variable(const void* key, size_t bytes) {
  Block& block = *running->block;
  auto* memory = reinterpret_cast<char*>(block.shared.get());
  for (const auto& [own, offset] : block.variables) {
    if (own == key) return memory + offset;
  }
  if (block.shared_bytes + bytes > kMaximumShared)
    launch->fail("a block has too much shared memory");
  block.variables.emplace_back(key, block.add_shared(bytes, launch->pattern()));
  return memory + block.variables.back().second;
}

void use_memory(const void* at, size_t bytes, bool is_write, const void* from) {
  if (running != nullptr && !stacks.contains(at)) {
    launch->stay_or_leave(1);
    launch->check_shared(
        at, bytes,
        {running->warp->number - running->block->first_warp, running->lane, is_write, false, from});
  }
}
void use_atomic(const void* at, size_t bytes, const void* from) {
  launch->stay_or_leave(kStep);
  launch->check_shared(
      at, bytes,
      {running->warp->number - running->block->first_warp, running->lane, true, true, from});
}

}  // namespace larch::emulation
