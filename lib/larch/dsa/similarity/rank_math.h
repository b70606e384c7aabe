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
  /// Whether a displacement away from the peak comes so close to it that the peak means nothing:
  /// above 0.96 of it for blocks of 4096 pixels and more. Of fewer pixels n the similarity is
  /// noisier, as 1 / sqrt(n), and the margin wider: 0.04 sqrt(4096 / n). EHD is about proportional
  /// to 1 / spread and entropy to ln(spread), so that its margin is ln(1 / 0.96) times as much.
  LARCH_HD bool is_rival(int64_t other, int64_t peak) const {
    if (other == kNoSimilarity || peak == kNoSimilarity) return false;
    if (other >= peak) return true;
    const uint64_t pixels = least_count < 2048 ? 2 * static_cast<uint64_t>(least_count) : 4096;
    // (peak - other) sqrt(n) < 64 margin, squared.
    if (metric == Metric::kEhd) {
      const Wide gap = static_cast<Wide>(peak - other) * 25, limit = static_cast<Wide>(peak) * 64;
      return gap * gap * pixels < limit * limit;
    }
    const Wide gap = static_cast<Wide>(peak - other);
    const Wide limit = static_cast<Wide>(175329131) * 64;  // 2^32 ln(1 / 0.96)
    return gap * gap * pixels < limit * limit;
  }
  /// Whether a peak of conjugate directions stands out from its surroundings: 1.15 times them.
  LARCH_HD bool is_distinct(int64_t peak, int64_t base) const {
    if (base == kNoSimilarity || peak == kNoSimilarity) return false;
    if (metric == Metric::kEhd) return peak * 20 >= base * 23;
    return peak - base >= 600272972;  // 2^32 ln 1.15
  }
  /// peak / base - 1 of EHD; of entropies their difference, which is its logarithm.
  LARCH_HD float confidence(int64_t peak, int64_t base) const {
    if (base == kNoSimilarity || peak == kNoSimilarity) return 0;
    const double above = static_cast<double>(peak - base);
    if (metric == Metric::kEntropy) return static_cast<float>(above / 4294967296.0);
    return base <= 0 ? 0.0F : static_cast<float>(above / static_cast<double>(base));
  }
};

/// Whether a candidate of the full search is far enough from the best to be its rival: outside of
/// the 5 x 5 (x 5) displacements around it.
LARCH_HD bool is_apart(const Vec3i& a, const Vec3i& b) {
  const Vec3i d = a - b;
  return d.x > 2 || d.x < -2 || d.y > 2 || d.y < -2 || d.z > 2 || d.z < -2;
}

}  // namespace larch::dsa
