// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/trees.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/learning/lowest_hash.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/model.h"
#include "larch/tree/train/grow.h"
#include "larch/tree/train/route.h"
#include "larch/tree/train/samples.h"
#include "larch/tree/train/score.h"

namespace larch::pbt {
namespace {

/// False positives that wait for a common walk to their nodes at most.
constexpr int64_t kMinedAtOnce = int64_t{1} << 20;

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

  /// Before the voxels of a volume. Those that wait are of one portion of the images.
  void enter(size_t volume) {
    if (waiting_.size() > 0 && m_.images.portion[waiting_.volume(0)] != m_.images.portion[volume]) {
      route();
    }
  }
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
    source.place(place_samples(waiting_, m_.images));
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
  std::vector<uint8_t> trained_on(m.images.volumes.size(), 0);
  for (size_t i = 0; i < m.samples.size(); ++i) trained_on[m.samples.volume(i)] = 1;
  const ResidentModel resident(so_far, context.device);
  for (size_t v = 0; v < m.images.volumes.size(); ++v) {
    const bool drawn = occurrences.empty() || occurrences[v] > 0;
    if (trained_on[v] == 0 || !drawn) continue;
    const auto volume = m.images.volumes[v].fetch();
    miner.enter(v);
    const Volume<float> p =
        evaluate_volume(resident, volume->components(), {}, m.images.bytes_left, context);
    for (int64_t i = 0; i < p.voxels(); ++i) {
      if (p[i] > 0.5F && volume->classes[i] == static_cast<uint8_t>(VoxelClass::kNegative)) {
        miner.add(v, i);
      }
    }
  }
  miner.route();
}

/// Mines voxels that the tree so far takes for the class, from the volumes that the tree is trained
/// on: of each node those of lowest hash. `occurrences`: how often each volume counts, or empty;
/// `seed`: of the tree. What it refers to outlives the miner.
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
      for (const uint64_t id : miner.at(k).take()) m.samples.add(id, false, 0);
      mined[k].count = static_cast<uint32_t>(m.samples.size()) - mined[k].first;
      all += mined[k].count;
    }
    m.source.place(place_samples(m.samples, m.images));
    context.info("mined " + std::to_string(all) + " negatives of " + std::to_string(miner.found()) +
                 " false positives");
    return mined;
  };
}

/// Returns voxels that the samples of either class stand for, if volume v counts occurrences[v]
/// times.
std::array<double, 2> class_voxels(const SampleSet& samples,
                                   const std::vector<uint32_t>& occurrences) {
  std::array<double, 2> voxels{0, 0};
  for (size_t i = 0; i < samples.size(); ++i) {
    const double times = occurrences.empty() ? 1.0 : occurrences[samples.volume(i)];
    voxels[samples.positive[i]] += times * static_cast<double>(samples.mass[i]) * 0x1.0p-32;
  }
  return voxels;
}

/// What tree `t` of an ensemble draws for itself: a seed, volumes and features.
void draw_for_tree(tree::GrowTask& task, const Material& m, size_t t, const Context& context) {
  const EnsembleConfig& ensemble = m.config.ensemble;
  const auto trees = static_cast<double>(ensemble.trees);
  task.seed = tree::tree_seed(context.seed, t);
  task.name = " of tree " + std::to_string(t + 1);
  task.progress_begin = static_cast<double>(t) / trees;
  task.progress_share = 1 / trees;
  if (ensemble.bootstrap) {
    for (size_t i = 0; i < m.samples.size(); ++i) {
      task.times.push_back(m.occurrences[t][m.samples.volume(i)]);
    }
  }
  const double wanted = std::ceil(ensemble.feature_share * static_cast<double>(m.pool.size()));
  task.columns = tree::draw_columns({}, m.pool.size(), static_cast<size_t>(wanted), task.seed, 0);
  context.info("tree " + std::to_string(t + 1) + " of " + std::to_string(ensemble.trees));
}

/// Grows the tree that follows those of `before`. `resume`: how far it has grown, or null.
Model grow_tree(Material& m, const Model& start, const Model& before,
                const tree::PartialTree* resume, const TrainHooks& hooks, learning::Pace& pace,
                const Context& context) {
  const size_t drawn = m.samples.size();
  const size_t t = before.nodes.empty() ? 0 : before.trees();
  tree::GrowTask task{m.config.tree,
                      m.config.validation,
                      {m.source, m.samples},
                      {m.held_out_source, m.held_out},
                      m.maps};
  task.seed = context.seed;
  task.samples_at_once = hooks.samples_at_once;
  if (m.config.memory_bytes > 0 && task.samples_at_once == 0) {
    task.samples_at_once = samples_at_once(m.pool.size(), m.images.bytes_left, context.device);
  }
  task.resume = resume;
  if (m.config.classifier == ClassifierKind::kEnsemble) draw_for_tree(task, m, t, context);
  static const std::vector<uint32_t> kOnce;
  const std::vector<uint32_t>& occurrences = m.occurrences.empty() ? kOnce : m.occurrences[t];
  if (m.config.mining.enabled) task.mine = make_miner(m, start, occurrences, task.seed, context);
  if (hooks.after_step) {
    task.after_node = [&](const tree::PartialTree& partial) {
      if (!pace.due(context)) return;
      PartialModel all{before, before.nodes.size() + partial.finished};
      append_tree(all.model, model_of(partial.tree, start, m.pool));
      hooks.after_step(all);
    };
  }
  tree::GrownTree grown = tree::grow(start, task, context);
  if (m.held_out.size() > 0 && m.config.validation.prune) {
    tree::prune(grown.tree, grown.visits, m.held_out);
  }
  if (m.samples.size() > drawn) {  // mined ones are this tree's
    m.samples.truncate(drawn);
    m.source.place(place_samples(m.samples, m.images));
  }
  return model_of(grown.tree, start, m.pool);
}

/// A checkpoint's finished trees go to `model`; the last one, with how far it has grown, is
/// returned.
tree::PartialTree resume_from(const PartialModel& checkpoint, const Material& m, Model& model) {
  const Model& old = checkpoint.model;
  bool fits = old.trees() <= m.trees() && checkpoint.finished >= old.roots.back();
  for (const auto& feature : old.features) fits = fits && feature.pool_index < m.pool.size();
  if (!fits) tree::throw_foreign_checkpoint();
  for (size_t t = 0; t + 1 < old.trees(); ++t) append_tree(model, extract_tree(old, t));
  return {grown_of(extract_tree(old, old.trees() - 1)), checkpoint.finished - old.roots.back()};
}

/// Returns how often each volume counts for a tree: the first draw in which both classes occur.
std::vector<uint32_t> draw_volumes(std::span<const size_t> train_volumes, size_t all_volumes,
                                   const SampleSet& samples, bool allow_constant, uint64_t seed) {
  constexpr uint64_t kAttempts = 1000;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<uint32_t> occurrences(all_volumes, 0);
    const auto times = tree::bootstrap_counts(train_volumes.size(), seed, attempt);
    for (size_t v = 0; v < times.size(); ++v) occurrences[train_volumes[v]] = times[v];
    const auto voxels = class_voxels(samples, occurrences);
    if ((voxels[0] > 0 && voxels[1] > 0) || allow_constant) return occurrences;
  }
  throw InputError(
      "a thousand draws of the training volumes did not give both classes; set "
      "ensemble/bootstrap to false");
}

}  // namespace

size_t Material::trees() const {
  return config.classifier == ClassifierKind::kEnsemble ? static_cast<size_t>(config.ensemble.trees)
                                                        : 1;
}

std::vector<std::vector<uint32_t>> draw_volumes_of_trees(std::span<const size_t> train_volumes,
                                                         size_t all_volumes,
                                                         const SampleSet& samples,
                                                         const TrainConfig& config, uint64_t seed) {
  constexpr double kMaximum = 4294967296.0;  // the sum of the masses, Q32, has to fit 64 bits
  const auto total = [&](const std::vector<uint32_t>& occurrences) {
    const auto voxels = class_voxels(samples, occurrences);
    return voxels[0] + voxels[1];
  };
  std::vector<std::vector<uint32_t>> drawn;
  if (config.classifier != ClassifierKind::kEnsemble || !config.ensemble.bootstrap) return drawn;
  for (size_t t = 0; t < static_cast<size_t>(config.ensemble.trees); ++t) {
    drawn.push_back(draw_volumes(train_volumes, all_volumes, samples, config.tree.allow_constant,
                                 tree::tree_seed(seed, t)));
    if (total(drawn.back()) < kMaximum) continue;
    throw InputError("the volumes that tree " + std::to_string(t + 1) +
                     " draws have more than 2^32 voxels, those counted again that it draws again; "
                     "use fewer or coarser volumes, or set ensemble/bootstrap to false");
  }
  return drawn;
}

Model grow_trees(Material& m, const Model& start, const TrainHooks& hooks, const Context& context) {
  Model model;
  tree::PartialTree growing;
  const tree::PartialTree* resume = nullptr;
  if (hooks.resume != nullptr) {
    growing = resume_from(*hooks.resume, m, model);
    resume = &growing;
  }
  learning::Pace pace(hooks.seconds);
  while (model.nodes.empty() || model.trees() < m.trees()) {
    append_tree(model, grow_tree(m, start, model, resume, hooks, pace, context));
    resume = nullptr;
  }
  return model;
}

}  // namespace larch::pbt
