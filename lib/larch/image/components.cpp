// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/image/components.h"

#include <algorithm>
#include <vector>

#include "larch/core/error.h"

namespace larch::image {
namespace {

/// Voxels begin .. end - 1 of one row along x.
struct Run {
  int32_t begin, end;
};

/// The runs of a mask's foreground or background in the order of memory, joined to components by
/// union-find. The smallest run of a component is its root, so components are ordered by their
/// first voxel.
class Components {
 public:
  Components(const Volume<uint8_t>& mask, bool foreground) : size_(mask.size()) {
    starts_.reserve(static_cast<size_t>(size_.y) * static_cast<size_t>(size_.z) + 1);
    for (int z = 0; z < size_.z; ++z) {
      for (int y = 0; y < size_.y; ++y) {
        find_runs(mask.data() + mask.grid().linear({0, y, z}), foreground);
        if (y > 0) join(row(y, z), row(y - 1, z));
        if (z > 0) join(row(y, z), row(y, z - 1));
      }
    }
    starts_.push_back(runs_.size());
    for (size_t& parent : parents_) parent = parents_[parent];
  }

  size_t runs() const { return runs_.size(); }
  size_t root(size_t run) const { return parents_[run]; }
  int64_t voxels(size_t run) const { return runs_[run].end - runs_[run].begin; }

  /// Calls visit(run, voxel index of its beginning, touches the border of the volume).
  template <class Visit>
  void each(Visit&& visit) const {
    for (int z = 0; z < size_.z; ++z) {
      for (int y = 0; y < size_.y; ++y) {
        const size_t r = row(y, z);
        const bool at_border =
            y == 0 || y == size_.y - 1 || (size_.z > 1 && (z == 0 || z == size_.z - 1));
        const int64_t first = static_cast<int64_t>(r) * size_.x;
        for (size_t run = starts_[r]; run < starts_[r + 1]; ++run) {
          const auto [begin, end] = runs_[run];
          visit(run, first + begin, at_border || begin == 0 || end == size_.x);
        }
      }
    }
  }

 private:
  size_t row(int y, int z) const {
    return static_cast<size_t>(y) + static_cast<size_t>(size_.y) * static_cast<size_t>(z);
  }

  void find_runs(const uint8_t* voxels, bool foreground) {
    starts_.push_back(runs_.size());
    const auto belongs = [&](int x) { return (voxels[x] != 0) == foreground; };
    for (int x = 0; x < size_.x;) {
      while (x < size_.x && !belongs(x)) ++x;
      if (x == size_.x) return;
      const int begin = x;
      while (x < size_.x && belongs(x)) ++x;
      parents_.push_back(runs_.size());
      runs_.push_back({begin, x});
    }
  }

  /// Joins the runs of the last row with those of an earlier one that lie beside them.
  void join(size_t last, size_t earlier) {
    size_t a = starts_[last], b = starts_[earlier];
    const size_t a_end = runs_.size(), b_end = starts_[earlier + 1];
    while (a < a_end && b < b_end) {
      if (runs_[a].begin < runs_[b].end && runs_[b].begin < runs_[a].end) unite(a, b);
      if (runs_[a].end < runs_[b].end) {
        ++a;
      } else {
        ++b;
      }
    }
  }

  size_t find(size_t run) {
    while (parents_[run] != run) run = parents_[run] = parents_[parents_[run]];
    return run;
  }

  void unite(size_t a, size_t b) {
    const auto [low, high] = std::minmax({find(a), find(b)});
    parents_[high] = low;
  }

  Vec3i size_;
  std::vector<Run> runs_;
  std::vector<size_t> parents_;  // of each run, never larger than the run
  std::vector<size_t> starts_;   // of each row, its first run
};

}  // namespace

int64_t count_components(const Volume<uint8_t>& mask) {
  const Components components(mask, /*foreground=*/true);
  int64_t count = 0;
  for (size_t run = 0; run < components.runs(); ++run) count += components.root(run) == run ? 1 : 0;
  return count;
}

Volume<uint8_t> keep_largest_component(const Volume<uint8_t>& mask, int n) {
  if (n < 0) throw UsageError("the number of components to keep must not be negative");
  const Components components(mask, /*foreground=*/true);
  std::vector<int64_t> voxels(components.runs(), 0);  // of each root
  std::vector<size_t> order;
  for (size_t run = 0; run < components.runs(); ++run) {
    if (components.root(run) == run) order.push_back(run);
    voxels[components.root(run)] += components.voxels(run);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return voxels[a] > voxels[b]; });
  order.resize(std::min(order.size(), static_cast<size_t>(n)));
  std::fill(voxels.begin(), voxels.end(), 0);
  for (const size_t root : order) voxels[root] = 1;
  Volume<uint8_t> out(mask.grid());
  components.each([&](size_t run, int64_t first, bool) {
    if (voxels[components.root(run)] != 0) {
      std::fill_n(out.data() + first, components.voxels(run), uint8_t{1});
    }
  });
  return out;
}

Volume<uint8_t> fill_holes(const Volume<uint8_t>& mask) {
  const Components background(mask, /*foreground=*/false);
  std::vector<uint8_t> open(background.runs(), 0);  // of each root
  background.each([&](size_t run, int64_t, bool at_border) {
    if (at_border) open[background.root(run)] = 1;
  });
  Volume<uint8_t> out(mask.grid(), 1);
  background.each([&](size_t run, int64_t first, bool) {
    if (open[background.root(run)] != 0) {
      std::fill_n(out.data() + first, background.voxels(run), uint8_t{0});
    }
  });
  return out;
}

}  // namespace larch::image
