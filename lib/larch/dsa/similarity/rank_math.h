// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/similarity/difference_math.h"

// Which of two displacements is the more similar one, and by how much.
namespace larch::dsa {

/// Similarity of a displacement that cannot be compared: too few of its pixels count.
constexpr int64_t kNoSimilarity = INT64_MIN;

/// Compares scores by the similarity that is configured.
struct Ranking {
  Metric metric = Metric::kEhd;
  const uint64_t* terms = nullptr;  ///< round(2^20 h ln h) by h, for entropy
  uint32_t least_count = 2;         ///< displacements with fewer counted pixels lose to all others

  LARCH_HD bool is_comparable(const Score& s) const {
    return s.count >= least_count && s.count >= 2;
  }
  /// Strictly better; exact.
  LARCH_HD bool is_better(const Score& a, const Score& b) const {
    if (!is_comparable(a)) return false;
    if (!is_comparable(b)) return true;
    if (metric == Metric::kEhd) return is_better_ehd(a, b);
    return is_better_entropy(a, static_cast<int64_t>(terms[a.count]), b,
                             static_cast<int64_t>(terms[b.count]));
  }
  /// U of EHD, or minus the entropy, in Q32, rounded towards 0; for at most 2^20 pixels.
  LARCH_HD int64_t similarity(const Score& s) const {
    if (!is_comparable(s)) return kNoSimilarity;
    if (metric == Metric::kEhd) return similarity_q32(s);
    return (static_cast<int64_t>(s.sum) - static_cast<int64_t>(terms[s.count])) * 4096 /
           static_cast<int64_t>(s.count);
  }
};

}  // namespace larch::dsa
