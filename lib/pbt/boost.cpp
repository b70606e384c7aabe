// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/boost.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::pbt {
namespace {

constexpr Dispatch<std::vector<CodeMap>(const RangeJob&)> kRange{"pbt::range_pool", cpu::range_pool,
                                                                 LARCH_CUDA_FN(cuda::range_pool)};
constexpr Dispatch<std::vector<BoostRound>(const BoostJob&)> kBoost{"pbt::boost", cpu::boost,
                                                                    LARCH_CUDA_FN(cuda::boost)};

/// Features of a block share a cache line in each sample's row of the matrix.
constexpr size_t kBlock = 64;

int32_t response(const PoolFeature& feature, const features::LinearTap* taps,
                 const SamplePlaces& places, uint32_t sample) {
  const int64_t base = places.bases[feature.channel * places.sample_count + sample];
  return features::linear_response(taps + feature.first_tap, feature.n_tap, places.integral + base);
}

/// Bins of the selected samples: row i of a block holds 64 features of sample i.
struct BinMatrix {
  size_t samples = 0, blocks = 0;
  std::vector<uint8_t> bins;  // [block][sample][64]
  std::vector<BinMap> maps;   // [feature], padded to whole blocks

  uint8_t* row(size_t block, size_t sample) { return &bins[(block * samples + sample) * kBlock]; }
  const uint8_t* row(size_t block, size_t sample) const {
    return &bins[(block * samples + sample) * kBlock];
  }
};

void fill_codes(const BoostJob& job, BinMatrix& matrix) {
  const SamplePlaces& places = job.problem.places;
  parallel_for(job.threads, static_cast<int64_t>(matrix.samples), 16, [&](int64_t a, int64_t b) {
    for (auto i = static_cast<size_t>(a); i < static_cast<size_t>(b); ++i) {
      for (size_t f = 0; f < job.feature_count; ++f) {
        const PoolFeature& feature = job.features[f];
        matrix.row(f / kBlock, i)[f % kBlock] = static_cast<uint8_t>(
            code_of(feature.codes, response(feature, job.taps, places, places.index[i])));
      }
    }
  });
}

/// Zooms the codes of one block onto 64 bins, in place.
void zoom_block(BinMatrix& matrix, size_t block) {
  std::array<uint8_t, kBlock> low, high;
  low.fill(255);
  high.fill(0);
  for (size_t i = 0; i < matrix.samples; ++i) {
    const uint8_t* row = matrix.row(block, i);
    for (size_t l = 0; l < kBlock; ++l) {
      low[l] = std::min(low[l], row[l]);
      high[l] = std::max(high[l], row[l]);
    }
  }
  std::array<uint16_t, kBlock> scale;  // x >> s as (x * 2^(8 - s)) >> 8, which vectorises
  for (size_t l = 0; l < kBlock; ++l) {
    const BinMap map = make_bin_map(low[l], high[l]);
    matrix.maps[block * kBlock + l] = map;
    scale[l] = static_cast<uint16_t>(1u << (8 - map.shift));
  }
  for (size_t i = 0; i < matrix.samples; ++i) {
    uint8_t* row = matrix.row(block, i);
    for (size_t l = 0; l < kBlock; ++l) {
      const auto above = static_cast<uint16_t>(row[l] - low[l]);
      row[l] = static_cast<uint8_t>(static_cast<uint16_t>(above * scale[l]) >> 8);
    }
  }
}

BinMatrix build_matrix(const BoostJob& job) {
  BinMatrix matrix;
  matrix.samples = job.problem.places.index.size();
  matrix.blocks = (job.feature_count + kBlock - 1) / kBlock;
  matrix.bins.assign(matrix.blocks * matrix.samples * kBlock, 0);
  matrix.maps.resize(matrix.blocks * kBlock);
  fill_codes(job, matrix);
  parallel_for(job.threads, static_cast<int64_t>(matrix.blocks), 4, [&](int64_t a, int64_t b) {
    for (int64_t block = a; block < b; ++block) zoom_block(matrix, static_cast<size_t>(block));
  });
  return matrix;
}

/// The best feature of a block in this round.
uint64_t best_of_block(const BoostJob& job, const BinMatrix& matrix, size_t block,
                       const std::vector<int32_t>& signed_weights, uint64_t total) {
  std::array<int32_t, kBlock * kBins> d{};
  for (size_t i = 0; i < matrix.samples; ++i) {
    const uint8_t* row = matrix.row(block, i);
    const int32_t s = signed_weights[i];
    for (size_t l = 0; l < kBlock; ++l) d[l * kBins + row[l]] += s;
  }
  uint64_t best = UINT64_MAX;
  for (size_t l = 0; l < kBlock && block * kBlock + l < job.feature_count; ++l) {
    const auto f = static_cast<uint32_t>(block * kBlock + l);
    const PoolFeature& feature = job.features[f];
    if (feature.codes.lo == feature.codes.hi) continue;
    uint64_t mask = 0;
    const uint64_t agreement = job.problem.kind == WeakKind::kHist64
                                   ? histogram_agreement(&d[l * kBins], 1)
                                   : threshold_agreement(&d[l * kBins], 1, &mask);
    best = std::min(best, candidate_key(total - agreement + feature.cost_units, feature.n_tap, f));
  }
  return best;
}

/// Mask and agreement of the round's winner.
BoostRound describe_winner(const BoostJob& job, const BinMatrix& matrix, uint32_t feature,
                           const std::vector<int32_t>& signed_weights, uint64_t total) {
  std::array<int32_t, kBins> d{};
  for (size_t i = 0; i < matrix.samples; ++i) {
    d[matrix.row(feature / kBlock, i)[feature % kBlock]] += signed_weights[i];
  }
  BoostRound round;
  round.found = true;
  round.feature = feature;
  round.total = total;
  round.bins = matrix.maps[feature];
  if (job.problem.kind == WeakKind::kHist64) {
    round.agreement = histogram_agreement(d.data(), 1);
    round.mask = histogram_mask(d.data(), 1, job.problem.empty_bins);
  } else {
    round.agreement = threshold_agreement(d.data(), 1, &round.mask);
  }
  return round;
}

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
  return out;
}

void range_pool(FeaturePool& pool, const SamplePlaces& places, const Context& context) {
  const std::vector<CodeMap> maps = kRange(
      pool.features.device(), RangeJob{pool.features.data(), pool.taps.data(), pool.host.size(),
                                       places, context.threads, context.device.index});
  for (size_t f = 0; f < maps.size(); ++f) pool.host[f].codes = maps[f];
  pool.features.upload(pool.host);
}

Buffer<PoolFeature> FeaturePool::subset(std::span<const uint32_t> indices) const {
  std::vector<PoolFeature> chosen;
  for (const uint32_t f : indices) chosen.push_back(host[f]);
  return Buffer<PoolFeature>(features.device(), std::span<const PoolFeature>(chosen));
}

std::vector<BoostRound> boost(const FeaturePool& pool, const BoostProblem& problem,
                              const Context& context) {
  BoostJob job{pool.features.data(), pool.taps.data(),    pool.host.size(), problem,
               context.threads,      context.device.index};
  if (problem.features.empty()) return kBoost(pool.features.device(), job);
  const Buffer<PoolFeature> subset = pool.subset(problem.features);
  job.features = subset.data();
  job.feature_count = subset.size();
  std::vector<BoostRound> rounds = kBoost(pool.features.device(), job);
  for (BoostRound& round : rounds) round.feature = problem.features[round.feature];
  return rounds;
}

namespace cpu {

std::vector<CodeMap> range_pool(const RangeJob& job) {
  std::vector<CodeMap> maps(job.feature_count);
  const size_t n = job.places.index.size();
  parallel_for(job.threads, static_cast<int64_t>(job.feature_count), 64, [&](int64_t a, int64_t b) {
    std::vector<int32_t> values(n);
    for (auto f = static_cast<size_t>(a); f < static_cast<size_t>(b); ++f) {
      for (size_t i = 0; i < n; ++i) {
        values[i] = response(job.features[f], job.taps, job.places, job.places.index[i]);
      }
      const auto statistic = [&](size_t rank) {
        const auto at = values.begin() + static_cast<std::ptrdiff_t>(rank);
        std::nth_element(values.begin(), at, values.end());
        return *at;
      };
      const int32_t low = statistic(low_rank(n)), high = statistic(high_rank(n));
      maps[f] = make_code_map(low, high);
    }
  });
  return maps;
}

std::vector<BoostRound> boost(const BoostJob& job) {
  const BoostProblem& problem = job.problem;
  const BinMatrix matrix = build_matrix(job);
  std::vector<double> weight(problem.weight.begin(), problem.weight.end());
  std::vector<int32_t> signed_weights(weight.size());
  std::vector<uint64_t> best(matrix.blocks);
  std::vector<BoostRound> rounds;
  for (int t = 0; t < problem.rounds; ++t) {
    uint64_t total = 0;
    for (size_t i = 0; i < weight.size(); ++i) {
      signed_weights[i] = quantised_weight(weight[i], problem.positive[i] != 0);
      total += static_cast<uint64_t>(std::abs(signed_weights[i]));
    }
    parallel_for(job.threads, static_cast<int64_t>(matrix.blocks), 2, [&](int64_t a, int64_t b) {
      for (auto k = static_cast<size_t>(a); k < static_cast<size_t>(b); ++k) {
        best[k] = best_of_block(job, matrix, k, signed_weights, total);
      }
    });
    const uint64_t key = *std::min_element(best.begin(), best.end());
    if (key == UINT64_MAX) {
      rounds.emplace_back();
      return rounds;
    }
    const auto feature = static_cast<uint32_t>(key & 0xffffff);
    rounds.push_back(describe_winner(job, matrix, feature, signed_weights, total));
    const BoostRound& round = rounds.back();
    const double error = round.error();
    for (size_t i = 0; i < weight.size(); ++i) {
      const bool vote = (round.mask >> matrix.row(feature / kBlock, i)[feature % kBlock]) & 1;
      weight[i] = updated_weight(weight[i], vote == (problem.positive[i] != 0), error);
    }
  }
  return rounds;
}

}  // namespace cpu
}  // namespace larch::pbt
