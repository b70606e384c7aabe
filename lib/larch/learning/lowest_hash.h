// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"

namespace larch::learning {

/// Returns what is drawn at random is drawn by hash: those `count` of all members whose 64-bit
/// hashes are lowest. This is a bound that at least `count` hashes are below, with a margin of
/// eight standard deviations. The caller counts them, and takes UINT64_MAX as the bound if there
/// are too few.
inline uint64_t likely_bound(size_t count, size_t members) {
  const auto expected = static_cast<double>(count);
  const double share = (expected + 8 * std::sqrt(expected) + 32) / static_cast<double>(members + 1);
  return share < 1 ? static_cast<uint64_t>(share * 0x1p64) : UINT64_MAX;
}

/// The `count` of lowest hash, or all, ascending by value.
template <typename T>
std::vector<T> lowest_of(std::vector<std::pair<uint64_t, T>> keyed, size_t count) {
  if (keyed.size() > count) {
    std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(count),
                     keyed.end());
    keyed.resize(count);
  }
  std::vector<T> values;
  values.reserve(keyed.size());
  for (const auto& entry : keyed) values.push_back(entry.second);
  std::sort(values.begin(), values.end());
  return values;
}

/// The `count` values of lowest hash(value), or all, ascending.
template <typename T, typename Hash>
std::vector<T> lowest_hashes(const std::vector<T>& values, size_t count, int threads,
                             const Hash& hash) {
  constexpr size_t kChunk = size_t{1} << 15;
  const size_t chunks = (values.size() + kChunk - 1) / kChunk;
  const auto below = [&](uint64_t bound) {
    std::vector<std::vector<std::pair<uint64_t, T>>> found(chunks);
    const auto search = [&](size_t chunk) {
      for (size_t k = chunk * kChunk; k < std::min(values.size(), (chunk + 1) * kChunk); ++k) {
        const uint64_t key = hash(values[k]);
        if (key <= bound) found[chunk].emplace_back(key, values[k]);
      }
    };
    parallel_for_each(threads, static_cast<int64_t>(chunks), 1,
                      [&](int64_t chunk) { search(static_cast<size_t>(chunk)); });
    std::vector<std::pair<uint64_t, T>> keyed;
    for (const auto& part : found) keyed.insert(keyed.end(), part.begin(), part.end());
    return keyed;
  };
  auto keyed = below(likely_bound(count, values.size()));
  if (keyed.size() < std::min(count, values.size())) keyed = below(UINT64_MAX);
  return lowest_of(std::move(keyed), count);
}

/// The same draw from values that come one by one, with memory for twice as many as are wanted.
template <typename T>
class LowestHashes {
 public:
  explicit LowestHashes(size_t count) : count_(count) {}

  void add(uint64_t hash, const T& value) {
    ++seen_;
    if (keyed_.size() >= count_ && !(std::pair(hash, value) < highest_)) return;
    keyed_.emplace_back(hash, value);
    if (keyed_.size() >= 2 * std::max<size_t>(count_, 1)) shrink();
  }
  /// Values that were added, kept or not.
  size_t seen() const { return seen_; }
  /// Values that are kept for now.
  size_t kept() const { return keyed_.size(); }
  /// The `count` of lowest hash, or all, ascending by value; none are left.
  std::vector<T> take() { return lowest_of(std::move(keyed_), count_); }

 private:
  void shrink() {
    const auto last = keyed_.begin() + static_cast<std::ptrdiff_t>(count_) - 1;
    if (count_ > 0) {
      std::nth_element(keyed_.begin(), last, keyed_.end());
      highest_ = *last;
    }
    keyed_.resize(count_);
  }

  size_t count_;
  size_t seen_ = 0;
  std::vector<std::pair<uint64_t, T>> keyed_;
  std::pair<uint64_t, T> highest_{UINT64_MAX, {}};  ///< of those kept, once there are enough
};

}  // namespace larch::learning
