// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/linear/patches.h"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

namespace larch::features::cpu {
namespace {

/// Rows of 32 bytes in a patch: a quarter of a megabyte.
constexpr size_t kMaximumRows = 8192;

/// Numbers rows in the order in which they are first seen; at most 2^16 - 1 of them.
class RowNumbers {
 public:
  RowNumbers() : slots_(size_t{1} << kBits) {}
  void clear() {
    for (const size_t at : used_) slots_[at] = {};
    used_.clear();
    rows_.clear();
  }
  int32_t number(const LinearTap& tap) {
    const uint32_t key = static_cast<uint32_t>(tap.offset) + tap.channel * 40503u;
    size_t at = (key * 2654435769u) >> (32 - kBits);
    while (slots_[at].number >= 0 &&
           !(slots_[at].row.channel == tap.channel && slots_[at].row.offset == tap.offset)) {
      at = (at + 1) & ((size_t{1} << kBits) - 1);
    }
    if (slots_[at].number < 0) {
      slots_[at] = {{tap.channel, tap.offset}, static_cast<int32_t>(rows_.size())};
      used_.push_back(at);
      rows_.push_back(slots_[at].row);
    }
    return slots_[at].number;
  }
  const std::vector<PatchPlan::Row>& rows() const { return rows_; }

 private:
  static constexpr int kBits = 17;  // n_tap of one feature is below 2^16
  struct Slot {
    PatchPlan::Row row;
    int32_t number = -1;
  };
  std::vector<Slot> slots_;
  std::vector<size_t> used_;
  std::vector<PatchPlan::Row> rows_;
};

/// The columns that are planned for.
struct Columns {
  const LinearColumns& all;
  std::span<const uint32_t> list;
  std::span<const learning::CodeMap> maps;

  const LinearFeature& feature(size_t k) const { return all.features[list[k]]; }
};

/// Sorts the rows by channel and offset, so that filling a patch goes through memory in one
/// direction, and makes the rules.
void finish(PatchPlan& plan, const std::vector<PatchPlan::Row>& rows, const Columns& columns) {
  std::vector<int32_t> order(rows.size()), row_of(rows.size());
  std::iota(order.begin(), order.end(), 0);
  const auto place = [&](int32_t number) {
    const PatchPlan::Row& row = rows[static_cast<size_t>(number)];
    return std::pair(row.channel, row.offset);
  };
  std::sort(order.begin(), order.end(), [&](int32_t a, int32_t b) { return place(a) < place(b); });
  for (size_t row = 0; row < order.size(); ++row) {
    const auto number = static_cast<size_t>(order[row]);
    row_of[number] = static_cast<int32_t>(row);
    plan.rows.push_back(rows[number]);
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
  RowNumbers numbers;
  for (size_t f = 0; f < list.size();) {
    PatchPlan plan;
    plan.first_feature = f;
    numbers.clear();
    do {
      const LinearFeature& feature = columns.feature(f);
      const LinearTap* tap = &all.taps[static_cast<size_t>(feature.first_tap)];
      for (int32_t t = 0; t < feature.n_tap; ++t) {
        plan.taps.push_back({numbers.number(tap[t]), tap[t].weight, tap[t].channel});
      }
      ++f;
    } while (f < list.size() && numbers.rows().size() + columns.feature(f).n_tap <= kMaximumRows);
    plan.rules.resize(f - plan.first_feature);
    finish(plan, numbers.rows(), columns);
    plans.push_back(std::move(plan));
  }
  return plans;
}

void fill_patch(const PatchPlan& plan, const SamplePlaces& places,
                std::span<const uint32_t> samples, size_t count, size_t first,
                std::vector<uint32_t>& patch) {
  std::array<const uint32_t*, kLanes> at{};
  patch.resize(plan.rows.size() * kLanes);
  uint32_t* out = patch.data();
  for (size_t r = 0; r < plan.rows.size(); ++r, out += kLanes) {
    const PatchPlan::Row& row = plan.rows[r];
    for (size_t k = 0; k < kLanes && (r == 0 || row.channel != plan.rows[r - 1].channel); ++k) {
      const size_t i = std::min(first + k, count - 1);
      const size_t sample = samples.empty() ? i : samples[i];
      at[k] = places.integral + places.bases[row.channel * places.count + sample];
    }
    for (size_t k = 0; k < kLanes; ++k) out[k] = at[k][row.offset];
  }
}

}  // namespace larch::features::cpu
