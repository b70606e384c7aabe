// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/forest_split.h"

#include <algorithm>
#include <array>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::tree {
namespace cpu {

namespace {

constexpr size_t kWidth = learning::kCpuWidth;

/// The rows of the matrix whose samples count, leaf by leaf.
struct RowsOfLeaves {
  std::vector<size_t> first;  ///< of each leaf; one more at the end
  std::vector<uint32_t> rows;
};
RowsOfLeaves rows_of_leaves(const SplitJob& job) {
  RowsOfLeaves sorted;
  sorted.first.assign(job.best.size() + 1, 0);
  const auto for_all = [&](const auto& visit) {
    for (size_t row = 0; row < job.matrix.rows; ++row) {
      const size_t sample = job.rows.empty() ? row : job.rows[row];
      const uint32_t leaf = job.samples.node.data()[sample] - job.first_open;
      if (leaf < job.best.size() && job.samples.times.data()[sample] > 0) visit(leaf, row);
    }
  };
  for_all([&](uint32_t leaf, size_t) { ++sorted.first[leaf + 1]; });
  for (size_t l = 0; l < job.best.size(); ++l) sorted.first[l + 1] += sorted.first[l];
  sorted.rows.resize(sorted.first.back());
  std::vector<size_t> at(sorted.first.begin(), sorted.first.end() - 1);
  for_all([&](uint32_t leaf, size_t row) { sorted.rows[at[leaf]++] = static_cast<uint32_t>(row); });
  return sorted;
}

/// A block of columns at a leaf: its samples are counted, then each column's best test is taken.
class BlockOfLeaf {
 public:
  explicit BlockOfLeaf(const SplitJob& job) : job_(job), compact_(job.rule.classes) {}

  LeafSplit best(size_t leaf, size_t block, std::span<const uint32_t> rows) {
    find_classes(rows);
    SplitRule rule = job_.rule;
    rule.classes = static_cast<uint32_t>(classes_.size());
    if (rule.classes < 2) return {};
    count(block, rows);
    const auto bins = static_cast<size_t>(rule.bins);
    const uint32_t* weight = job_.samples.class_weight.data();
    LeafSplit best;
    for (size_t k = 0; k < kWidth; ++k) {
      const learning::Slot& slot = job_.columns.slots[block * kWidth + k];
      if (slot.column == learning::kFilling || slot.codes.lo == slot.codes.hi ||
          !rule.looks_at(job_.first_open + leaf, slot.column)) {
        continue;
      }
      uint32_t* counts = counts_.data() + k * bins * rule.classes;
      for (size_t i = rule.classes; i < bins * rule.classes; ++i)
        counts[i] += counts[i - rule.classes];
      best.keep_better(best_test(
          rule, slot.column,
          [&](uint32_t c, int32_t b) -> uint64_t {
            return counts[static_cast<size_t>(b) * rule.classes + c];
          },
          [&](uint32_t c) -> uint64_t { return weight[classes_[c]]; },
          job_.samples.entropy.data()));
    }
    return best;
  }

 private:
  size_t sample(uint32_t row) const { return job_.rows.empty() ? row : job_.rows[row]; }

  /// The classes that occur, ascending, and the number of each among them.
  void find_classes(std::span<const uint32_t> rows) {
    std::fill(compact_.begin(), compact_.end(), 0u);
    for (const uint32_t row : rows) compact_[job_.samples.label.data()[sample(row)]] = 1;
    classes_.clear();
    for (uint32_t c = 0; c < compact_.size(); ++c) {
      if (compact_[c] == 0) continue;
      compact_[c] = static_cast<uint32_t>(classes_.size());
      classes_.push_back(c);
    }
  }

  /// [column][bin][class]
  void count(size_t block, std::span<const uint32_t> rows) {
    const auto bins = static_cast<uint32_t>(job_.rule.bins);
    const auto classes = static_cast<uint32_t>(classes_.size());
    std::array<uint32_t, kWidth> factor;
    for (size_t k = 0; k < kWidth; ++k) {
      factor[k] = bin_factor(job_.columns.slots[block * kWidth + k].codes, job_.rule.bins);
    }
    counts_.assign(size_t{kWidth} * bins * classes, 0);
    for (const uint32_t row : rows) {
      const size_t s = sample(row);
      const uint32_t c = compact_[job_.samples.label.data()[s]];
      const uint32_t times = job_.samples.times.data()[s];
      const uint8_t* codes = job_.matrix.row(block, row);
      uint32_t* counts = counts_.data() + c;
      for (size_t k = 0; k < kWidth; ++k, counts += bins * classes) {
        counts[((codes[k] * factor[k]) >> 16) * classes] += times;
      }
    }
  }

  const SplitJob& job_;
  std::vector<uint32_t> compact_, classes_, counts_;
};

}  // namespace

void split_leaves(const SplitJob& job) {
  const RowsOfLeaves sorted = rows_of_leaves(job);
  const size_t blocks = job.matrix.blocks;
  std::vector<LeafSplit> found(job.best.size() * blocks);
  parallel_for(
      job.context.threads, static_cast<int64_t>(found.size()), 1, [&](int64_t begin, int64_t end) {
        BlockOfLeaf work(job);
        for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
          const size_t leaf = k / blocks;
          const std::span<const uint32_t> rows(sorted.rows.data() + sorted.first[leaf],
                                               sorted.first[leaf + 1] - sorted.first[leaf]);
          found[k] = work.best(leaf, k % blocks, rows);
        }
      });
  for (size_t k = 0; k < found.size(); ++k) job.best[k / blocks].keep_better(found[k]);
}

void route_leaves(const RouteJob& job) {
  parallel_for(job.context.threads, static_cast<int64_t>(job.matrix.rows), 4096,
               [&](int64_t begin, int64_t end) {
                 for (auto row = static_cast<size_t>(begin); row < static_cast<size_t>(end);
                      ++row) {
                   const size_t sample = job.rows.empty() ? row : job.rows[row];
                   uint32_t& node = job.node.data()[sample];
                   const uint32_t leaf = node - job.first_open;
                   if (leaf >= job.routes.size() || job.routes[leaf].slot == UINT32_MAX) continue;
                   const LeafRoute& route = job.routes[leaf];
                   node = route.node(job.matrix.at(route.slot, row));
                 }
               });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const SplitJob&)> kSplit{"tree::split_leaves", cpu::split_leaves,
                                                 LARCH_CUDA_FN(cuda::split_leaves)};
constexpr Dispatch<void(const RouteJob&)> kRoute{"tree::route_leaves", cpu::route_leaves,
                                                 LARCH_CUDA_FN(cuda::route_leaves)};

}  // namespace

const std::vector<int64_t>& entropy_terms() {
  static const std::vector<int64_t> terms = [] {
    std::vector<int64_t> made(ImpuritySums::kEntropies);
    for (size_t n = 0; n < made.size(); ++n) made[n] = entropy_term(n);
    return made;
  }();
  return terms;
}

void split_leaves(const SplitJob& job) {
  const int64_t least = job.rule.histogram_bytes(job.columns.slots.size());
  if (least > job.memory_bytes) {
    throw MemoryError("the histograms of one leaf take " + std::to_string(least) + " bytes, and " +
                      std::to_string(job.memory_bytes) +
                      " are allowed; use fewer forest/round_features or forest/bins");
  }
  kSplit(job.context.device, job);
}

void route_leaves(const RouteJob& job) {
  kRoute(job.context.device, job);
}

}  // namespace larch::tree
