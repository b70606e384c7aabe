// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <vector>

#include "larch/pbt/evaluate/tile_places.h"

namespace larch::pbt::cpu {

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
  TileStrongTest(const EvaluateJob& job, TilePlaces& places)
      : places_(places), kernels_(features::cpu::lane_kernels()), integral_(job.integral) {}

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
      for (int32_t w = node.first; w < end; ++w) {
        if (level_of(w) == static_cast<int32_t>(k)) ask_rows(w, level);
      }
      for (const Visit& visit : visits) {
        const auto place = static_cast<size_t>(visit.place);
        h[place] += level.sum[static_cast<size_t>(level.place_of[place])];
      }
    }
    if (!places_.levels[0].narrow) ask_finest(node.first, end);
    return {h.data(), tree_->flat.logistic.data(), tree_->flat.thresholds};
  }

 private:
  size_t channel_of(int32_t weak) const {
    return static_cast<size_t>(tree_->channels[static_cast<size_t>(weak)]);
  }
  /// Index of the level that a weak classifier reads.
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

  void ask_rows(int32_t weak, TileLevel& level) {
    kernels_.vote_rows(tree_->rules[static_cast<size_t>(weak)], integral_,
                       places_.bases(channel_of(weak)).data(), level.slots, level.sum.data());
  }

  /// Level 0 by rows.
  void ask_finest(int32_t begin, int32_t end) {
    for (int32_t w = begin; w < end; ++w) {
      if (level_of(w) == 0) ask_rows(w, places_.levels[0]);
    }
  }

  /// The weak classifiers of all narrow levels.
  void ask_points(int32_t begin, int32_t end, const Visits& visits) {
    if (std::none_of(places_.levels.begin(), places_.levels.end(),
                     [](const TileLevel& level) { return level.narrow; })) {
      return;
    }
    point_sum_.assign(visits.size(), 0);
    int32_t channel = -1;
    for (int32_t w = begin; w < end; ++w) {
      const int32_t k = level_of(w);
      if (!places_.levels[static_cast<size_t>(k)].narrow) continue;
      if (tree_->channels[static_cast<size_t>(w)] != channel) {
        channel = tree_->channels[static_cast<size_t>(w)];
        point_base_.clear();
        for (const Visit& visit : visits) {
          point_base_.push_back(
              places_.element(static_cast<size_t>(channel), static_cast<size_t>(visit.place)));
        }
      }
      kernels_.vote_points(tree_->rules[static_cast<size_t>(w)], integral_, point_base_,
                           point_sum_.data());
    }
    for (size_t i = 0; i < visits.size(); ++i) {
      places_.levels[0].sum[static_cast<size_t>(visits[i].place)] += point_sum_[i];
    }
  }

  TilePlaces& places_;
  const features::cpu::LaneKernels& kernels_;
  const uint32_t* integral_;
  const TreePlan* tree_ = nullptr;
  std::vector<int64_t> point_base_;
  std::vector<uint32_t> point_sum_;
};

}  // namespace larch::pbt::cpu
