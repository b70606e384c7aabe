// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/mine.h"

#include <algorithm>
#include <string>
#include <utility>

#include "larch/core/random_math.h"
#include "larch/learning/lowest_hash.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/train/ensemble.h"
#include "larch/tree/train/route.h"

namespace larch::pbt {
namespace {

constexpr uint64_t kMineStream = 0x6d696e65;  // "mine"

/// Finds the false positives that arrive at the nodes of a level.
class LevelMiner {
 public:
  LevelMiner(const Material& material, const tree::Frontier& frontier, uint64_t seed,
             const Context& context)
      : m_(material),
        frontier_(frontier),
        seed_(seed),
        context_(context),
        kept_(frontier.open.size(), learning::LowestHashes<uint64_t>(
                                        static_cast<size_t>(material.config.mining.per_node))) {}

  /// A voxel that the tree so far takes for the class, in the order of volumes and voxels.
  void add(size_t volume, int64_t voxel) {
    waiting_.add(volume, voxel, false, 0);
    ++found_;
    if (waiting_.size() >= static_cast<size_t>(kMinedAtOnce)) route();
  }

  /// Follows those that wait to their nodes.
  void route() {
    if (waiting_.size() == 0) return;
    features::LinearSource source = m_.source;
    source.place(place_samples(waiting_, m_.volumes, m_.images));
    const auto at =
        tree::arrivals(frontier_.tree, source, waiting_.size(), frontier_.first_node, context_);
    for (size_t k = 0; k < kept_.size(); ++k) {
      if (frontier_.open[k] == 0) continue;
      const size_t n = frontier_.first_node + k;
      const uint64_t heap_index = frontier_.tree.nodes[n].heap_index;
      for (const uint32_t i : at[n]) {
        kept_[k].add(hash64(seed_ ^ kMineStream, heap_index, waiting_.id[i]), waiting_.id[i]);
      }
    }
    waiting_ = {};
  }

  size_t found() const { return found_; }
  /// Of node first_node + k.
  learning::LowestHashes<uint64_t>& at(size_t k) { return kept_[k]; }

 private:
  const Material& m_;
  const tree::Frontier& frontier_;
  uint64_t seed_;
  const Context& context_;
  SampleSet waiting_;
  size_t found_ = 0;
  std::vector<learning::LowestHashes<uint64_t>> kept_;
};

/// The tree as far as it is finished: nodes of the frontier are leaves, whatever a checkpoint
/// knows.
Model finished_part(const tree::Frontier& frontier, const Material& m, const Model& start) {
  tree::Ensemble finished = frontier.tree;
  finished.nodes.resize(frontier.first_node + frontier.open.size());
  for (size_t n = frontier.first_node; n < finished.nodes.size(); ++n) {
    finished.nodes[n].left = finished.nodes[n].right = -1;
  }
  return model_of(finished, start, m.pool);
}

/// Negative voxels of the volumes the tree is trained on that it gives more than one half so far. A
/// volume that an ensemble's tree drew several times is searched once: its mined voxels share the
/// mass of the negatives they replace anyway.
void find_false_positives(const Material& m, const Model& so_far,
                          const std::vector<uint32_t>& occurrences, LevelMiner& miner,
                          const Context& context) {
  std::vector<uint8_t> trained_on(m.volumes.size(), 0);
  for (size_t i = 0; i < m.samples.size(); ++i) trained_on[m.samples.volume(i)] = 1;
  for (size_t v = 0; v < m.volumes.size(); ++v) {
    const bool drawn = occurrences.empty() || occurrences[v] > 0;
    if (trained_on[v] == 0 || !drawn) continue;
    const TrainingVolume& volume = m.volumes[v];
    const image::IntegralSet set =
        image::integral_set(volume.voxels.view(), so_far.channels, so_far.padding,
                            std::max(so_far.reach(), 1), context);
    const Volume<float> p = evaluate<float>(so_far, set, volume.voxels.grid(), {}, context);
    for (int64_t i = 0; i < p.voxels(); ++i) {
      if (p[i] > 0.5F && volume.classes[i] == static_cast<uint8_t>(VoxelClass::kNegative)) {
        miner.add(v, i);
      }
    }
  }
  miner.route();
}

}  // namespace

tree::Miner make_miner(Material& m, const Model& start, const std::vector<uint32_t>& occurrences,
                       uint64_t seed, const Context& context) {
  return [&m, &start, &occurrences, seed, &context](const tree::Frontier& frontier) {
    std::vector<tree::MinedSamples> mined(frontier.open.size());
    LevelMiner miner(m, frontier, seed, context);
    find_false_positives(m, finished_part(frontier, m, start), occurrences, miner, context);
    if (miner.found() == 0) return mined;
    size_t all = 0;
    for (size_t k = 0; k < mined.size(); ++k) {
      const auto fewest = static_cast<size_t>(m.config.tree.min_class_samples);
      if (frontier.open[k] == 0 || miner.at(k).seen() < fewest) continue;
      mined[k].first = static_cast<uint32_t>(m.samples.size());
      for (const uint64_t id : miner.at(k).take()) {
        m.samples.id.push_back(id);
        m.samples.positive.push_back(0);
        m.samples.mass.push_back(0);
      }
      mined[k].count = static_cast<uint32_t>(m.samples.size()) - mined[k].first;
      all += mined[k].count;
    }
    m.source.place(place_samples(m.samples, m.volumes, m.images));
    context.info("mined " + std::to_string(all) + " negatives of " + std::to_string(miner.found()) +
                 " false positives");
    return mined;
  };
}

}  // namespace larch::pbt
