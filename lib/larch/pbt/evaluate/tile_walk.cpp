// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/pbt/evaluate/tile_strong_test.h"

namespace larch::pbt::cpu {
namespace {

/// The leaf of posteriors: what ends at the children of nodes, mixed, by place.
class TileProbabilityLeaf {
 public:
  void clear(const Visits& root, size_t places) {
    total_.resize(places);
    for (const Visit& visit : root) total_[static_cast<size_t>(visit.place)] = 0;
  }
  void operator()(const Visit& visit, const tree::FlatNode& node, const tree::Shares& shares) {
    total_[static_cast<size_t>(visit.place)] += tree::ProbabilityLeaf::mixed(node, shares);
  }
  uint64_t of(const Visit& visit) const { return total_[static_cast<size_t>(visit.place)]; }

 private:
  std::vector<uint64_t> total_;  // Q60
};

/// The traversal of a visit by tiles: all voxels at a node go through it together, left subtree
/// first. `NodeTest`: ask(node, visits) gives a Split for each visit; `Leaf` takes what ends.
template <class NodeTest, class Leaf>
class TileTraversal {
 public:
  TileTraversal(NodeTest& test, Leaf& leaf) : test_(test), leaf_(leaf) {}

  /// Leads the visits of the root, which is no leaf, through a tree of so many levels.
  void run(const std::vector<tree::FlatNode>& nodes, int depth, const Visits& root) {
    left_.resize(std::max(left_.size(), static_cast<size_t>(depth) + 1));
    right_.resize(left_.size());
    descend(nodes.data(), nodes[0], 0, root);
  }

 private:
  void descend(const tree::FlatNode* nodes, const tree::FlatNode node, size_t depth,
               const Visits& visits) {
    const auto splits = test_.ask(node, visits);
    Visits &to_left = left_[depth], &to_right = right_[depth];
    to_left.clear();
    to_right.clear();
    for (const Visit& visit : visits) {
      const tree::Shares shares = tree::shares_of(node, splits(visit));
      leaf_(visit, node, shares);
      if (shares.left > 0) to_left.push_back({visit.place, shares.left});
      if (shares.right > 0) to_right.push_back({visit.place, shares.right});
    }
    if (!to_left.empty()) descend(nodes, nodes[node.left], depth + 1, to_left);
    if (!to_right.empty()) descend(nodes, nodes[node.right], depth + 1, to_right);
  }

  NodeTest& test_;
  Leaf& leaf_;
  std::vector<Visits> left_, right_;  // [depth]
};

/// The posteriors of one tile after the other.
class TileWalker {
 public:
  TileWalker(const CpuPlan& plan, const EvaluateJob& job)
      : plan_(plan), job_(job), places_(plan, job), test_(job, places_), traversal_(test_, leaf_) {}

  void run(const Vec3i& corner) {
    places_.enter(corner);
    const Visits& root = places_.root();
    if (root.empty()) return;
    if (plan_.trees.size() == 1) {
      lead_through(plan_.trees[0]);
      for (size_t i = 0; i < root.size(); ++i) {
        store_probability(job_, places_.voxel(i), posterior(plan_.trees[0], root[i]));
      }
      return;
    }
    sum_.assign(root.size(), 0);
    for (const TreePlan& tree : plan_.trees) {
      lead_through(tree);
      for (size_t i = 0; i < root.size(); ++i) {
        sum_[i] += tree::ensemble_term(posterior(tree, root[i]));
      }
    }
    for (size_t i = 0; i < root.size(); ++i) {
      store_probability(job_, places_.voxel(i),
                        tree::ensemble_mean_q60(sum_[i], plan_.trees.size()));
    }
  }

 private:
  void lead_through(const TreePlan& tree) {
    if (tree.flat.is_leaf()) return;
    leaf_.clear(places_.root(), places_.place_count());
    test_.set_tree(tree);
    traversal_.run(tree.flat.nodes, tree.flat.depth, places_.root());
  }
  /// Of the tree that the voxels were led through last, Q60.
  uint64_t posterior(const TreePlan& tree, const Visit& visit) const {
    if (tree.flat.is_leaf()) return static_cast<uint64_t>(tree::kOneQ30) * tree.flat.root_q;
    return leaf_.of(visit);
  }

  const CpuPlan& plan_;
  const EvaluateJob& job_;
  TilePlaces places_;
  TileStrongTest test_;
  TileProbabilityLeaf leaf_;
  TileTraversal<TileStrongTest, TileProbabilityLeaf> traversal_;
  std::vector<uint64_t> sum_;  // of an ensemble's trees, by visit of the root
};

Vec3i tile_counts(const Vec3i& size) {
  const auto count = [](int length, int step) { return (length + step - 1) / step; };
  return {count(size.x, kTile.x), count(size.y, kTile.y), count(size.z, kTile.z)};
}

}  // namespace

void tile_walk(const EvaluateJob& job, const Context& context) {
  const CpuPlan& plan = plan_of(job.plan);
  const Vec3i tiles = tile_counts(job.size);
  const int64_t all = static_cast<int64_t>(tiles.x) * tiles.y * tiles.z;
  parallel_for(context.threads, all, fair_grain(context.threads, all, 8),
               [&](int64_t begin, int64_t end) {
                 TileWalker walker(plan, job);
                 for (int64_t t = begin; t < end; ++t) {
                   walker.run({static_cast<int32_t>(t % tiles.x) * kTile.x,
                               static_cast<int32_t>(t / tiles.x % tiles.y) * kTile.y,
                               static_cast<int32_t>(t / tiles.x / tiles.y) * kTile.z});
                 }
               });
}

}  // namespace larch::pbt::cpu
