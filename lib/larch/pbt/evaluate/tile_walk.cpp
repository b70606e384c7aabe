// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/tile_walk.h"

#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/features/lane_kernels.h"

namespace larch::pbt::cpu {
namespace {

using features::cpu::kLanes;
using features::cpu::lane_kernels;
using features::cpu::LaneKernels;
using features::cpu::VoteRule;

/// How often early rejection is tested inside a node.
constexpr int kRejectionPeriod = 8;

/// The voxels of a tile at one pyramid level. They lie in slots of kLanes neighbours along x; place
/// kLanes * slot + lane of every array below is one voxel. The last slot of a row is moved back
/// when it would leave the image, so that reading a whole slot never leaves the integral volume.
struct TileLevel {
  int level = 0;
  bool narrow = false;  ///< the image is narrower than a slot: voxels are read one by one
  Vec3i lo{}, size{}, image{};
  int slots_in_row = 0;
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
  /// First x of a slot of a row.
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

/// A tree and its weak classifiers for the loops.
struct TreePlan {
  TreeView tree;
  std::vector<VoteRule> rules;  ///< one a weak classifier

  explicit TreePlan(const CompiledTree& compiled) : tree(compiled.view()) {
    for (const WeakRecord& weak : compiled.weaks) {
      rules.push_back({tree.taps + weak.first_tap, weak.n_tap,
                       2 * static_cast<uint32_t>(weak.alpha), weak.codes, weak.bins, weak.mask});
    }
  }
};

/// The trees, and where their channels lie in a tile. The same for all tiles.
struct WalkPlan {
  const EvaluateJob& job;
  const LaneKernels& kernels;
  std::vector<TreePlan> trees;
  std::vector<int> levels;            ///< distinct pyramid levels; the first is 0
  std::vector<size_t> channel_level;  ///< index in `levels` of each channel

  explicit WalkPlan(const EvaluateJob& evaluate_job)
      : job(evaluate_job),
        kernels(lane_kernels()),
        trees(job.trees.begin(), job.trees.end()),
        levels{0} {
    for (int c = 0; c < job.channel_count; ++c) {
      const auto at = std::find(levels.begin(), levels.end(), job.layouts[c].level);
      channel_level.push_back(static_cast<size_t>(at - levels.begin()));
      if (at == levels.end()) levels.push_back(job.layouts[c].level);
    }
  }
};

/// The voxels of one tile on their way through the trees.
class TileWalker {
 public:
  explicit TileWalker(const WalkPlan& plan)
      : plan_(plan),
        job_(plan.job),
        levels_(plan.levels.size()),
        bases_(plan.channel_level.size()) {
    for (const TreePlan& tree : plan.trees) {
      left_.resize(std::max(left_.size(), static_cast<size_t>(tree.tree.depth) + 1));
    }
    right_.resize(left_.size());
    for (size_t k = 0; k < levels_.size(); ++k) {
      levels_[k].level = plan.levels[k];
      levels_[k].image = job_.size;
      for (int l = 0; l < plan.levels[k]; ++l) {
        levels_[k].image = image::pyramid_size(levels_[k].image);
      }
    }
  }

  void run(const Vec3i& corner) {
    const Vec3i end{std::min(corner.x + job_.tile.x, job_.size.x),
                    std::min(corner.y + job_.tile.y, job_.size.y),
                    std::min(corner.z + job_.tile.z, job_.size.z)};
    for (TileLevel& level : levels_) level.set(corner, end);
    for (size_t c = 0; c < bases_.size(); ++c) set_bases(c);
    enter(corner, end);
    if (root_.empty()) return;
    const size_t trees = plan_.trees.size();
    sum_.assign(trees > 1 ? root_.size() : 0, 0);
    for (const TreePlan& tree : plan_.trees) {
      walk(tree);
      for (size_t i = 0; i < sum_.size(); ++i) {
        sum_[i] += tree::ensemble_term(total_[static_cast<size_t>(root_[i].place)]);
      }
    }
    for (size_t i = 0; i < root_.size(); ++i) {
      store_probability(job_, voxels_[i],
                        trees > 1 ? tree::ensemble_mean_q60(sum_[i], trees)
                                  : total_[static_cast<size_t>(root_[i].place)]);
    }
  }

 private:
  /// Sets the totals of the voxels to the posteriors of one tree.
  void walk(const TreePlan& tree) {
    tree_ = tree.tree;
    rules_ = tree.rules.data();
    for (const Visit& visit : root_) total_[static_cast<size_t>(visit.place)] = 0;
    const NodeRecord& root = tree_.nodes[0];
    if (root.left < 0) {
      for (const Visit& visit : root_) add(visit.place, visit.weight, root);
    } else {
      descend(root, 0, root_);
    }
  }
  size_t level_of(int32_t weak) const { return plan_.channel_level[tree_.weaks[weak].channel]; }

  /// Integral element of the first voxel of each slot.
  void set_bases(size_t channel) {
    const image::IntegralLayout& layout = job_.layouts[channel];
    const TileLevel& level = levels_[plan_.channel_level[channel]];
    std::vector<int64_t>& base = bases_[channel];
    base.clear();
    for (int z = 0; z < level.size.z; ++z) {
      for (int y = 0; y < level.size.y; ++y) {
        for (int s = 0; s < level.slots_in_row; ++s) {
          base.push_back(
              layout.offset + level.slot_x(s) + layout.pad +
              static_cast<int64_t>(layout.stride_size.x) *
                  (level.lo.y + y + layout.pad +
                   static_cast<int64_t>(layout.stride_size.y) * (level.lo.z + z + layout.pad)));
        }
      }
    }
  }

  /// Lists the voxels of the tile that lie in the region of interest.
  void enter(const Vec3i& corner, const Vec3i& end) {
    root_.clear();
    voxels_.clear();
    for (TileLevel& level : levels_) level.place_of.resize(levels_[0].sum.size());
    total_.resize(levels_[0].sum.size());
    for (int z = corner.z; z < end.z; ++z) {
      for (int y = corner.y; y < end.y; ++y) {
        for (int x = corner.x; x < end.x; ++x) {
          const int64_t i =
              x + static_cast<int64_t>(job_.size.x) * (y + static_cast<int64_t>(job_.size.y) * z);
          if (job_.roi != nullptr && job_.roi[i] == 0) {
            store_probability(job_, i, 0);
            continue;
          }
          const int32_t place = levels_[0].place(x, y, z);
          voxels_.push_back(i);
          root_.push_back({place, kOneQ30});
          for (TileLevel& level : levels_) {
            level.place_of[static_cast<size_t>(place)] =
                level.place(x >> level.level, y >> level.level, z >> level.level);
          }
        }
      }
    }
  }

  void add(int32_t place, uint32_t weight, const NodeRecord& node) {
    total_[static_cast<size_t>(place)] += static_cast<uint64_t>(weight) * node.q;
  }

  /// Leads the voxels through an inner node and the subtrees below it, left before right.
  void descend(const NodeRecord& node, size_t depth, const Visits& visits) {
    strong_classifier(node, visits);
    const NodeRecord &left = tree_.nodes[node.left], &right = tree_.nodes[node.right];
    const bool ends_left = left.left < 0, ends_right = right.left < 0;
    Visits &to_left = left_[depth], &to_right = right_[depth];
    to_left.clear();
    to_right.clear();
    const uint32_t* h = levels_[0].sum.data();
    for (const Visit& visit : visits) {
      const Split s = split_weight(visit.weight, static_cast<int32_t>(h[visit.place]),
                                   tree_.thresholds, tree_.logistic);
      add(visit.place, s.stop_left + (ends_left ? s.descend_left : 0), left);
      add(visit.place, s.stop_right + (ends_right ? s.descend_right : 0), right);
      if (!ends_left && s.descend_left > 0) to_left.push_back({visit.place, s.descend_left});
      if (!ends_right && s.descend_right > 0) to_right.push_back({visit.place, s.descend_right});
    }
    if (!to_left.empty()) descend(left, depth + 1, to_left);
    if (!to_right.empty()) descend(right, depth + 1, to_right);
  }

  /// Sets H of the node for the visiting voxels. Levels come in any order and coarse voxels are
  /// asked once for all the voxels they stand for: integer sums do not depend on it.
  void strong_classifier(const NodeRecord& node, const Visits& visits) {
    list_slots(visits);
    std::vector<uint32_t>& h = levels_[0].sum;
    for (const Visit& visit : visits) {
      h[static_cast<size_t>(visit.place)] = 0u - static_cast<uint32_t>(node.alpha_sum);
    }
    const int32_t end = node.first_weak + node.n_weak;
    ask_points(node.first_weak, end, visits);
    for (size_t k = 1; k < levels_.size(); ++k) {
      TileLevel& level = levels_[k];
      if (level.narrow) continue;
      for (const int32_t slot : level.slots) {
        std::fill_n(&level.sum[static_cast<size_t>(slot) * kLanes], kLanes, 0u);
      }
      for (int32_t w = node.first_weak; w < end; ++w) {
        if (level_of(w) == k) ask_rows(w, level);
      }
      for (const Visit& visit : visits) {
        const auto place = static_cast<size_t>(visit.place);
        h[place] += level.sum[static_cast<size_t>(level.place_of[place])];
      }
    }
    if (!levels_[0].narrow) ask_finest(node.first_weak, end, visits);
  }

  /// The slots that the visiting voxels read at each level. Reading a whole slot was measured to
  /// cost no more than one voxel by itself, so that slots pay however few voxels are left in them.
  void list_slots(const Visits& visits) {
    for (size_t k = 0; k < levels_.size(); ++k) {
      TileLevel& level = levels_[k];
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

  void ask_rows(int32_t weak, TileLevel& level) {
    plan_.kernels.vote_rows(rules_[weak], job_.integral, bases_[tree_.weaks[weak].channel].data(),
                            level.slots, level.sum.data());
  }

  /// Level 0 by rows. With early rejection, slots leave when every visiting voxel in them is
  /// certain; what they lack of H cannot bring it back across the threshold.
  void ask_finest(int32_t begin, int32_t end, const Visits& visits) {
    uint32_t rest = 0;
    for (int32_t w = begin; w < end; ++w) {
      if (level_of(w) == 0) rest += static_cast<uint32_t>(tree_.weaks[w].alpha);
    }
    int asked = 0;
    for (int32_t w = begin; w < end; ++w) {
      if (level_of(w) != 0) continue;
      ask_rows(w, levels_[0]);
      rest -= static_cast<uint32_t>(tree_.weaks[w].alpha);
      if (tree_.early_rejection && ++asked % kRejectionPeriod == 0) {
        drop_certain(static_cast<int32_t>(rest), visits);
        if (levels_[0].slots.empty()) return;
      }
    }
  }

  void drop_certain(int32_t rest, const Visits& visits) {
    TileLevel& level = levels_[0];
    for (const Visit& visit : visits) {
      // The classifiers to come are counted as -1 so far.
      const auto partial = static_cast<int32_t>(level.sum[static_cast<size_t>(visit.place)] +
                                                static_cast<uint32_t>(rest));
      if (!is_certain(partial, rest, tree_.thresholds)) {
        level.listed[static_cast<size_t>(visit.place / kLanes)] = 1;
      }
    }
    std::erase_if(level.slots,
                  [&](int32_t slot) { return level.listed[static_cast<size_t>(slot)] == 0; });
    for (const int32_t slot : level.slots) level.listed[static_cast<size_t>(slot)] = 0;
  }

  /// The weak classifiers of all narrow levels.
  void ask_points(int32_t begin, int32_t end, const Visits& visits) {
    if (std::none_of(levels_.begin(), levels_.end(),
                     [](const TileLevel& level) { return level.narrow; })) {
      return;
    }
    point_sum_.assign(visits.size(), 0);
    int32_t channel = -1;
    for (int32_t w = begin; w < end; ++w) {
      const size_t k = level_of(w);
      if (!levels_[k].narrow) continue;
      if (tree_.weaks[w].channel != channel) {
        channel = tree_.weaks[w].channel;
        point_base_.clear();
        for (const Visit& visit : visits) {
          const int32_t place = levels_[k].place_of[static_cast<size_t>(visit.place)];
          point_base_.push_back(
              bases_[static_cast<size_t>(channel)][static_cast<size_t>(place / kLanes)] +
              place % kLanes);
        }
      }
      plan_.kernels.vote_points(rules_[w], job_.integral, point_base_, point_sum_.data());
    }
    for (size_t i = 0; i < visits.size(); ++i) {
      levels_[0].sum[static_cast<size_t>(visits[i].place)] += point_sum_[i];
    }
  }

  const WalkPlan& plan_;
  const EvaluateJob& job_;
  TreeView tree_;                    // the tree at hand
  const VoteRule* rules_ = nullptr;  // and its weak classifiers
  std::vector<TileLevel> levels_;
  std::vector<std::vector<int64_t>> bases_;  // [channel][slot]
  std::vector<int64_t> voxels_;              // of the visits of the root
  std::vector<uint64_t> total_;              // of the tree at hand, Q60, by place
  std::vector<uint64_t> sum_;                // of an ensemble's trees, by visit of the root
  Visits root_;
  std::vector<Visits> left_, right_;  // [depth]
  std::vector<int64_t> point_base_;
  std::vector<uint32_t> point_sum_;
};

Vec3i tile_counts(const Vec3i& size, const Vec3i& tile) {
  const auto count = [](int length, int step) { return (length + step - 1) / step; };
  return {count(size.x, tile.x), count(size.y, tile.y), count(size.z, tile.z)};
}

/// The tile if the job names none: its voxels and their surroundings stay in the second level cache
/// for windows of the usual size. Tiles of four times as many voxels were measured to be no faster,
/// and are too few for many threads.
constexpr Vec3i kTile{32, 8, 8};

}  // namespace

void tile_walk(const EvaluateJob& wanted, const Context& context) {
  EvaluateJob job = wanted;
  if (wanted.tile.x == 0) job.tile = kTile;
  const WalkPlan plan(job);
  const Vec3i tiles = tile_counts(job.size, job.tile);
  const int64_t all = static_cast<int64_t>(tiles.x) * tiles.y * tiles.z;
  parallel_for(context.threads, all, std::clamp<int64_t>(all / 64, 1, 8),
               [&](int64_t begin, int64_t end) {
                 TileWalker walker(plan);
                 for (int64_t t = begin; t < end; ++t) {
                   walker.run({static_cast<int32_t>(t % tiles.x) * job.tile.x,
                               static_cast<int32_t>(t / tiles.x % tiles.y) * job.tile.y,
                               static_cast<int32_t>(t / tiles.x / tiles.y) * job.tile.z});
                 }
               });
}

}  // namespace larch::pbt::cpu
