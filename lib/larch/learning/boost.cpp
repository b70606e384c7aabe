// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/boost.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::learning {
namespace {

constexpr Dispatch<std::vector<CodeMap>(const RangeJob&)> kRange{"pbt::range_pool", cpu::range_pool,
                                                                 LARCH_CUDA_FN(cuda::range_pool)};
constexpr Dispatch<std::vector<std::vector<BoostRound>>(const BoostJob&)> kBoost{
    "pbt::boost", cpu::boost, LARCH_CUDA_FN(cuda::boost)};

}  // namespace

FeaturePool make_feature_pool(const std::vector<features::HaarFeature>& pool,
                              std::span<const image::IntegralLayout> layouts, double tap_cost,
                              const Context& context) {
  FeaturePool out;
  std::vector<features::LinearTap> taps;
  for (const features::HaarFeature& feature : pool) {
    PoolFeature record;
    record.first_tap = static_cast<int32_t>(taps.size());
    record.channel = feature.channel;
    const image::IntegralLayout& layout = layouts[feature.channel];
    for (const features::Tap& tap : features::corner_taps(feature)) {
      const int64_t offset = layout.linear_offset(tap.dx, tap.dy, tap.dz);
      if (std::abs(offset) > INT32_MAX) {
        throw MemoryError("a slice of the integral volume is too large for 32-bit offsets");
      }
      taps.push_back({static_cast<int32_t>(offset), tap.weight});
    }
    record.n_tap = static_cast<uint16_t>(taps.size() - static_cast<size_t>(record.first_tap));
    record.cost_units =
        static_cast<uint32_t>(std::llround(tap_cost * record.n_tap / 32.0 * 2147483648.0));
    out.host.push_back(record);
  }
  out.features = Buffer<PoolFeature>(context.device, std::span<const PoolFeature>(out.host));
  out.taps =
      Buffer<features::LinearTap>(context.device, std::span<const features::LinearTap>(taps));
  out.host_taps = std::move(taps);
  out.layouts.assign(layouts.begin(), layouts.end());
  return out;
}

void range_pool(FeaturePool& pool, const SamplePlaces& places, const Context& context) {
  const std::vector<CodeMap> maps = kRange(
      pool.features.device(), RangeJob{pool.features.data(), pool.taps.data(), pool.host.size(),
                                       places, context.threads, context.device.index});
  for (size_t f = 0; f < maps.size(); ++f) pool.host[f].codes = maps[f];
  pool.features.upload(pool.host);
  pool.columns = nullptr;
}

std::vector<std::vector<BoostRound>> boost(const FeaturePool& pool,
                                           std::span<const BoostProblem> problems,
                                           const Context& context) {
  auto results = kBoost(pool.features.device(),
                        BoostJob{&pool, problems, context.threads, context.device.index});
  for (size_t n = 0; n < problems.size(); ++n) {
    if (problems[n].features.empty()) continue;
    for (BoostRound& round : results[n]) round.feature = problems[n].features[round.feature];
  }
  return results;
}

std::vector<BoostRound> boost(const FeaturePool& pool, const BoostProblem& problem,
                              const Context& context) {
  return boost(pool, {&problem, 1}, context).front();
}

size_t samples_at_once(const FeaturePool& pool) {
  constexpr size_t kMostBytes = size_t{8} << 30;  // some tenths of a second on a large device
  const Device& device = pool.features.device();
  if (!device.is_cuda()) return 1;
  // A row of the matrix, filled up to whole blocks channel by channel, and what else is by sample.
  const size_t bytes = pool.host.size() + 128 * pool.layouts.size() + 17;
  return std::max<size_t>(1, std::min(kMostBytes, free_memory_bytes(device) / 2) / bytes);
}

}  // namespace larch::learning
