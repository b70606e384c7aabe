// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace larch::emulation {

/// Who uses shared memory, and from where in the program.
struct SharedAccess {
  uint32_t warp = 0, lane = 0;
  bool is_write = false, is_atomic = false;
  const void* from = nullptr;
};

/// Finds uses of the same shared memory by two threads of a block, one of which writes, that no
/// barrier and no operation of their warp puts in order, whether they went wrong this time or not.
/// Warps are taken to pass barriers as a whole.
class SharedRaces {
 public:
  void begin(size_t warps);
  /// Is an access of bytes from an offset of the block's memory part of a race? Then race() says
  /// of which.
  bool use(size_t offset, size_t bytes, const SharedAccess& access);
  const std::string& race() const { return race_; }
  /// All lanes of a warp met.
  void sync_warp(uint32_t warp) { ++epoch_[warp]; }
  /// Lanes met at a barrier; by warp.
  void sync_block(const uint32_t* lanes);

 private:
  /// Lanes of a warp that did the same between two of its barriers.
  struct Use {
    const void* from = nullptr;  ///< null: nobody
    uint32_t phase = 0, epoch = 0, lanes = 0;
    uint8_t warp = 0, bytes = 0;  ///< of the word, as bits
    bool is_atomic = false;
  };
  struct Word {
    Use writer{}, readers[3]{};
  };

  bool is_ordered(const Use& before, const SharedAccess& access) const;
  bool use_word(Word& word, uint8_t bytes, const SharedAccess& access);
  bool is_race(const Use& before, uint8_t bytes, const SharedAccess& access) const {
    return before.from != nullptr && (before.bytes & bytes) != 0 && !is_ordered(before, access) &&
           !(before.is_atomic && access.is_atomic);
  }
  bool tell(const Use& before, bool was_write, const SharedAccess& access);
  Use now(uint8_t bytes, const SharedAccess& access) const;

  std::vector<Word> words_{};
  std::vector<uint32_t> phase_{};              ///< by warp: barriers that it passed
  std::vector<uint32_t> epoch_{};              ///< by warp: barriers, and where its lanes met
  std::vector<std::vector<uint32_t>> seen_{};  ///< by warp: phases of each warp that came before
  size_t next_reader_ = 0;
  std::string race_{};
};

/// File and line of an address of this program, as far as addr2line knows.
std::string place_of(const void* address);

}  // namespace larch::emulation
