// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/trees.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/pbt/train/ensemble.h"
#include "larch/pbt/train/mine.h"
#include "larch/tree/train/grow.h"
#include "larch/tree/train/samples.h"
#include "larch/tree/train/score.h"

namespace larch::pbt {
namespace {

/// Voxels that the samples of either class stand for, if volume v counts occurrences[v] times.
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
    std::vector<double> posterior;
    tree::prune(grown.tree, grown.visits, m.held_out, &posterior);
  }
  if (m.samples.size() > drawn) {  // mined ones are this tree's
    m.samples.truncate(drawn);
    m.source.place(place_samples(m.samples, m.volumes, m.images));
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

/// How often each volume counts for a tree: the first draw in which both classes occur.
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
  if (total({}) >= kMaximum) {
    throw InputError("the training volumes have more than 2^32 voxels; use fewer or coarser ones");
  }
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
