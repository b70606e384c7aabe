// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/linear/linear_source.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/features/lane_kernels.h"
#include "larch/features/linear/patches.h"

namespace larch::features::cpu {
namespace {

/// Features that share one pass over the samples.
constexpr size_t kFeaturesAtOnce = 4096;

/// Adds the values of a column at some samples, of which few are news.
void add_values(learning::ColumnEnds& ends, size_t column, const int32_t* values, size_t lanes) {
  const int32_t below = ends.lists[(2 * column + 1) * ends.keep - 1];
  const int32_t above = ~ends.lists[(2 * column + 2) * ends.keep - 1];
  int news = 0;
  for (size_t k = 0; k < kLanes; ++k) news |= (values[k] < below) | (values[k] > above);
  for (size_t k = 0; news != 0 && k < lanes; ++k) {
    ends.insert(2 * column, values[k]);
    ends.insert(2 * column + 1, ~values[k]);
  }
}

/// Adds the values of the columns [first, first + count).
void range_columns(const LinearRangeJob& job, size_t first, size_t count) {
  const size_t n = job.samples.size();
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
        add_values(job.ends, first + plan.first_feature + i, &values[i * kLanes],
                   std::min<size_t>(kLanes, n - sample));
      }
    }
  }
}

}  // namespace

void range(const LinearRangeJob& job) {
  const size_t all = job.columns.features.size();
  const auto groups = static_cast<int64_t>((all + kFeaturesAtOnce - 1) / kFeaturesAtOnce);
  parallel_for_each(job.context.threads, groups, 1, [&](size_t g) {
    const size_t first = g * kFeaturesAtOnce;
    range_columns(job, first, std::min(kFeaturesAtOnce, all - first));
  });
}

namespace {

constexpr size_t kWidth = learning::kCpuWidth;

/// Columns with the plans of their patches.
struct PatchColumns : learning::PreparedColumns {
  PatchColumns(std::vector<learning::Slot> all, std::vector<PatchPlan> plan)
      : PreparedColumns(std::move(all), Device::cpu()), plans(std::move(plan)) {}

  const std::vector<PatchPlan> plans;
};

/// Features whose codes are computed before they are moved to the matrix.
constexpr size_t kCodesAtOnce = 256;

/// Moves the codes of features [first, first + count), [feature][lane], to the rows of the lanes.
void scatter(learning::FeatureMatrix& matrix, const uint8_t* codes, std::array<size_t, 2> features,
             const std::array<size_t, kLanes>& rows, size_t lanes) {
  const auto [first, count] = features;
  for (size_t i = 0; i < count;) {
    const size_t f = first + i, column = f % kWidth;
    const size_t width = std::min(kWidth - column, count - i);
    uint8_t* const at = matrix.row(f / kWidth, 0) + column;
    if (width == kWidth && lanes == kLanes) {
      for (size_t k = 0; k < kLanes; ++k) {
        uint8_t* const row = at + rows[k] * kWidth;
        for (size_t l = 0; l < kWidth; ++l) row[l] = codes[(i + l) * kLanes + k];
      }
    } else {
      for (size_t k = 0; k < lanes; ++k) {
        uint8_t* const row = at + rows[k] * kWidth;
        for (size_t l = 0; l < width; ++l) row[l] = codes[(i + l) * kLanes + k];
      }
    }
    i += width;
  }
}

}  // namespace

PreparedPointer prepare(const LinearPrepareJob& job) {
  return std::make_shared<const PatchColumns>(
      learning::slots_in_order(job.source, job.request),
      plan_patches(job.columns, job.request.columns, job.request.maps));
}

void fill(const LinearFillJob& job) {
  const auto& columns = dynamic_cast<const PatchColumns&>(job.prepared);
  learning::FeatureMatrix& matrix = job.matrix;
  const size_t samples = job.rows.empty() ? matrix.rows : job.rows.size();
  const auto row_of = [&](size_t k) { return job.rows.empty() ? k : job.rows[k]; };
  // Every code is written below; only the filling of the last block must be made.
  if (!columns.slots.empty() && columns.slots.back().column == learning::kFilling) {
    for (size_t k = 0; k < samples; ++k) {
      std::fill_n(matrix.row(matrix.blocks - 1, row_of(k)), kWidth, uint8_t{0});
    }
  }
  const auto groups = static_cast<int64_t>((samples + kLanes - 1) / kLanes);
  parallel_for(job.context.threads, groups, 4, [&](int64_t a, int64_t b) {
    std::vector<uint32_t> patch;
    std::array<size_t, kLanes> rows;
    std::array<uint8_t, kCodesAtOnce * kLanes> codes;
    for (const PatchPlan& plan : columns.plans) {
      for (auto sample = static_cast<size_t>(a) * kLanes; sample < static_cast<size_t>(b) * kLanes;
           sample += kLanes) {
        const size_t lanes = std::min<size_t>(kLanes, samples - sample);
        for (size_t k = 0; k < lanes; ++k) rows[k] = row_of(sample + k);
        fill_patch(plan, job.places, job.samples, samples, sample, patch);
        for (size_t f = 0; f < plan.rules.size(); f += kCodesAtOnce) {
          const size_t count = std::min(kCodesAtOnce, plan.rules.size() - f);
          lane_kernels().patch_codes({&plan.rules[f], count}, patch.data(), codes.data());
          scatter(matrix, codes.data(), {plan.first_feature + f, count}, rows, lanes);
        }
      }
    }
  });
}

namespace {

/// What all weak classifiers say of samples [first, first + lanes): so few at a time that what
/// the weak classifiers read around them stays in the cache.
void vote_group(const LinearVoteJob& job, std::span<const VoteRule> rules, size_t first,
                size_t lanes) {
  const SamplePlaces& places = job.places;
  const size_t words = (rules.size() + 31) / 32;
  std::array<int64_t, kLanes> base{};
  std::array<uint32_t, kLanes> bits{};
  std::array<int32_t, kLanes> scores{};
  int32_t channel = -1;
  for (size_t t = 0; t < rules.size(); ++t) {
    if (job.weaks[t].channel == kSeveralChannels) {
      for (size_t k = 0; k < lanes; ++k) {
        const int32_t value = response_of_channels(rules[t].taps, rules[t].n_tap, [&](size_t c) {
          return places.integral + places.bases[c * places.count + job.request.samples[first + k]];
        });
        const bool vote = learning::weak_vote(rules[t].codes, rules[t].bins, rules[t].mask, value);
        bits[k] += vote ? rules[t].value : 0;
      }
    } else if (job.weaks[t].channel != channel) {
      channel = job.weaks[t].channel;
      const int64_t* bases = places.bases + job.weaks[t].channel * places.count;
      for (size_t k = 0; k < lanes; ++k) base[k] = bases[job.request.samples[first + k]];
    }
    if (job.weaks[t].channel != kSeveralChannels) {
      lane_kernels().vote_points(rules[t], places.integral, {base.data(), lanes}, bits.data());
    }
    if (!job.request.scores.empty()) {
      for (size_t k = 0; k < lanes; ++k) {
        scores[k] += bits[k] != 0 ? job.weaks[t].alpha_q20 : -job.weaks[t].alpha_q20;
      }
      bits.fill(0);
    } else if (t % 32 == 31 || t + 1 == rules.size()) {
      for (size_t k = 0; k < lanes; ++k) job.request.bits[(first + k) * words + t / 32] = bits[k];
      bits.fill(0);
    }
  }
  if (!job.request.scores.empty())
    std::copy_n(scores.data(), lanes, job.request.scores.data() + first);
}

}  // namespace

void vote(const LinearVoteJob& job) {
  std::vector<VoteRule> rules;
  for (const VoteRecord& weak : job.weaks) {
    rules.push_back({job.taps + weak.first_tap, weak.n_tap, 1u << (rules.size() % 32), weak.codes,
                     weak.bins, weak.mask});
  }
  const auto samples = static_cast<int64_t>(job.request.samples.size());
  parallel_for(job.context.threads, samples, 256, [&](int64_t begin, int64_t end) {
    for (int64_t first = begin; first < end; first += kLanes) {
      vote_group(job, rules, static_cast<size_t>(first),
                 static_cast<size_t>(std::min<int64_t>(kLanes, end - first)));
    }
  });
}

}  // namespace larch::features::cpu

namespace larch::features {
namespace {

constexpr Dispatch<void(const LinearRangeJob&)> kRange{"features::range", cpu::range,
                                                       LARCH_CUDA_FN(cuda::range)};
constexpr Dispatch<PreparedPointer(const LinearPrepareJob&)> kPrepare{
    "features::prepare", cpu::prepare, LARCH_CUDA_FN(cuda::prepare)};
constexpr Dispatch<void(const LinearFillJob&)> kFill{"features::fill", cpu::fill,
                                                     LARCH_CUDA_FN(cuda::fill)};
constexpr Dispatch<void(const LinearVoteJob&)> kVote{"features::vote", cpu::vote,
                                                     LARCH_CUDA_FN(cuda::vote)};

using List = std::span<const uint32_t>;

/// Calls `use` with the number of each list of samples, those of a portion and their places in it,
/// while the images of the portion are in memory; with all and no places where there are no
/// portions.
template <class Use>
void for_portions(const SamplePlaces& places, std::span<const List> lists, const Context& context,
                  const Use& use) {
  const bool is_whole = places.portion.empty();
  for (uint32_t p = 0, last = is_whole ? 0 : std::ranges::max(places.portion); p <= last; ++p) {
    for (size_t list = 0; list < lists.size(); ++list) {
      std::vector<uint32_t> samples, at;
      for (uint32_t k = 0; k < lists[list].size() && !is_whole; ++k) {
        if (places.portion[lists[list][k]] != p) continue;
        samples.push_back(lists[list][k]);
        at.push_back(k);
      }
      if (!at.empty()) places.load(p, context);
      if (is_whole || !at.empty()) use(list, is_whole ? lists[list] : List(samples), List(at));
    }
  }
}

}  // namespace

std::string LinearSource::name(uint32_t column) const {
  const LinearFeature& feature = columns_->features[column];
  return "linear feature " + std::to_string(column) + " (" + std::to_string(feature.n_tap) +
         " taps of channel " + std::to_string(feature.channel) + ")";
}

learning::Price LinearSource::price(uint32_t column) const {
  const LinearFeature& feature = columns_->features[column];
  return {feature.n_tap, feature.cost_units};
}

void LinearSource::add_ends(std::span<const uint32_t> samples, learning::ColumnEnds& ends,
                            const Context& context) const {
  for_portions(places_, {&samples, 1}, context, [&](size_t, List some, List) {
    kRange(device(), LinearRangeJob{*columns_, places_, some, ends, context});
  });
}

PreparedPointer LinearSource::prepare(const learning::ColumnRequest& request,
                                      const Context&) const {
  return kPrepare(device(), LinearPrepareJob{*columns_, *this, request});
}

void LinearSource::fill(const learning::PreparedColumns& columns, std::span<const uint32_t> samples,
                        learning::FeatureMatrix& matrix, const Context& context) const {
  std::vector<uint32_t> all;
  if (samples.empty() && !places_.portion.empty()) {
    all.resize(matrix.rows);
    std::iota(all.begin(), all.end(), 0u);
    samples = all;
  }
  for_portions(places_, {&samples, 1}, context, [&](size_t, List some, List rows) {
    kFill(device(), LinearFillJob{columns, places_, some, rows, matrix, context});
  });
}

void LinearSource::vote(std::span<const learning::VoteRequest> requests,
                        const Context& context) const {
  std::vector<List> lists;
  for (const learning::VoteRequest& request : requests) lists.push_back(request.samples);
  for_portions(places_, lists, context, [&](size_t r, List some, List at) {
    const learning::VoteRequest& all = requests[r];
    if (at.empty()) return vote_here(all, context);
    const size_t words = all.bits.size() / all.samples.size();
    std::vector<uint32_t> bits(at.size() * words);
    std::vector<int32_t> scores(all.scores.empty() ? 0 : at.size());
    vote_here({all.weaks, some, bits, scores}, context);
    for (size_t k = 0; k < at.size(); ++k) {
      std::copy_n(bits.begin() + k * words, words, all.bits.begin() + at[k] * words);
      if (!scores.empty()) all.scores[at[k]] = scores[k];
    }
  });
}

void LinearSource::vote_here(const learning::VoteRequest& request, const Context& context) const {
  std::vector<VoteRecord> records;
  records.reserve(request.weaks.size());
  for (const learning::WeakClassifier& weak : request.weaks) {
    const LinearFeature& feature = columns_->features[weak.feature];
    records.push_back({feature.first_tap, feature.n_tap, feature.channel, weak.codes, weak.bins,
                       weak.mask, weak.alpha_q20});
  }
  kVote(device(), LinearVoteJob{columns_->device_taps.data(), places_, records, request, context});
}

}  // namespace larch::features
