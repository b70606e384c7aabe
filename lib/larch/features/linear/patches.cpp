// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/linear/patches.h"

#include <algorithm>
#include <array>
#include <numeric>

namespace larch::features::cpu {
namespace {

/// Rows of 32 bytes in a patch: a quarter of a megabyte.
constexpr size_t kMaxRows = 8192;

/// Numbers offsets in the order in which they are first seen; at most 2^16 - 1 of them.
class OffsetNumbers {
 public:
  void clear() {
    slots_.assign(size_t{1} << kBits, {0, -1});
    offsets_.clear();
  }
  int32_t number(int32_t offset) {
    size_t at = (static_cast<uint32_t>(offset) * 2654435769u) >> (32 - kBits);
    while (slots_[at].number >= 0 && slots_[at].offset != offset) {
      at = (at + 1) & ((size_t{1} << kBits) - 1);
    }
    if (slots_[at].number < 0) {
      slots_[at] = {offset, static_cast<int32_t>(offsets_.size())};
      offsets_.push_back(offset);
    }
    return slots_[at].number;
  }
  const std::vector<int32_t>& offsets() const { return offsets_; }

 private:
  static constexpr int kBits = 17;  // n_tap of one feature is below 2^16
  struct Slot {
    int32_t offset, number;
  };
  std::vector<Slot> slots_;
  std::vector<int32_t> offsets_;
};

/// The columns that are planned for.
struct Columns {
  const LinearColumns& all;
  std::span<const uint32_t> list;
  std::span<const learning::CodeMap> maps;

  const LinearFeature& feature(size_t k) const { return all.features[list[k]]; }
};

/// Sorts the rows by offset, so that filling a patch goes through memory in one direction, and
/// makes the rules.
void finish(PatchPlan& plan, const std::vector<int32_t>& offsets, const Columns& columns) {
  std::vector<int32_t> order(offsets.size()), row_of(offsets.size());
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) {
    return offsets[static_cast<size_t>(a)] < offsets[static_cast<size_t>(b)];
  });
  for (size_t row = 0; row < order.size(); ++row) {
    const auto number = static_cast<size_t>(order[row]);
    row_of[number] = static_cast<int32_t>(row);
    plan.offsets.push_back(offsets[number]);
  }
  for (LinearTap& tap : plan.taps) tap.offset = row_of[static_cast<size_t>(tap.offset)];
  const LinearTap* next = plan.taps.data();
  for (size_t i = 0; i < plan.rules.size(); ++i) {
    const LinearFeature& feature = columns.feature(plan.first_feature + i);
    plan.rules[i] = {next, feature.n_tap, columns.maps[plan.first_feature + i]};
    next += feature.n_tap;
  }
}

}  // namespace

std::vector<PatchPlan> plan_patches(const LinearColumns& all, std::span<const uint32_t> list,
                                    std::span<const learning::CodeMap> maps) {
  const Columns columns{all, list, maps};
  std::vector<PatchPlan> plans;
  OffsetNumbers numbers;
  for (size_t f = 0; f < list.size();) {
    PatchPlan plan;
    plan.first_feature = f;
    plan.channel = columns.feature(f).channel;
    numbers.clear();
    do {
      const LinearFeature& feature = columns.feature(f);
      const LinearTap* tap = &all.taps[static_cast<size_t>(feature.first_tap)];
      for (int32_t t = 0; t < feature.n_tap; ++t) {
        plan.taps.push_back({numbers.number(tap[t].offset), tap[t].weight});
      }
      ++f;
    } while (f < list.size() && columns.feature(f).channel == plan.channel &&
             numbers.offsets().size() + columns.feature(f).n_tap <= kMaxRows);
    plan.rules.resize(f - plan.first_feature);
    finish(plan, numbers.offsets(), columns);
    plans.push_back(std::move(plan));
  }
  return plans;
}

void fill_patch(const PatchPlan& plan, const SamplePlaces& places,
                std::span<const uint32_t> samples, size_t first, std::vector<uint32_t>& patch) {
  std::array<const uint32_t*, kLanes> at;
  for (size_t k = 0; k < kLanes; ++k) {
    const uint32_t sample = samples[std::min(first + k, samples.size() - 1)];
    at[k] = places.integral + places.bases[plan.channel * places.count + sample];
  }
  patch.resize(plan.offsets.size() * kLanes);
  uint32_t* row = patch.data();
  for (const int32_t offset : plan.offsets) {
    for (size_t k = 0; k < kLanes; ++k) row[k] = at[k][offset];
    row += kLanes;
  }
}

}  // namespace larch::features::cpu
