// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "tests/emulation/shared_races.h"

#include <algorithm>
#include <bit>
#include <cstdio>

#include <dlfcn.h>

namespace larch::emulation {
namespace {

std::string name_of(uint32_t warp, uint32_t lanes, bool is_write, const void* from) {
  return "\n  thread " +
         std::to_string(warp * 32 + static_cast<uint32_t>(std::countr_zero(lanes))) +
         (is_write ? " writes at " : " reads at ") + place_of(from);
}

}  // namespace

void SharedRaces::begin(size_t warps) {
  words_.clear();
  phase_.assign(warps, 0);
  epoch_.assign(warps, 0);
  seen_.assign(warps, std::vector<uint32_t>(warps, 0));
}

void SharedRaces::sync_block(const uint32_t* lanes) {
  std::vector<uint32_t> all(phase_.size(), 0);
  for (size_t w = 0; w < all.size(); ++w) {
    if (lanes[w] == 0) continue;
    for (size_t v = 0; v < all.size(); ++v) all[v] = std::max(all[v], seen_[w][v]);
    all[w] = std::max(all[w], ++phase_[w]);
    ++epoch_[w];
  }
  for (size_t w = 0; w < all.size(); ++w) {
    if (lanes[w] != 0) seen_[w] = all;
  }
}

bool SharedRaces::is_ordered(const Use& before, const SharedAccess& access) const {
  if (before.from == nullptr) return true;
  if (before.warp != access.warp) return seen_[access.warp][before.warp] > before.phase;
  return before.epoch < epoch_[access.warp] || before.lanes == 1U << access.lane;
}

SharedRaces::Use SharedRaces::now(uint8_t bytes, const SharedAccess& access) const {
  return {access.from,
          phase_[access.warp],
          epoch_[access.warp],
          1U << access.lane,
          static_cast<uint8_t>(access.warp),
          bytes,
          access.is_atomic};
}

bool SharedRaces::tell(const Use& before, bool was_write, const SharedAccess& access) {
  uint32_t lanes = before.lanes;
  if (before.warp == access.warp) lanes &= ~(1U << access.lane);
  race_ = "a race in shared memory:" + name_of(before.warp, lanes, was_write, before.from) +
          name_of(access.warp, 1U << access.lane, access.is_write, access.from);
  return true;
}

bool SharedRaces::use_word(Word& word, uint8_t bytes, const SharedAccess& access) {
  if (is_race(word.writer, bytes, access)) return tell(word.writer, true, access);
  const auto is_same = [&](const Use& use) {
    return use.from != nullptr && use.warp == access.warp && use.epoch == epoch_[access.warp];
  };
  if (access.is_write) {
    for (const Use& reader : word.readers) {
      if (is_race(reader, bytes, access)) return tell(reader, false, access);
    }
    // One thread may write a word in parts.
    const bool adds = is_same(word.writer) && word.writer.lanes == 1U << access.lane;
    const uint8_t others = adds ? word.writer.bytes : 0;
    word.writer = now(static_cast<uint8_t>(bytes | others), access);
    return false;
  }
  Use* place = nullptr;
  for (Use& reader : word.readers) {
    if (is_same(reader)) {
      reader.lanes |= 1U << access.lane;
      reader.bytes |= bytes;
      return false;
    }
    if (place == nullptr && is_ordered(reader, access)) place = &reader;
  }
  // Where more warps read than are remembered, one of them is forgotten.
  if (place == nullptr) place = word.readers + next_reader_++ % std::size(word.readers);
  *place = now(bytes, access);
  return false;
}

bool SharedRaces::use(size_t offset, size_t bytes, const SharedAccess& access) {
  const size_t last = (offset + bytes - 1) / 4;
  if (last >= words_.size()) words_.resize(last + 1 + last / 2);
  for (size_t at = offset / 4; at <= last; ++at) {
    const size_t begin = std::max(offset, at * 4) % 4,
                 end = std::min(offset + bytes - at * 4, size_t{4});
    if (use_word(words_[at], static_cast<uint8_t>((1U << end) - (1U << begin)), access))
      return true;
  }
  return false;
}

std::string place_of(const void* address) {
  Dl_info found{};
  if (dladdr(address, &found) == 0) return "an unknown place";
  // The address is where the call returns to.
  const size_t offset = static_cast<size_t>(static_cast<const char*>(address) -
                                            static_cast<const char*>(found.dli_fbase)) -
                        1;
  char command[512], line[512] = "";
  std::snprintf(command, sizeof command, "addr2line -e '%s' 0x%zx 2>/dev/null", found.dli_fname,
                offset);
  FILE* answer = popen(command, "r");  // NOLINT(bugprone-*): a program of a developer's machine
  if (answer != nullptr) {
    if (std::fgets(line, sizeof line, answer) == nullptr) line[0] = '\0';
    pclose(answer);
  }
  std::string text = line;
  text.erase(std::find_if(text.begin(), text.end(), [](char c) { return c == '\n' || c == ' '; }),
             text.end());
  return text.empty() || text[0] == '?' ? "address " + std::to_string(offset) : text;
}

}  // namespace larch::emulation
