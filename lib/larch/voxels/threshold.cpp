// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/voxels/threshold.h"

#include <algorithm>
#include <cstdlib>

#include "larch/core/text.h"
#include "larch/voxels/slabs.h"

namespace larch::voxels {

ThresholdSearch::ThresholdSearch(size_t classes)
    : found_(classes, Counts{}), right_(classes, Counts{}), true_(classes, 0) {
  for (size_t k = 0; k < thresholds_.size(); ++k) {
    thresholds_[k] = static_cast<float>(static_cast<double>(k + 1) / kSteps);
  }
}

void ThresholdSearch::add(float probability, size_t likeliest, int truth) {
  const auto above = std::lower_bound(thresholds_.begin(), thresholds_.end(), probability);
  const auto step = static_cast<size_t>(above - thresholds_.begin());
  ++found_[likeliest][step];
  if (truth == kNone) return;
  ++true_[static_cast<size_t>(truth)];
  if (static_cast<size_t>(truth) == likeliest) ++right_[likeliest][step];
}

std::optional<ScoredThreshold> ThresholdSearch::best() const {
  const auto occur = std::count_if(true_.begin(), true_.end(), [](int64_t n) { return n > 0; });
  if (occur == 0) return std::nullopt;
  ScoredThreshold best{0, -1, {}};
  int best_step = 0;
  std::vector<int64_t> found(true_.size(), 0), right(true_.size(), 0);
  for (int k = kSteps - 1; k > 0; --k) {
    std::vector<double> dice(true_.size(), -1);
    double sum = 0;
    for (size_t c = 0; c < true_.size(); ++c) {
      found[c] += found_[c][static_cast<size_t>(k)];
      right[c] += right_[c][static_cast<size_t>(k)];
      if (true_[c] == 0) continue;
      dice[c] = 2 * static_cast<double>(right[c]) / static_cast<double>(found[c] + true_[c]);
      sum += dice[c];
    }
    const double mean = sum / static_cast<double>(occur);
    const bool is_nearer = std::abs(2 * k - kSteps) <= std::abs(2 * best_step - kSteps);
    if (mean < best.dice || (mean == best.dice && !is_nearer)) continue;
    best_step = k;
    best = {static_cast<double>(k) / kSteps, mean, std::move(dice)};
  }
  return best;
}

void store_threshold(const ScoredThreshold& best, ModelInfo& info, const Context& context) {
  info.validation.emplace_back("dice", best.dice);
  info.validation.emplace_back("threshold", best.threshold);
  context.info(formatted("held-out Dice %.4f at the threshold %.2f, which is stored", best.dice,
                         best.threshold));
}

}  // namespace larch::voxels
