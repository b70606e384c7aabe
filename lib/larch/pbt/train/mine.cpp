// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/learning/votes.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/train/grow.h"
#include "larch/pbt/train/lowest_hash.h"

namespace larch::pbt {
namespace {

constexpr uint64_t kMineStream = 0x6d696e65;  // "mine"

/// Follows samples down the tree and lists, per node, who arrives there with a positive weight.
std::vector<std::vector<uint32_t>> arrivals(const Growth& g, const SampleSet& samples,
                                            size_t first_node, const Context& context) {
  const Model& model = g.partial.model;
  const Thresholds thresholds = tree::make_thresholds(model.e1, model.e2, false);
  std::vector<std::vector<uint32_t>> at(model.nodes.size());
  for (uint32_t i = 0; i < samples.size(); ++i) at[0].push_back(i);
  for (size_t n = 0; n < first_node; ++n) {
    const Node& node = model.nodes[n];
    if (node.is_leaf() || at[n].empty()) continue;
    const std::vector<int32_t> h = learning::strong_scores(
        g.pool, pool_weaks(model, node), places_of(g.images, samples, at[n]), context);
    for (size_t k = 0; k < at[n].size(); ++k) {
      const Split s = split_weight(kOneQ30, h[k], thresholds, model.logistic.data());
      if (s.descend_left > 0) at[static_cast<size_t>(node.left)].push_back(at[n][k]);
      if (s.descend_right > 0) at[static_cast<size_t>(node.right)].push_back(at[n][k]);
    }
    at[n].clear();
  }
  return at;
}

/// A voxel of a volume, ordered by both.
using Place = std::pair<uint32_t, int64_t>;

/// The false positives that arrive at the nodes of a level: of each node those of lowest hash.
class Miner {
 public:
  Miner(const Growth& g, size_t first_node, const Context& context)
      : g_(g),
        first_node_(first_node),
        context_(context),
        kept_(g.lists.size(), LowestHashes<Place>(static_cast<size_t>(g.config.mining.per_node))) {}

  /// A voxel that the tree so far takes for the class, in the order of volumes and voxels.
  void add(size_t volume, int64_t voxel) {
    waiting_.volume.push_back(static_cast<uint32_t>(volume));
    waiting_.voxel.push_back(voxel);
    waiting_.positive.push_back(0);
    waiting_.mass.push_back(0);
    ++found_;
    if (waiting_.size() >= kAtOnce) route();
  }

  /// Follows those that wait to their nodes.
  void route() {
    if (waiting_.size() == 0) return;
    place_samples(waiting_, g_.volumes, g_.images);
    const auto at = arrivals(g_, waiting_, first_node_, context_);
    for (size_t n = first_node_; n < g_.lists.size(); ++n) {
      if (g_.lists[n].index.empty()) continue;
      const uint64_t heap_index = g_.partial.model.nodes[n].heap_index;
      for (const uint32_t i : at[n]) {
        kept_[n].add(hash64(g_.seed ^ kMineStream, heap_index, waiting_.id(i)),
                     {waiting_.volume[i], waiting_.voxel[i]});
      }
    }
    waiting_ = {};
  }

  size_t found() const { return found_; }
  LowestHashes<Place>& at(size_t node) { return kept_[node]; }

 private:
  static constexpr size_t kAtOnce = size_t{1} << 20;

  const Growth& g_;
  size_t first_node_;
  const Context& context_;
  SampleSet waiting_;
  size_t found_ = 0;
  std::vector<LowestHashes<Place>> kept_;
};

/// Negative voxels of the volumes the tree is trained on that it gives more than one half so far. A
/// volume that an ensemble's tree drew several times is searched once: its mined voxels share the
/// mass of the negatives they replace anyway.
void find_false_positives(const Growth& g, const Model& tree, Miner& miner,
                          const Context& context) {
  for (size_t v = 0; v < g.volumes.size(); ++v) {
    const bool trained_on =
        std::find(g.samples.volume.begin(), g.samples.volume.end(), v) != g.samples.volume.end();
    const bool drawn = g.occurrences.empty() || g.occurrences[v] > 0;
    if (!trained_on || !drawn) continue;
    const TrainingVolume& volume = g.volumes[v];
    const image::IntegralSet set = image::integral_set(
        volume.voxels.view(), tree.channels, tree.padding, std::max(tree.reach(), 1), context);
    const Volume<float> p = evaluate<float>(tree, set, volume.voxels.grid(), {}, context);
    for (int64_t i = 0; i < p.voxels(); ++i) {
      if (p[i] > 0.5F && volume.classes[i] == static_cast<uint8_t>(VoxelClass::kNegative)) {
        miner.add(v, i);
      }
    }
  }
  miner.route();
}

/// Exchanges the negatives of a node for the mined ones, which share their mass exactly.
void replace_negatives(NodeSamples& list, const SampleSet& samples, uint32_t first_mined,
                       size_t mined) {
  NodeSamples kept;
  kept.held_out = std::move(list.held_out);
  uint64_t mass = 0;
  for (size_t k = 0; k < list.index.size(); ++k) {
    if (samples.positive[list.index[k]]) {
      kept.index.push_back(list.index[k]);
      kept.mass.push_back(list.mass[k]);
    } else {
      mass += list.mass[k];
    }
  }
  for (size_t k = 0; k < mined; ++k) {
    const uint64_t share = mass / (mined - k);
    kept.index.push_back(first_mined + static_cast<uint32_t>(k));
    kept.mass.push_back(share);
    mass -= share;
  }
  list = std::move(kept);
}

}  // namespace

void mine_negatives(Growth& g, size_t first_node, const Context& context) {
  // The tree as far as it is finished: nodes of this level are leaves, whatever a checkpoint knows.
  Model tree = g.partial.model;
  tree.nodes.resize(g.lists.size());
  for (size_t n = first_node; n < tree.nodes.size(); ++n) {
    tree.nodes[n].left = tree.nodes[n].right = -1;
  }
  Miner miner(g, first_node, context);
  find_false_positives(g, tree, miner, context);
  if (miner.found() == 0) return;
  size_t mined = 0;
  for (size_t n = first_node; n < g.lists.size(); ++n) {
    const bool open = !g.lists[n].index.empty();
    const size_t arrived = miner.at(n).seen();
    if (!open || arrived < static_cast<size_t>(g.config.tree.min_class_samples)) continue;
    const std::vector<Place> places = miner.at(n).take();
    const auto first = static_cast<uint32_t>(g.samples.size());
    for (const auto& [volume, voxel] : places) {
      g.samples.volume.push_back(volume);
      g.samples.voxel.push_back(voxel);
      g.samples.positive.push_back(0);
      g.samples.mass.push_back(0);
    }
    replace_negatives(g.lists[n], g.samples, first, places.size());
    mined += places.size();
  }
  place_samples(g.samples, g.volumes, g.images);
  context.info("mined " + std::to_string(mined) + " negatives of " + std::to_string(miner.found()) +
               " false positives");
}

}  // namespace larch::pbt
