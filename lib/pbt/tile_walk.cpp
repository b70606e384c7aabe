// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/tile_walk.h"

#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"

namespace larch::pbt::cpu {
namespace {

/// How often early rejection is tested inside a node.
constexpr int kRejectionPeriod = 8;

/// The voxels of one tile on their way through the tree.
class TileWalker {
 public:
  TileWalker(const EvaluateJob& job, const TreeView& tree)
      : job_(job),
        tree_(tree),
        bases_(static_cast<size_t>(job.channel_count)),
        weights_(static_cast<size_t>(tree.depth) + 1),
        kept_right_(static_cast<size_t>(tree.depth) + 1) {}

  void run(const Vec3i& corner) {
    enter(corner);
    if (!voxels_.empty()) descend(0, 0);
    for (size_t v = 0; v < voxels_.size(); ++v) store_probability(job_, voxels_[v], total_[v]);
  }

 private:
  /// Lists the voxels of the tile that lie in the image and the region of interest.
  void enter(const Vec3i& corner) {
    voxels_.clear();
    for (auto& base : bases_) base.clear();
    const Vec3i end{std::min(corner.x + job_.tile.x, job_.size.x),
                    std::min(corner.y + job_.tile.y, job_.size.y),
                    std::min(corner.z + job_.tile.z, job_.size.z)};
    for (int z = corner.z; z < end.z; ++z) {
      for (int y = corner.y; y < end.y; ++y) {
        for (int x = corner.x; x < end.x; ++x) {
          const int64_t i =
              x + static_cast<int64_t>(job_.size.x) * (y + static_cast<int64_t>(job_.size.y) * z);
          if (job_.roi != nullptr && job_.roi[i] == 0) {
            store_probability(job_, i, 0);
            continue;
          }
          voxels_.push_back(i);
          for (size_t c = 0; c < bases_.size(); ++c) {
            bases_[c].push_back(job_.integral + job_.layouts[c].base({x, y, z}));
          }
        }
      }
    }
    total_.assign(voxels_.size(), 0);
    for (auto& weight : weights_) weight.assign(voxels_.size(), 0);
    for (auto& weight : kept_right_) weight.assign(voxels_.size(), 0);
    std::fill(weights_[0].begin(), weights_[0].end(), kOneQ30);
    response_.resize(voxels_.size());
    h_.resize(voxels_.size());
  }

  void descend(int32_t index, int depth) {
    const NodeRecord& node = tree_.nodes[index];
    std::vector<uint32_t>& weight = weights_[static_cast<size_t>(depth)];
    if (node.left < 0) {
      for (size_t v = 0; v < weight.size(); ++v) {
        total_[v] += static_cast<uint64_t>(weight[v]) * node.q;
      }
      return;
    }
    // The list of voxels that are still here; it is only valid until the recursion below.
    active_.clear();
    for (size_t v = 0; v < weight.size(); ++v) {
      if (weight[v] > 0) active_.push_back(static_cast<int32_t>(v));
    }
    if (active_.empty()) return;
    strong_classifier(node);
    const size_t below = static_cast<size_t>(depth) + 1;
    std::fill(weights_[below].begin(), weights_[below].end(), 0);
    std::fill(kept_right_[below].begin(), kept_right_[below].end(), 0);
    bool any_left = false, any_right = false;
    for (size_t i = 0; i < active_.size(); ++i) {
      const auto v = static_cast<size_t>(active_[i]);
      const Split s = split_weight(weight[v], h_[i], tree_.thresholds, tree_.logistic);
      total_[v] += static_cast<uint64_t>(s.stop_left) * tree_.nodes[node.left].q +
                   static_cast<uint64_t>(s.stop_right) * tree_.nodes[node.right].q;
      weights_[below][v] = s.descend_left;
      kept_right_[below][v] = s.descend_right;
      any_left |= s.descend_left > 0;
      any_right |= s.descend_right > 0;
    }
    if (any_left) descend(node.left, depth + 1);
    if (any_right) {
      weights_[below].swap(kept_right_[below]);
      descend(node.right, depth + 1);
    }
  }

  /// H of the node for the active voxels, in their order.
  void strong_classifier(const NodeRecord& node) {
    const size_t n = active_.size();
    std::fill_n(h_.begin(), n, 0);
    for (int32_t t = 0; t < node.n_weak; ++t) {
      const WeakRecord& weak = tree_.weaks[node.first_weak + t];
      respond(weak);
      for (size_t i = 0; i < n; ++i) {
        const bool vote =
            weak_vote(weak.codes, weak.bins, weak.mask, static_cast<int32_t>(response_[i]));
        h_[i] += vote ? weak.alpha : -weak.alpha;
      }
      const bool test = tree_.early_rejection && t % kRejectionPeriod == kRejectionPeriod - 1;
      if (test && reject(n, tree_.rest[node.first_weak + t])) return;
    }
  }

  /// The feature's value at the active voxels.
  void respond(const WeakRecord& weak) {
    const auto& base = bases_[weak.channel];
    const size_t n = active_.size();
    std::fill_n(response_.begin(), n, 0u);
    for (int32_t k = weak.first_tap; k < weak.first_tap + weak.n_tap; ++k) {
      const features::LinearTap tap = tree_.taps[k];
      const auto w = static_cast<uint32_t>(tap.weight);
      for (size_t i = 0; i < n; ++i) {
        response_[i] += w * base[static_cast<size_t>(active_[i])][tap.offset];
      }
    }
  }

  /// When the outcome is certain for all, sets H to a value that tells it.
  bool reject(size_t n, int32_t rest) {
    for (size_t i = 0; i < n; ++i) {
      if (!is_certain(h_[i], rest, tree_.thresholds)) return false;
    }
    for (size_t i = 0; i < n; ++i) h_[i] = certain_value(h_[i], rest, tree_.thresholds);
    return true;
  }

  const EvaluateJob& job_;
  const TreeView tree_;
  std::vector<int64_t> voxels_;
  std::vector<std::vector<const uint32_t*>> bases_;          // [channel][voxel]
  std::vector<std::vector<uint32_t>> weights_, kept_right_;  // [depth][voxel], Q30
  std::vector<uint64_t> total_;                              // Q60
  std::vector<uint32_t> response_;
  std::vector<int32_t> h_, active_;
};

}  // namespace

void tile_walk(const EvaluateJob& job) {
  const TreeView tree = job.tree->view();
  const auto count = [](int size, int tile) { return (size + tile - 1) / tile; };
  const Vec3i tiles{count(job.size.x, job.tile.x), count(job.size.y, job.tile.y),
                    count(job.size.z, job.tile.z)};
  parallel_for(job.threads, static_cast<int64_t>(tiles.x) * tiles.y * tiles.z, 1,
               [&](int64_t begin, int64_t end) {
                 TileWalker walker(job, tree);
                 for (int64_t t = begin; t < end; ++t) {
                   walker.run({static_cast<int32_t>(t % tiles.x) * job.tile.x,
                               static_cast<int32_t>(t / tiles.x % tiles.y) * job.tile.y,
                               static_cast<int32_t>(t / tiles.x / tiles.y) * job.tile.z});
                 }
               });
}

}  // namespace larch::pbt::cpu
