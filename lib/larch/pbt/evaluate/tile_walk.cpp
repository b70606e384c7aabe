// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/features/lane_kernels.h"
#include "larch/pbt/evaluate/cpu_plan.h"

// What a visit by tiles visits: the voxels of a tile that lie in the region of interest, and where
// their slots lie in the integral channels.

namespace larch::pbt::cpu {
namespace {

using features::cpu::kLanes;

/// The voxels of a tile: they and their surroundings stay in the second level cache for windows of
/// the usual size. Tiles of four times as many voxels were measured to be no faster, and are too
/// few for many threads.
constexpr Vec3i kTile{32, 8, 8};

/// The voxels of a tile at one pyramid level. They lie in slots of kLanes neighbours along x; place
/// kLanes * slot + lane of every array below is one voxel. The last slot of a row is moved back
/// when it would leave the image, so that reading a whole slot never leaves the integral volume.
struct TileLevel {
  int level = 0;
  bool narrow = false;  ///< the image is narrower than a slot: voxels are read one by one
  Vec3i lo{}, size{}, image{};
  int slots_in_row = 0;
  std::vector<int64_t> bases;     ///< element of the first voxel of each slot, in a channel
  std::vector<int32_t> place_of;  ///< place at this level of each place at level 0
  std::vector<uint32_t> sum;      ///< of votes; at level 0 it becomes H
  std::vector<int32_t> slots;     ///< those that some active voxel reads
  std::vector<uint8_t> listed;    ///< whether a slot is in `slots`

  void set(const Vec3i& corner, const Vec3i& end) {
    lo = {corner.x >> level, corner.y >> level, corner.z >> level};
    size =
        Vec3i{((end.x - 1) >> level) + 1, ((end.y - 1) >> level) + 1, ((end.z - 1) >> level) + 1} -
        lo;
    slots_in_row = (size.x + kLanes - 1) / kLanes;
    narrow = image.x < kLanes;
    sum.resize(static_cast<size_t>(slot_count()) * kLanes);
    listed.assign(static_cast<size_t>(slot_count()), 0);
  }
  int32_t slot_count() const { return slots_in_row * size.y * size.z; }
  /// Returns the first x of a slot of a row.
  int slot_x(int slot) const {
    const int x = lo.x + slot * kLanes;
    return narrow ? x : std::min(x, image.x - kLanes);
  }
  /// Place of a voxel of this level that lies in the tile.
  int32_t place(int x, int y, int z) const {
    const int slot = (x - lo.x) / kLanes;
    return ((slots_in_row * ((y - lo.y) + size.y * (z - lo.z))) + slot) * kLanes +
           (x - slot_x(slot));
  }
};

/// A voxel at a node, and how much of it is there (Q30).
struct Visit {
  int32_t place = 0;
  uint32_t weight = 0;
};

using Visits = std::vector<Visit>;

/// The voxels of one tile after the other.
class TilePlaces {
 public:
  TilePlaces(const CpuPlan& plan, const EvaluateJob& job);

  /// Goes to the tile that begins at `corner`. Voxels outside of the region of interest get the
  /// probability 0 at once.
  void enter(const Vec3i& corner);

  /// The visits of the root, and the voxel of each.
  const Visits& root() const { return root_; }
  int64_t voxel(size_t visit) const { return voxels_[visit]; }

  std::vector<TileLevel> levels;  ///< as in the plan

 private:
  /// Channels of a level have the same layout, but for their offsets.
  static void set_bases(TileLevel& level, const image::IntegralLayout& layout);

  const CpuPlan& plan_;
  const EvaluateJob& job_;
  std::vector<int64_t> voxels_;
  Visits root_;
};

/// How a node that was asked splits the weight of a visit; valid until the next node is asked.
/// Its pointers are read once for a node, which the loop over the visits needs: what it writes
/// could be any of the containers that they come from.
struct TileSplits {
  const uint32_t* h;  ///< by place
  const uint32_t* logistic;
  tree::Thresholds thresholds;

  tree::Split operator()(const Visit& visit) const {
    return tree::split_weight(visit.weight, static_cast<int32_t>(h[visit.place]), thresholds,
                              logistic);
  }
};

/// The node test of a visit by tiles: the strong classifier of a node at all voxels of the tile
/// that are there, by whole slots of kLanes voxels.
class TileStrongTest {
 public:
  explicit TileStrongTest(TilePlaces& places)
      : places_(places), kernels_(features::cpu::lane_kernels()) {}

  void set_tree(const TreePlan& tree) { tree_ = &tree; }

  /// Computes H of the node for the visiting voxels. Levels come in any order and coarse voxels are
  /// asked once for all the voxels they stand for: integer sums do not depend on it.
  TileSplits ask(const tree::FlatNode& node, const Visits& visits) {
    list_slots(visits);
    std::vector<uint32_t>& h = places_.levels[0].sum;
    for (const Visit& visit : visits) {
      h[static_cast<size_t>(visit.place)] = 0u - static_cast<uint32_t>(node.alpha_sum);
    }
    const int32_t end = node.first + node.n_weak;
    ask_points(node.first, end, visits);
    for (size_t k = 1; k < places_.levels.size(); ++k) {
      TileLevel& level = places_.levels[k];
      if (level.narrow) continue;
      for (const int32_t slot : level.slots) {
        std::fill_n(&level.sum[static_cast<size_t>(slot) * kLanes], kLanes, 0u);
      }
      ask_rows(node.first, end, static_cast<int32_t>(k));
      for (const Visit& visit : visits) {
        const auto place = static_cast<size_t>(visit.place);
        h[place] += level.sum[static_cast<size_t>(level.place_of[place])];
      }
    }
    if (!places_.levels[0].narrow) ask_rows(node.first, end, 0);
    return {h.data(), tree_->view.logistic, tree_->view.thresholds};
  }

 private:
  /// Returns the index of the level that a weak classifier reads.
  int32_t level_of(int32_t weak) const { return tree_->levels[static_cast<size_t>(weak)]; }

  /// The slots that the visiting voxels read at each level. Reading a whole slot was measured to
  /// cost no more than one voxel by itself, so that slots pay however few voxels are left in them.
  void list_slots(const Visits& visits) {
    for (size_t k = 0; k < places_.levels.size(); ++k) {
      TileLevel& level = places_.levels[k];
      level.slots.clear();
      for (const Visit& visit : visits) {
        const int32_t slot = level.place_of[static_cast<size_t>(visit.place)] / kLanes;
        if (level.listed[static_cast<size_t>(slot)]) continue;
        level.listed[static_cast<size_t>(slot)] = 1;
        level.slots.push_back(slot);
      }
      for (const int32_t slot : level.slots) level.listed[static_cast<size_t>(slot)] = 0;
    }
  }

  /// Asks the weak classifiers of a level by rows, a few at a time.
  void ask_rows(int32_t begin, int32_t end, int32_t k) {
    constexpr int32_t kTogether = 4;
    TileLevel& level = places_.levels[static_cast<size_t>(k)];
    for (int32_t w = begin, next = begin; w < end; w = ++next) {
      if (level_of(w) != k) continue;
      while (next + 1 < end && next + 1 < w + kTogether && level_of(next + 1) == k) ++next;
      const std::span all(tree_->rules);
      kernels_.vote_rows(all.subspan(static_cast<size_t>(w), static_cast<size_t>(next + 1 - w)),
                         level.bases.data(), level.slots, level.sum.data());
    }
  }

  /// The weak classifiers of all narrow levels.
  void ask_points(int32_t begin, int32_t end, const Visits& visits) {
    if (std::ranges::none_of(places_.levels, [](const TileLevel& level) { return level.narrow; })) {
      return;
    }
    point_sum_.assign(visits.size(), 0);
    int32_t of_bases = -1;
    for (int32_t w = begin; w < end; ++w) {
      const TileLevel& level = places_.levels[static_cast<size_t>(level_of(w))];
      if (!level.narrow) continue;
      if (level_of(w) != of_bases) {
        of_bases = level_of(w);
        point_base_.clear();
        for (const Visit& visit : visits) {
          const int32_t at = level.place_of[static_cast<size_t>(visit.place)];
          point_base_.push_back(level.bases[static_cast<size_t>(at / kLanes)] + at % kLanes);
        }
      }
      const features::cpu::VoteRule& rule = tree_->rules[static_cast<size_t>(w)];
      kernels_.vote_points(rule, rule.integral, point_base_, point_sum_.data());
    }
    for (size_t i = 0; i < visits.size(); ++i) {
      places_.levels[0].sum[static_cast<size_t>(visits[i].place)] += point_sum_[i];
    }
  }

  TilePlaces& places_;
  const features::cpu::LaneKernels& kernels_;
  const TreePlan* tree_ = nullptr;
  std::vector<int64_t> point_base_;
  std::vector<uint32_t> point_sum_;
};

TilePlaces::TilePlaces(const CpuPlan& plan, const EvaluateJob& job)
    : levels(plan.levels.size()), plan_(plan), job_(job) {
  for (size_t k = 0; k < levels.size(); ++k) {
    levels[k].level = plan.levels[k];
    levels[k].image = job.size;
    for (int l = 0; l < plan.levels[k]; ++l) levels[k].image = image::pyramid_size(levels[k].image);
  }
}

void TilePlaces::enter(const Vec3i& corner) {
  const Vec3i end{std::min(corner.x + kTile.x, job_.size.x),
                  std::min(corner.y + kTile.y, job_.size.y),
                  std::min(corner.z + kTile.z, job_.size.z)};
  for (TileLevel& level : levels) level.set(corner, end);
  for (size_t c = 0; c < job_.layouts.size(); ++c) {
    set_bases(levels[plan_.channel_level[c]], job_.layouts[c]);
  }
  root_.clear();
  voxels_.clear();
  for (TileLevel& level : levels) level.place_of.resize(levels[0].sum.size());
  for (int z = corner.z; z < end.z; ++z) {
    for (int y = corner.y; y < end.y; ++y) {
      for (int x = corner.x; x < end.x; ++x) {
        const int64_t i =
            x + static_cast<int64_t>(job_.size.x) * (y + static_cast<int64_t>(job_.size.y) * z);
        if (job_.roi != nullptr && job_.roi[i] == 0) {
          job_.out[i] = 0;
          continue;
        }
        const int32_t place = levels[0].place(x, y, z);
        voxels_.push_back(i);
        root_.push_back({place, kOneQ30});
        for (TileLevel& level : levels) {
          level.place_of[static_cast<size_t>(place)] =
              level.place(x >> level.level, y >> level.level, z >> level.level);
        }
      }
    }
  }
}

void TilePlaces::set_bases(TileLevel& level, const image::IntegralLayout& layout) {
  level.bases.clear();
  for (int z = 0; z < level.size.z; ++z) {
    for (int y = 0; y < level.size.y; ++y) {
      for (int s = 0; s < level.slots_in_row; ++s) {
        level.bases.push_back(
            layout.element_at_level({level.slot_x(s), level.lo.y + y, level.lo.z + z}) -
            layout.offset);
      }
    }
  }
}

/// The posteriors of one tile after the other.
class TileWalker {
 public:
  TileWalker(const CpuPlan& plan, const EvaluateJob& job)
      : plan_(plan), job_(job), places_(plan, job), test_(places_) {}

  void run(const Vec3i& corner) {
    places_.enter(corner);
    const Visits& root = places_.root();
    if (root.empty()) return;
    const size_t trees = plan_.trees.size();
    sum_.assign(root.size(), 0);
    for (const TreePlan& tree : plan_.trees) {
      total_.resize(places_.levels[0].sum.size());
      for (const Visit& visit : root) total_[static_cast<size_t>(visit.place)] = 0;
      test_.set_tree(tree);
      left_.resize(std::max(left_.size(), static_cast<size_t>(tree.compiled.depth) + 1));
      right_.resize(left_.size());
      descend(tree.compiled.nodes.data(), tree.compiled.nodes[0], 0, root);
      for (size_t i = 0; i < root.size(); ++i) {
        const uint64_t q60 = total_[static_cast<size_t>(root[i].place)];
        sum_[i] += trees == 1 ? q60 : tree::ensemble_term(q60);
      }
    }
    for (size_t i = 0; i < root.size(); ++i) {
      const uint64_t q60 = trees == 1 ? sum_[i] : tree::ensemble_mean_q60(sum_[i], trees);
      job_.out[places_.voxel(i)] = tree::probability_float(q60);
    }
  }

 private:
  /// All voxels at a node go through it together, left subtree first.
  void descend(const tree::FlatNode* nodes, const tree::FlatNode node, size_t depth,
               const Visits& visits) {
    const TileSplits splits = test_.ask(node, visits);
    Visits &to_left = left_[depth], &to_right = right_[depth];
    to_left.clear();
    to_right.clear();
    for (const Visit& visit : visits) {
      const tree::Shares shares = tree::shares_of(node, splits(visit));
      total_[static_cast<size_t>(visit.place)] += tree::ProbabilityLeaf::mixed(node, shares);
      if (shares.left > 0) to_left.push_back({visit.place, shares.left});
      if (shares.right > 0) to_right.push_back({visit.place, shares.right});
    }
    if (!to_left.empty()) descend(nodes, nodes[node.left], depth + 1, to_left);
    if (!to_right.empty()) descend(nodes, nodes[node.right], depth + 1, to_right);
  }

  const CpuPlan& plan_;
  const EvaluateJob& job_;
  TilePlaces places_;
  TileStrongTest test_;
  std::vector<uint64_t> total_;       // of a tree: what has ended, by place, Q60
  std::vector<Visits> left_, right_;  // [depth]
  std::vector<uint64_t> sum_;         // of an ensemble's trees, by visit of the root
};

}  // namespace

void tile_walk(const CpuPlan& plan, const EvaluateJob& job, const Context& context) {
  const Vec3i tiles = parts_in(job.size, kTile);
  const int64_t all = static_cast<int64_t>(tiles.x) * tiles.y * tiles.z;
  parallel_for(context.threads, all, fair_grain(context.threads, all, 8),
               [&](int64_t begin, int64_t end) {
                 TileWalker walker(plan, job);
                 for (int64_t t = begin; t < end; ++t) {
                   const Vec3i at = voxel_of(t, tiles);
                   walker.run({at.x * kTile.x, at.y * kTile.y, at.z * kTile.z});
                 }
               });
}

}  // namespace larch::pbt::cpu
