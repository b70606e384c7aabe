// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/two_classes.h"

#include <algorithm>
#include <cmath>

namespace larch::levelset {
namespace {

/// Sums over the bins of a histogram.
struct Moments {
  double count = 0, sum = 0;
  double mean() const { return sum / count; }
};

Moments all_of(const Histogram& counts) {
  Moments all;
  for (int b = 0; b < kHistogramBins; ++b) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(b)]);
    all.count += count, all.sum += count * b;
  }
  return all;
}

struct Classes {
  int first_above = 1;
  Moments below{}, above{};
};

/// The classes with the largest variance between them.
Classes otsu(const Histogram& counts, const Moments& all) {
  Moments below;
  Classes best;
  double most = -1;
  int first = 1, last = 1;
  for (int b = 1; b < kHistogramBins; ++b) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(b - 1)]);
    below.count += count, below.sum += count * (b - 1);
    const Moments above{all.count - below.count, all.sum - below.sum};
    if (below.count == 0 || above.count == 0) continue;
    const double apart = below.mean() - above.mean();
    const double between = below.count * above.count * apart * apart;
    if (between > most) most = between, first = last = b, best.below = below, best.above = above;
    if (between == most) last = b;
  }
  best.first_above = (first + last) / 2;  // the middle of a gap between the classes
  return best;
}

/// The classes after a round of expectation and maximisation: each bin is divided between the two
/// by how likely it is in each.
Classes divided_again(const Histogram& counts, const Moments& all, const Classes& now,
                      double noise_bins) {
  const double middle = (now.below.mean() + now.above.mean()) / 2;
  const double slope = (now.above.mean() - now.below.mean()) / (noise_bins * noise_bins);
  const double odds = now.below.count / now.above.count;
  Classes next;
  for (int b = 0; b < kHistogramBins; ++b) {
    const auto count = static_cast<double>(counts[static_cast<size_t>(b)]);
    const double share = 1 / (1 + odds * std::exp(std::min(-slope * (b - middle), 600.0)));
    next.above.count += share * count, next.above.sum += share * count * b;
  }
  next.below = {all.count - next.above.count, all.sum - next.above.sum};
  return next;
}

}  // namespace

int two_class_bin(const Histogram& counts, double noise_bins) {
  constexpr int kMostRounds = 1000;
  constexpr double kSettled = 1e-4;  // bins
  const Moments all = all_of(counts);
  const Classes cut = otsu(counts, all);
  if (!(noise_bins > 0) || cut.below.count == 0 || cut.above.count == 0) return cut.first_above;
  const auto middle = [](const Classes& c) { return (c.below.mean() + c.above.mean()) / 2; };
  Classes now = cut;
  for (int round = 0; round < kMostRounds; ++round) {
    const Classes next = divided_again(counts, all, now, noise_bins);
    if (!(next.below.count > 0 && next.above.count > 0)) break;  // a class has died out
    const double moved = std::max(std::abs(next.below.mean() - now.below.mean()),
                                  std::abs(next.above.mean() - now.above.mean()));
    now = next;
    if (moved < kSettled) break;
  }
  // Whole bins, so that the last digits of an exponential do not matter.
  const auto shift = static_cast<int>(std::lround(middle(now) - middle(cut)));
  return std::clamp(cut.first_above + shift, 0, kHistogramBins - 1);
}

}  // namespace larch::levelset
