// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/filters/components.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <utility>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::filters {
namespace {

/// Voxels begin .. end - 1 of one row along x.
struct Run {
  int32_t begin, end;
};

/// Sets of runs: each set's root is its smallest run.
class Sets {
 public:
  size_t add() {
    parents_.push_back(parents_.size());
    return parents_.size() - 1;
  }
  void unite(size_t a, size_t b) {
    const auto [low, high] = std::minmax({find(a), find(b)});
    parents_[high] = low;
  }
  /// Appends sets whose runs are counted from 0, behind the ones that are there.
  void append(const Sets& more) {
    const size_t offset = parents_.size();
    for (const size_t parent : more.parents_) parents_.push_back(parent + offset);
  }
  /// Makes each run's parent its root; no parent is larger than its run.
  void flatten() {
    for (size_t& parent : parents_) parent = parents_[parent];
  }
  size_t parent(size_t run) const { return parents_[run]; }
  size_t size() const { return parents_.size(); }
  void reserve(size_t runs) { parents_.reserve(runs); }

 private:
  size_t find(size_t run) {
    while (parents_[run] != run) run = parents_[run] = parents_[parents_[run]];
    return run;
  }

  std::vector<size_t> parents_;
};

/// The runs of some rows of a volume in the order of memory, and which of them are connected. Rows
/// are counted through all slices.
struct Runs {
  std::vector<Run> runs;
  std::vector<size_t> starts;  ///< of each row, its first run; and the end of the last
  Sets sets;
};

/// Joins the runs of one row with those of another that lie beside them.
void join(const Runs& all, size_t row, size_t other, Sets& sets) {
  size_t a = all.starts[row], b = all.starts[other];
  const size_t a_end = all.starts[row + 1], b_end = all.starts[other + 1];
  while (a < a_end && b < b_end) {
    if (all.runs[a].begin < all.runs[b].end && all.runs[b].begin < all.runs[a].end) {
      sets.unite(a, b);
    }
    if (all.runs[a].end < all.runs[b].end) {
      ++a;
    } else {
      ++b;
    }
  }
}

void find_runs(const uint8_t* voxels, int length, bool foreground, Runs& out) {
  const auto belongs = [&](int x) { return (voxels[x] != 0) == foreground; };
  for (int x = 0; x < length;) {
    while (x < length && !belongs(x)) ++x;
    if (x == length) return;
    const int begin = x;
    while (x < length && belongs(x)) ++x;
    out.sets.add();
    out.runs.push_back({begin, x});
  }
}

/// The runs of a mask's foreground or background, joined to components. The smallest run of a
/// component is its root, so components are ordered by their first voxel. Threads find and join the
/// runs of blocks of rows; the blocks are joined one after another.
class Components {
 public:
  Components(const Volume<uint8_t>& mask, bool foreground, int threads)
      : size_(mask.size()), rows_(size_t(size_.y) * size_t(size_.z)), threads_(threads) {
    const size_t blocks = std::clamp<size_t>(rows_ / 64, 1, static_cast<size_t>(threads));
    std::vector<Runs> parts(blocks);
    const auto begin_of = [&](size_t block) { return rows_ * block / blocks; };
    parallel_for_each(threads, static_cast<int64_t>(blocks), 1, [&](size_t b) {
      parts[b] = block_of_rows(mask, foreground, begin_of(b), begin_of(b + 1));
    });
    size_t all_runs = 0;
    for (const Runs& part : parts) all_runs += part.runs.size();
    all_ = std::move(parts[0]);
    all_.runs.reserve(all_runs);
    all_.sets.reserve(all_runs);
    all_.starts.reserve(rows_ + 1);
    for (size_t b = 1; b < blocks; ++b) {
      append(parts[b]);
      parts[b] = {};
      // Of the new rows, those whose neighbours lie in an earlier block.
      const size_t first = begin_of(b), last = std::min(begin_of(b + 1), first + size_t(size_.y));
      for (size_t r = first; r < last; ++r) join_with_earlier(all_, r, 0, first, all_.sets);
    }
    all_.sets.flatten();
  }

  size_t runs() const { return all_.runs.size(); }
  size_t root(size_t run) const { return all_.sets.parent(run); }
  int64_t voxels(size_t run) const { return all_.runs[run].end - all_.runs[run].begin; }

  /// Calls visit(run, voxel index of its beginning, touches the border of the volume), the runs of
  /// a row in order and different rows by several threads.
  template <class Visit>
  void each(Visit&& visit) const {
    parallel_for_each(threads_, static_cast<int64_t>(rows_), 256, [&](size_t r) {
      const auto y = static_cast<int>(r % size_t(size_.y)),
                 z = static_cast<int>(r / size_t(size_.y));
      const bool at_border =
          y == 0 || y == size_.y - 1 || (size_.z > 1 && (z == 0 || z == size_.z - 1));
      const int64_t first = static_cast<int64_t>(r) * size_.x;
      for (size_t run = all_.starts[r]; run < all_.starts[r + 1]; ++run) {
        const auto [from, to] = all_.runs[run];
        visit(run, first + from, at_border || from == 0 || to == size_.x);
      }
    });
  }

 private:
  /// Joins row `r` with its neighbours before it that lie in rows low .. high - 1. Rows are those
  /// of the volume; the runs begin with row `low` of it.
  void join_with_earlier(const Runs& all, size_t r, size_t low, size_t high, Sets& sets) const {
    const auto y = static_cast<size_t>(size_.y);
    for (const auto& [there, other] : {std::pair{r % y > 0, r - 1}, std::pair{r >= y, r - y}}) {
      if (there && other >= low && other < high) join(all, r - low, other - low, sets);
    }
  }

  Runs block_of_rows(const Volume<uint8_t>& mask, bool foreground, size_t begin, size_t end) const {
    Runs out;
    out.starts.reserve(end - begin + 1);
    out.starts.push_back(0);
    for (size_t r = begin; r < end; ++r) {
      find_runs(mask.data() + static_cast<int64_t>(r) * size_.x, size_.x, foreground, out);
      out.starts.push_back(out.runs.size());
      join_with_earlier(out, r, begin, r, out.sets);
    }
    return out;
  }

  void append(const Runs& part) {
    const size_t offset = all_.runs.size();
    all_.runs.insert(all_.runs.end(), part.runs.begin(), part.runs.end());
    all_.sets.append(part.sets);
    for (size_t i = 1; i < part.starts.size(); ++i) all_.starts.push_back(offset + part.starts[i]);
  }

  Vec3i size_;
  size_t rows_;
  int threads_;
  Runs all_;
};

}  // namespace

Volume<uint8_t> keep_largest_component(const Volume<uint8_t>& mask, int n, int threads,
                                       const LabelVolume* classes) {
  if (n < 0) throw UsageError("the number of components to keep must not be negative");
  const Components components(mask, /*foreground=*/true, threads);
  std::map<int32_t, std::vector<int64_t>> voxels;  // by class, of each root
  std::mutex one_at_a_time;
  for (size_t run = 0; classes == nullptr && run < components.runs(); ++run) {
    std::vector<int64_t>& all = voxels[0];
    all.resize(components.runs());
    all[components.root(run)] += components.voxels(run);
  }
  components.each([&](size_t run, int64_t first, bool) {
    if (classes == nullptr) return;
    const std::lock_guard lock(one_at_a_time);
    for (int64_t i = 0, count; i < components.voxels(run); i += count) {
      const int32_t value = (*classes)[first + i];
      for (count = 1; i + count < components.voxels(run); ++count) {
        if ((*classes)[first + i + count] != value) break;
      }
      std::vector<int64_t>& of_class = voxels[value];
      of_class.resize(components.runs());
      of_class[components.root(run)] += count;
    }
  });
  std::vector<uint8_t> kept(components.runs(), 0);  // of each root
  for (const auto& entry : voxels) {
    const std::vector<int64_t>& of_class = entry.second;
    std::vector<size_t> order;
    for (size_t root = 0; root < of_class.size(); ++root) {
      if (of_class[root] > 0) order.push_back(root);
    }
    std::ranges::stable_sort(order, [&](size_t a, size_t b) { return of_class[a] > of_class[b]; });
    order.resize(std::min(order.size(), static_cast<size_t>(n)));
    for (const size_t root : order) kept[root] = 1;
  }
  Volume<uint8_t> out(mask.grid());
  components.each([&](size_t run, int64_t first, bool) {
    if (kept[components.root(run)] != 0) {
      std::fill_n(out.data() + first, components.voxels(run), uint8_t{1});
    }
  });
  return out;
}

Volume<uint8_t> fill_holes(const Volume<uint8_t>& mask, int threads) {
  const Components background(mask, /*foreground=*/false, threads);
  std::vector<uint8_t> open(background.runs(), 0);  // of each root
  background.each([&](size_t run, int64_t, bool at_border) {
    if (at_border) std::atomic_ref(open[background.root(run)]).store(1, std::memory_order_relaxed);
  });
  Volume<uint8_t> out(mask.grid(), 1);
  background.each([&](size_t run, int64_t first, bool) {
    if (open[background.root(run)] != 0) {
      std::fill_n(out.data() + first, background.voxels(run), uint8_t{0});
    }
  });
  return out;
}

std::vector<uint8_t> dilated(std::span<const uint8_t> labels, const Vec3i& size, int radius) {
  std::vector<uint8_t> out(labels.size());
  std::transform(labels.begin(), labels.end(), out.begin(),
                 [](uint8_t label) { return static_cast<uint8_t>(label != 0); });
  size_t stride = 1;
  for (int axis = 0; axis < 3; ++axis) {
    // Where voxels of a line follow each other `stride` apart, whole slabs of lines move together.
    const std::vector<uint8_t> from = out;
    const size_t slab = stride * static_cast<size_t>(size[axis]);
    for (size_t first = 0; first < out.size(); first += slab) {
      for (int step = 1; step <= std::min(radius, size[axis] - 1); ++step) {
        const size_t moved = static_cast<size_t>(step) * stride;
        uint8_t* to = out.data() + first;
        const uint8_t* here = from.data() + first;
        for (size_t i = 0; i < slab - moved; ++i) to[i + moved] |= here[i];
        for (size_t i = 0; i < slab - moved; ++i) to[i] |= here[i + moved];
      }
    }
    stride = slab;
  }
  return out;
}

}  // namespace larch::filters
