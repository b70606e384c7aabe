// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/bin_matrix.h"

#include <algorithm>

#include "larch/core/parallel.h"
#include "larch/learning/patches.h"

namespace larch::learning::cpu {
namespace {

/// Features whose codes are computed before they are moved to the matrix.
constexpr size_t kCodesAtOnce = 256;

/// Moves the codes of features [first, first + count), [feature][lane], to the rows of samples
/// [sample, sample + lanes).
void scatter(BinMatrix& matrix, const uint8_t* codes, std::array<size_t, 2> features, size_t sample,
             size_t lanes) {
  const auto [first, count] = features;
  for (size_t i = 0; i < count;) {
    const size_t f = first + i, column = f % kBlock;
    const size_t width = std::min(kBlock - column, count - i);
    uint8_t* row = matrix.row(f / kBlock, sample) + column;
    if (width == kBlock && lanes == kLanes) {
      for (size_t k = 0; k < kLanes; ++k) {
        for (size_t l = 0; l < kBlock; ++l) row[k * kBlock + l] = codes[(i + l) * kLanes + k];
      }
    } else {
      for (size_t k = 0; k < lanes; ++k) {
        for (size_t l = 0; l < width; ++l) row[k * kBlock + l] = codes[(i + l) * kLanes + k];
      }
    }
    i += width;
  }
}

void fill_codes(const MatrixJob& job, BinMatrix& matrix) {
  const SamplePlaces& places = job.problem->places;
  const std::vector<PatchPlan> plans = plan_patches(job.features, job.taps, job.feature_count);
  const auto groups = static_cast<int64_t>((matrix.samples + kLanes - 1) / kLanes);
  parallel_for(job.threads, groups, 4, [&](int64_t a, int64_t b) {
    std::vector<uint32_t> patch;
    std::array<uint8_t, kCodesAtOnce * kLanes> codes;
    for (const PatchPlan& plan : plans) {
      for (auto sample = static_cast<size_t>(a) * kLanes; sample < static_cast<size_t>(b) * kLanes;
           sample += kLanes) {
        const size_t lanes = std::min<size_t>(kLanes, matrix.samples - sample);
        fill_patch(plan, places, sample, patch);
        for (size_t f = 0; f < plan.rules.size(); f += kCodesAtOnce) {
          const size_t count = std::min(kCodesAtOnce, plan.rules.size() - f);
          features::cpu::lane_kernels().patch_codes({&plan.rules[f], count}, patch.data(),
                                                    codes.data());
          scatter(matrix, codes.data(), {plan.first_feature + f, count}, sample, lanes);
        }
      }
    }
  });
}

/// Bytes that the loops over a block take together: four samples, for loops long enough to become
/// vector instructions. The last samples of a block are taken one by one.
constexpr size_t kRun = 4 * kBlock;
using Run = std::array<uint8_t, kRun>;

/// Smallest and largest code of each feature of a block.
void code_range(const BinMatrix& matrix, size_t block, Run& low, Run& high) {
  low.fill(255);
  high.fill(0);
  const uint8_t* at = matrix.row(block, 0);
  const size_t bytes = matrix.samples * kBlock;
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

/// Zooms the codes of one block onto 64 bins, in place.
void zoom_block(BinMatrix& matrix, size_t block) {
  Run low, high;
  code_range(matrix, block, low, high);
  std::array<uint16_t, kRun> scale;  // x >> s as (x * 2^(8 - s)) >> 8, which vectorises
  for (size_t l = 0; l < kRun; ++l) {
    low[l] = low[l % kBlock];
    const BinMap map = make_bin_map(low[l], high[l % kBlock]);
    if (l < kBlock) matrix.maps[block * kBlock + l] = map;
    scale[l] = static_cast<uint16_t>(1u << (8 - map.shift));
  }
  const auto zoom = [](uint8_t code, uint8_t first, uint16_t factor) {
    const auto above = static_cast<uint16_t>(code - first);
    return static_cast<uint8_t>(static_cast<uint16_t>(above * factor) >> 8);
  };
  uint8_t* at = matrix.row(block, 0);
  const size_t bytes = matrix.samples * kBlock;
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

BinMatrix build_matrix(const MatrixJob& job) {
  BinMatrix matrix;
  matrix.samples = job.problem->places.index.size();
  matrix.blocks = (job.feature_count + kBlock - 1) / kBlock;
  // Every code is written below; only the padding of the last block must be made.
  const size_t bytes = matrix.blocks * matrix.samples * kBlock;
  matrix.bins = std::make_unique_for_overwrite<uint8_t[]>(bytes);
  const size_t padded = std::min(bytes, matrix.samples * kBlock);
  std::fill_n(matrix.bins.get() + (bytes - padded), padded, uint8_t{0});
  matrix.maps.resize(matrix.blocks * kBlock);
  fill_codes(job, matrix);
  parallel_for(job.threads, static_cast<int64_t>(matrix.blocks), 16, [&](int64_t a, int64_t b) {
    for (int64_t block = a; block < b; ++block) zoom_block(matrix, static_cast<size_t>(block));
  });
  return matrix;
}

BlockHistogram block_histogram(const BinMatrix& matrix, size_t block,
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
