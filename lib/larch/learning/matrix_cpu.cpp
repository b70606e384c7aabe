// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/matrix_cpu.h"

#include <algorithm>

#include "larch/core/parallel.h"

namespace larch::learning::cpu {
namespace {

constexpr size_t kBlock = kCpuWidth;

/// Bytes that the loops over a block take together: four samples, for loops long enough to become
/// vector instructions. The last samples of a block are taken one by one.
constexpr size_t kRun = 4 * kBlock;
using Run = std::array<uint8_t, kRun>;

/// Smallest and largest code of each feature of a block.
void code_range(const FeatureMatrix& matrix, size_t block, Run& low, Run& high) {
  low.fill(255);
  high.fill(0);
  const uint8_t* at = matrix.row(block, 0);
  const size_t bytes = matrix.rows * kBlock;
  size_t i = 0;
  for (; i + kRun <= bytes; i += kRun) {
    for (size_t l = 0; l < kRun; ++l) {
      low[l] = std::min(low[l], at[i + l]);
      high[l] = std::max(high[l], at[i + l]);
    }
  }
  for (; i < bytes; ++i) {
    low[i % kBlock] = std::min(low[i % kBlock], at[i]);
    high[i % kBlock] = std::max(high[i % kBlock], at[i]);
  }
  for (size_t l = kBlock; l < kRun; ++l) {
    low[l % kBlock] = std::min(low[l % kBlock], low[l]);
    high[l % kBlock] = std::max(high[l % kBlock], high[l]);
  }
}

/// Zooms the codes of one block, in place; `maps`: of its columns.
void zoom_block(FeatureMatrix& matrix, size_t block, int bins, BinMap* maps) {
  Run low, high;
  code_range(matrix, block, low, high);
  std::array<uint16_t, kRun> scale;  // x >> s as (x * 2^(8 - s)) >> 8, which vectorises
  for (size_t l = 0; l < kRun; ++l) {
    low[l] = low[l % kBlock];
    const BinMap map = make_bin_map(low[l], high[l % kBlock], bins);
    if (l < kBlock) maps[l] = map;
    scale[l] = static_cast<uint16_t>(1u << (8 - map.shift));
  }
  const auto zoom = [](uint8_t code, uint8_t first, uint16_t factor) {
    const auto above = static_cast<uint16_t>(code - first);
    return static_cast<uint8_t>(static_cast<uint16_t>(above * factor) >> 8);
  };
  uint8_t* at = matrix.row(block, 0);
  const size_t bytes = matrix.rows * kBlock;
  size_t i = 0;
  for (; i + kRun <= bytes; i += kRun) {
    for (size_t l = 0; l < kRun; ++l) at[i + l] = zoom(at[i + l], low[l], scale[l]);
  }
  for (; i < bytes; ++i) at[i] = zoom(at[i], low[i % kBlock], scale[i % kBlock]);
}

/// Eight bytes as one number, the first one lowest: a single load where memory has that order.
uint64_t eight_bytes(const uint8_t* at) {
  uint64_t word = 0;
  for (int k = 0; k < 8; ++k) word |= static_cast<uint64_t>(at[k]) << (8 * k);
  return word;
}

}  // namespace

std::vector<BinMap> zoom_codes(FeatureMatrix& matrix, int bins, int threads) {
  std::vector<BinMap> maps(matrix.blocks * kBlock);
  const auto blocks = static_cast<int64_t>(matrix.blocks);
  parallel_for(threads, blocks, fair_grain(threads, blocks, 16), [&](int64_t a, int64_t b) {
    for (auto block = static_cast<size_t>(a); block < static_cast<size_t>(b); ++block) {
      zoom_block(matrix, block, bins, &maps[block * kBlock]);
    }
  });
  return maps;
}

BlockHistogram block_histogram(const FeatureMatrix& matrix, size_t block,
                               std::span<const int32_t> signed_weights) {
  BlockHistogram d{};
  const uint8_t* row = matrix.row(block, 0);
  for (const int32_t weight : signed_weights) {
    // Bins come out of words by shifts: a load for each would compete with those of the sums.
    for (size_t half = 0; half < kBlock; half += 8) {
      uint64_t word = eight_bytes(row + half);
      int32_t* at = &d[half * kBins];
      for (size_t l = 0; l < 8; ++l, word >>= 8) at[l * kBins + (word & 0xff)] += weight;
    }
    row += kBlock;
  }
  return d;
}

}  // namespace larch::learning::cpu
