// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/features/linear/patches.h"

namespace larch::features::cpu {
namespace {

/// Features that share one pass over the samples.
constexpr size_t kFeaturesAtOnce = 4096;

/// The smallest and the largest values of one feature so far: order statistics near the ends need
/// no more. Both lists are ascending and have `keep` elements.
struct Ends {
  int32_t* low;
  int32_t* high;
  size_t keep;

  void insert(int32_t value) const {
    if (value < low[keep - 1]) {
      size_t at = keep - 1;
      for (; at > 0 && low[at - 1] > value; --at) low[at] = low[at - 1];
      low[at] = value;
    }
    if (value > high[0]) {
      size_t at = 0;
      for (; at + 1 < keep && high[at + 1] < value; ++at) high[at] = high[at + 1];
      high[at] = value;
    }
  }
  /// Eight values, of which few are news.
  void insert_lanes(const int32_t* values, size_t lanes) const {
    const int32_t below = low[keep - 1], above = high[0];
    int news = 0;
    for (size_t k = 0; k < kLanes; ++k) news |= (values[k] < below) | (values[k] > above);
    for (size_t k = 0; news != 0 && k < lanes; ++k) insert(values[k]);
  }
};

/// Code maps of the columns [first, first + count).
void range_columns(const LinearRangeJob& job, size_t first, size_t count, learning::CodeMap* maps) {
  const size_t n = job.samples.size(), keep = learning::low_rank(n) + 1;
  std::vector<int32_t> low(count * keep, INT32_MAX), high(count * keep, INT32_MIN);
  std::vector<int32_t> values;
  std::vector<uint32_t> patch, columns(count);
  std::iota(columns.begin(), columns.end(), static_cast<uint32_t>(first));
  const std::vector<learning::CodeMap> none(count);
  for (const PatchPlan& plan : plan_patches(job.columns, columns, none)) {
    values.resize(plan.rules.size() * kLanes);
    for (size_t sample = 0; sample < n; sample += kLanes) {
      fill_patch(plan, job.places, job.samples, n, sample, patch);
      lane_kernels().patch_values(plan.rules, patch.data(), values.data());
      for (size_t i = 0; i < plan.rules.size(); ++i) {
        const size_t at = (plan.first_feature + i) * keep;
        const Ends ends{&low[at], &high[at], keep};
        ends.insert_lanes(&values[i * kLanes], std::min<size_t>(kLanes, n - sample));
      }
    }
  }
  for (size_t i = 0; i < count; ++i) {
    maps[i] = learning::make_code_map(low[(i + 1) * keep - 1], high[i * keep]);
  }
}

}  // namespace

std::vector<learning::CodeMap> range(const LinearRangeJob& job) {
  const size_t all = job.columns.features.size();
  std::vector<learning::CodeMap> maps(all);
  const auto groups = static_cast<int64_t>((all + kFeaturesAtOnce - 1) / kFeaturesAtOnce);
  parallel_for(job.context.threads, groups, 1, [&](int64_t a, int64_t b) {
    for (auto g = static_cast<size_t>(a); g < static_cast<size_t>(b); ++g) {
      const size_t first = g * kFeaturesAtOnce;
      range_columns(job, first, std::min(kFeaturesAtOnce, all - first), &maps[first]);
    }
  });
  return maps;
}

}  // namespace larch::features::cpu
