// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/train.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <numeric>
#include <optional>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/learning/votes.h"
#include "larch/pbt/train/ensemble.h"
#include "larch/pbt/train/grow.h"
#include "larch/pbt/train/lowest_hash.h"
#include "larch/tree/self_test.h"

namespace larch::pbt {
namespace {

/// Samples of lowest hash from which the range of each feature is taken.
constexpr size_t kRangeSamples = 4096;
constexpr uint64_t kRangeStream = 0x72616e6765;  // "range"
constexpr uint64_t kHoldOutStream = 0x686f6c64;  // "hold"

/// Splits the volumes into those to train on and those held out, by the hash of their rank.
std::pair<std::vector<size_t>, std::vector<size_t>> hold_out(size_t count, double fraction,
                                                             uint64_t seed) {
  std::vector<std::pair<uint64_t, size_t>> keyed;
  for (size_t v = 0; v < count; ++v) keyed.emplace_back(hash64(seed, kHoldOutStream, v), v);
  std::sort(keyed.begin(), keyed.end());
  const auto held =
      std::min(count - 1, static_cast<size_t>(std::llround(fraction * static_cast<double>(count))));
  std::vector<size_t> train, out;
  for (size_t k = 0; k < count; ++k) (k < held ? out : train).push_back(keyed[k].second);
  std::sort(train.begin(), train.end());
  std::sort(out.begin(), out.end());
  return {train, out};
}

std::vector<uint32_t> lowest_hash_samples(const SampleSet& samples, size_t count, uint64_t seed,
                                          int threads) {
  std::vector<uint32_t> all(samples.size());
  std::iota(all.begin(), all.end(), 0u);
  return lowest_hashes(all, count, threads,
                       [&](uint32_t i) { return hash64(seed, kRangeStream, samples.id(i)); });
}

void check_classes(const SampleSet& samples, bool allow_constant) {
  const auto positive = static_cast<size_t>(
      std::accumulate(samples.positive.begin(), samples.positive.end(), size_t{0}));
  const size_t negative = samples.size() - positive;
  if (samples.size() == 0 || ((positive == 0 || negative == 0) && !allow_constant)) {
    throw InputError("the training volumes give " + std::to_string(positive) +
                     " samples of the class and " + std::to_string(negative) +
                     " of the background; both are needed: check labels/positive, labels/ignore "
                     "and labels/border_voxels, or set tree/allow_constant");
  }
}

Model new_model(const TrainConfig& config, const image::ModelSpace& space,
                const std::vector<TrainingVolume>& volumes, uint64_t seed) {
  Model model;
  model.channels = channel_specs(config.features);
  model.padding = config.space.padding;
  model.space = space;
  model.e1 = config.tree.e1;
  model.e2 = config.tree.e2;
  model.prior = config.tree.prior;
  model.prior_value = config.tree.prior_value;
  model.smoothing = config.tree.smoothing;
  model.logistic = tree::make_logistic_table();
  model.info.class_name = config.labels.class_name;
  model.info.class_value = config.labels.class_value;
  model.info.seed = seed;
  for (const TrainingVolume& v : volumes) model.info.volume_digests.push_back(v.digest);
  return model;
}

std::vector<features::HaarFeature> make_pool(const TrainConfig& config,
                                             std::span<const image::ChannelSpec> channels,
                                             uint64_t seed) {
  features::HaarPoolSpec spec;
  spec.features = config.features.count;
  spec.window = config.features.window;
  spec.sizes = config.features.sizes;
  spec.channels = static_cast<int>(channels.size());
  spec.seed = seed;
  std::vector<features::HaarFeature> pool = features::make_haar_pool(spec);
  const auto range = image::value_range(config.space.intensity);
  std::vector<int64_t> bounds;
  for (const auto& c : channels) bounds.push_back(channel_bound(c.kind, range[0], range[1]));
  features::check_exact(pool, bounds);
  return pool;
}

/// What all trees of a run are trained from.
struct Material {
  const TrainConfig& config;
  const std::vector<TrainingVolume>& volumes;
  const std::vector<size_t> train_volumes, held_out_volumes;
  const std::vector<features::HaarFeature> haar;
  SampleSet samples{}, held_out{};
  TrainingImages images{};
  learning::FeaturePool pool{};
  /// How often each volume counts for each tree of an ensemble; empty without bootstrap.
  std::vector<std::vector<uint32_t>> occurrences{};

  Growth growth() { return {config, volumes, images, pool, haar, samples, held_out}; }
};

Material gather(const std::vector<TrainingVolume>& volumes, const TrainConfig& config,
                const Context& context) {
  const std::vector<image::ChannelSpec> channels = channel_specs(config.features);
  auto [train, held_out] = hold_out(volumes.size(), config.validation.fraction, context.seed);
  Material m{config, volumes, std::move(train), std::move(held_out),
             make_pool(config, channels, context.seed)};
  int pad = 0;
  for (const auto& feature : m.haar) pad = std::max(pad, features::reach(feature));
  const auto draw = [&](const std::vector<size_t>& which) {
    return draw_samples(volumes, which, config.samples, context.seed, context.threads);
  };
  m.samples = draw(m.train_volumes);
  m.held_out = draw(m.held_out_volumes);
  check_classes(m.samples, config.tree.allow_constant);
  context.info("training on " + std::to_string(m.train_volumes.size()) + " volumes, " +
               std::to_string(m.samples.size()) + " samples, " + std::to_string(m.haar.size()) +
               " features; " + std::to_string(m.held_out_volumes.size()) + " volumes held out");
  m.images = load_training_images(volumes, channels, config.space.padding, pad, context);
  place_samples(m.samples, volumes, m.images);
  place_samples(m.held_out, volumes, m.images);
  m.pool =
      learning::make_feature_pool(m.haar, m.images.common_layouts(), config.tree.tap_cost, context);
  const std::vector<uint32_t> range =
      lowest_hash_samples(m.samples, kRangeSamples, context.seed, context.threads);
  learning::range_pool(m.pool, places_of(m.images, m.samples, range), context);
  return m;
}

/// Voxels that the samples of either class stand for, if volume v counts occurrences[v] times.
std::array<double, 2> class_voxels(const SampleSet& samples,
                                   const std::vector<uint32_t>& occurrences) {
  std::array<double, 2> voxels{0, 0};
  for (size_t i = 0; i < samples.size(); ++i) {
    const double times = occurrences.empty() ? 1.0 : occurrences[samples.volume[i]];
    voxels[samples.positive[i]] += times * static_cast<double>(samples.mass[i]) * 0x1.0p-32;
  }
  return voxels;
}

/// How often each volume counts for a tree: the first draw in which both classes occur.
std::vector<uint32_t> draw_volumes(const Material& m, uint64_t seed) {
  constexpr uint64_t kAttempts = 1000;
  for (uint64_t attempt = 0; attempt < kAttempts; ++attempt) {
    std::vector<uint32_t> occurrences(m.volumes.size(), 0);
    const auto times = bootstrap_counts(m.train_volumes.size(), seed, attempt);
    for (size_t v = 0; v < times.size(); ++v) occurrences[m.train_volumes[v]] = times[v];
    const auto voxels = class_voxels(m.samples, occurrences);
    if ((voxels[0] > 0 && voxels[1] > 0) || m.config.tree.allow_constant) return occurrences;
  }
  throw InputError(
      "a thousand draws of the training volumes did not give both classes; set ensemble/bootstrap "
      "to "
      "false");
}

/// Draws the volumes of all trees, and throws before the training of the first one what a later one
/// would be refused for.
void draw_volumes_of_trees(Material& m, size_t trees, uint64_t seed) {
  constexpr double kMost = 4294967296.0;  // the sum of the masses, Q32, has to fit 64 bits
  const auto total = [&](const std::vector<uint32_t>& occurrences) {
    const auto voxels = class_voxels(m.samples, occurrences);
    return voxels[0] + voxels[1];
  };
  if (total({}) >= kMost) {
    throw InputError("the training volumes have more than 2^32 voxels; use fewer or coarser ones");
  }
  if (m.config.classifier != ClassifierKind::kEnsemble || !m.config.ensemble.bootstrap) return;
  for (size_t t = 0; t < trees; ++t) {
    m.occurrences.push_back(draw_volumes(m, tree_seed(seed, t)));
    if (total(m.occurrences.back()) < kMost) continue;
    throw InputError("the volumes that tree " + std::to_string(t + 1) +
                     " draws have more than 2^32 voxels, those counted again that it draws again; "
                     "use fewer or coarser volumes, or set ensemble/bootstrap to false");
  }
}

/// What tree `t` of an ensemble draws for itself: a seed, volumes and features.
void draw_for_tree(Growth& g, const Material& m, size_t t, uint64_t seed) {
  const EnsembleConfig& ensemble = g.config.ensemble;
  g.seed = tree_seed(seed, t);
  g.of_tree = " of tree " + std::to_string(t + 1);
  if (ensemble.bootstrap) g.occurrences = m.occurrences[t];
  const double wanted = std::ceil(ensemble.feature_share * static_cast<double>(g.haar.size()));
  g.features = draw_features({}, g.haar.size(), static_cast<size_t>(wanted), g.seed, 0);
}

/// When a checkpoint is written: after the first node, and then when so much time has gone by or
/// the run is to stop.
class Pace {
 public:
  explicit Pace(double seconds) : seconds_(seconds) {}
  bool due(const Context& context) {
    const auto now = Clock::now();
    const bool first = !last_.has_value();
    const double since = first ? 0 : std::chrono::duration<double>(now - *last_).count();
    if (!first && since < seconds_ && !context.stop_requested()) return false;
    last_ = now;
    return true;
  }

 private:
  using Clock = std::chrono::steady_clock;
  double seconds_;
  std::optional<Clock::time_point> last_;
};

/// Trains the tree that follows those of `before`. `resume`: how far it has grown, or null.
Model train_tree(Material& m, const Model& start, const Model& before, const PartialModel* resume,
                 const TrainHooks& hooks, Pace& pace, const Context& context) {
  const size_t drawn = m.samples.size();
  const size_t t = before.nodes.empty() ? 0 : before.trees();
  Growth g = m.growth();
  g.seed = context.seed;
  g.partial.model = start;
  if (m.config.classifier == ClassifierKind::kEnsemble) {
    const auto trees = static_cast<double>(m.config.ensemble.trees);
    draw_for_tree(g, m, t, context.seed);
    g.progress_begin = static_cast<double>(t) / trees;
    g.progress_share = 1 / trees;
    context.info("tree " + std::to_string(t + 1) + " of " +
                 std::to_string(m.config.ensemble.trees));
  }
  TrainHooks of_tree;
  of_tree.samples_at_once = hooks.samples_at_once;
  if (hooks.after_node) {
    of_tree.after_node = [&](const PartialModel& partial) {
      if (!pace.due(context)) return;
      PartialModel all{before, before.nodes.size() + partial.finished};
      append_tree(all.model, partial.model);
      hooks.after_node(all);
    };
  }
  make_root(g, resume);
  grow(g, of_tree, context);
  Model tree = std::move(g.partial.model);
  if (m.held_out.size() > 0 && m.config.validation.prune) {
    std::vector<double> posterior;
    prune(tree, g.visits, m.held_out, &posterior);
  }
  if (m.samples.size() > drawn) {  // mined ones are this tree's
    m.samples.volume.resize(drawn);
    m.samples.voxel.resize(drawn);
    m.samples.positive.resize(drawn);
    m.samples.mass.resize(drawn);
    place_samples(m.samples, m.volumes, m.images);
  }
  return tree;
}

/// The held-out score of the finished model: of the mean of its trees.
HeldOutScore held_out_score(Material& m, const Model& model, const Context& context) {
  std::vector<double> mean(m.held_out.size(), 0);
  for (size_t t = 0; t < model.trees(); ++t) {
    Growth g = m.growth();
    g.partial.model = extract_tree(model, t);
    const std::vector<double> posterior = finished_posteriors(g, context);
    for (size_t i = 0; i < mean.size(); ++i) mean[i] += posterior[i];
  }
  for (double& p : mean) p /= static_cast<double>(model.trees());
  return score(mean, m.held_out);
}

/// A checkpoint's finished trees go to `model`; the last one, with how far it has grown, is
/// returned.
PartialModel resume_from(const PartialModel& checkpoint, const Material& m, size_t trees,
                         Model& model) {
  const Model& old = checkpoint.model;
  bool fits = old.trees() <= trees && checkpoint.finished >= old.roots.back();
  for (const auto& feature : old.features) fits = fits && feature.pool_index < m.haar.size();
  if (!fits) throw_foreign_checkpoint();
  for (size_t t = 0; t + 1 < old.trees(); ++t) append_tree(model, extract_tree(old, t));
  return {extract_tree(old, old.trees() - 1), checkpoint.finished - old.roots.back()};
}

void write_report(const Material& m, const Model& model, const HeldOutScore* held_out,
                  TrainReport* report) {
  if (report == nullptr) return;
  report->training_volumes = m.train_volumes.size();
  report->held_out_volumes = m.held_out_volumes.size();
  report->positive_samples = static_cast<size_t>(
      std::accumulate(m.samples.positive.begin(), m.samples.positive.end(), size_t{0}));
  report->negative_samples = m.samples.size() - report->positive_samples;
  report->pool_features = m.haar.size();
  report->trees = model.trees();
  report->nodes = model.nodes.size();
  report->weak_classifiers = model.weaks.size();
  report->pruned_nodes = static_cast<size_t>(
      std::count_if(model.nodes.begin(), model.nodes.end(),
                    [](const Node& node) { return node.reason == NodeReason::kPruned; }));
  if (held_out == nullptr) return;
  report->held_out_log_loss = held_out->log_loss;
  report->held_out_auc = held_out->auc;
}

}  // namespace

std::vector<image::ChannelSpec> channel_specs(const FeatureConfig& config) {
  std::vector<image::ChannelSpec> specs;
  for (const image::ChannelKind kind : config.channels) {
    for (int level = 0; level < config.pyramid_levels; ++level) specs.push_back({kind, level});
  }
  if (specs.empty()) throw UsageError("features/channels: needs at least one channel");
  return specs;
}

void check_config(const TrainConfig& config, uint64_t seed) {
  image::check_rule(config.space.intensity);
  make_pool(config, channel_specs(config.features), seed);
}

Model train(const std::vector<TrainingVolume>& volumes, const image::ModelSpace& space,
            const TrainConfig& config, const TrainHooks& hooks, TrainReport* report,
            const Context& context) {
  if (volumes.empty()) throw InputError("there is no training volume");
  Material m = gather(volumes, config, context);
  const bool ensemble = config.classifier == ClassifierKind::kEnsemble;
  const size_t trees = ensemble ? static_cast<size_t>(config.ensemble.trees) : 1;
  draw_volumes_of_trees(m, trees, context.seed);
  Model start = new_model(config, space, volumes, context.seed);
  start.mean_mass =
      std::accumulate(m.samples.mass.begin(), m.samples.mass.end(), uint64_t{0}) / m.samples.size();
  Model model;
  PartialModel growing;
  const PartialModel* resume = nullptr;
  if (hooks.resume != nullptr) {
    growing = resume_from(*hooks.resume, m, trees, model);
    resume = &growing;
  }
  Pace pace(hooks.seconds);
  while (model.nodes.empty() || model.trees() < trees) {
    append_tree(model, train_tree(m, start, model, resume, hooks, pace, context));
    resume = nullptr;
  }
  HeldOutScore held_out;
  const bool validated = m.held_out.size() > 0;
  if (validated) {
    held_out = held_out_score(m, model, context);
    model.info.validation = {{"log_loss", held_out.log_loss}, {"auc", held_out.auc}};
  }
  model.self_tests = make_self_tests(model, model.features.size(), context.seed);
  write_report(m, model, validated ? &held_out : nullptr, report);
  check_model(model);
  return model;
}

}  // namespace larch::pbt
