// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <numeric>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/pbt/grow.h"
#include "larch/pbt/self_test.h"
#include "larch/pbt/votes.h"

namespace larch::pbt {
namespace {

/// Samples of lowest hash from which the range of each feature is taken.
constexpr size_t kRangeSamples = 4096;
constexpr uint64_t kRangeStream = 0x72616e6765;  // "range"
constexpr uint64_t kFeatureStream = 0x66656174;  // "feat"
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

std::vector<uint32_t> lowest_hash_samples(const SampleSet& samples, size_t count, uint64_t seed) {
  std::vector<std::pair<uint64_t, uint32_t>> keyed;
  for (size_t i = 0; i < samples.size(); ++i) {
    keyed.emplace_back(hash64(seed, kRangeStream, samples.id(i)), static_cast<uint32_t>(i));
  }
  std::sort(keyed.begin(), keyed.end());
  std::vector<uint32_t> chosen;
  for (size_t k = 0; k < std::min(count, keyed.size()); ++k) chosen.push_back(keyed[k].second);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

SamplePlaces places_of(const TrainingImages& images, const SampleSet& samples,
                       std::span<const uint32_t> index) {
  return {images.data.data(), samples.bases.data(), samples.size(), index};
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
  const double mass = std::accumulate(samples.mass.begin(), samples.mass.end(), 0.0) / 4294967296.0;
  if (mass >= 2147483648.0) {
    throw InputError("the training volumes have more than 2^31 voxels; use fewer or coarser ones");
  }
}

/// Section 3.5 of the specification: may this node be split at all?
NodeReason stop_before(const Growth& g, const Node& node, const NodeSamples& list) {
  const TreeConfig& config = g.config.tree;
  if (node.reason != NodeReason::kGrown) return node.reason;
  if (node.depth >= config.depth) return NodeReason::kMaxDepth;
  if (node.mass_positive == 0 || node.mass_negative == 0) return NodeReason::kPure;
  const auto total =
      static_cast<double>(node.mass_positive) + static_cast<double>(node.mass_negative);
  const auto larger = static_cast<double>(std::max(node.mass_positive, node.mass_negative));
  if (larger / total >= config.purity) return NodeReason::kPure;
  if (list.index.size() < static_cast<size_t>(config.min_samples)) return NodeReason::kFewSamples;
  size_t positive = 0;
  for (const uint32_t i : list.index) positive += g.samples.positive[i];
  if (std::min(positive, list.index.size() - positive) <
      static_cast<size_t>(config.min_class_samples)) {
    return NodeReason::kFewOfOneClass;
  }
  return NodeReason::kGrown;
}

int rounds_at(const TreeConfig& config, int depth) {
  if (config.rounds.empty()) throw UsageError("tree/rounds: needs at least one number");
  return config.rounds[std::min(static_cast<size_t>(depth), config.rounds.size() - 1)];
}

/// The feature's place in the model, added when it is used for the first time.
uint32_t model_feature(Model& model, const features::HaarFeature& feature) {
  for (size_t f = 0; f < model.features.size(); ++f) {
    if (model.features[f].pool_index == feature.pool_index) return static_cast<uint32_t>(f);
  }
  model.features.push_back(feature);
  return static_cast<uint32_t>(model.features.size() - 1);
}

/// The node's weak classifiers with pool indices, as cast_votes wants them.
std::vector<WeakClassifier> pool_weaks(const Model& model, const Node& node) {
  const auto first = model.weaks.begin() + node.first_weak;
  std::vector<WeakClassifier> weaks(first, first + node.n_weak);
  for (WeakClassifier& weak : weaks) weak.feature = model.features[weak.feature].pool_index;
  return weaks;
}

std::vector<int32_t> alphas_of(std::span<const WeakClassifier> weaks) {
  std::vector<int32_t> alphas;
  for (const WeakClassifier& weak : weaks) alphas.push_back(weak.alpha_q20);
  return alphas;
}

std::vector<uint32_t> visited_samples(const NodeSamples& list) {
  std::vector<uint32_t> index;
  for (const HeldOutVisit& visit : list.held_out) index.push_back(visit.sample);
  return index;
}

/// How many weak classifiers give the least exponential loss on the held-out samples of the node,
/// giving up after `patience` rounds without improvement.
size_t best_length(const Growth& g, const NodeSamples& list,
                   const std::vector<WeakClassifier>& weaks, const Context& context) {
  const auto patience = static_cast<size_t>(g.config.validation.patience);
  if (patience == 0 || list.held_out.empty() || weaks.empty()) return weaks.size();
  const std::vector<uint32_t> index = visited_samples(list);
  const Votes votes = cast_votes(g.pool, weaks, places_of(g.images, g.held_out, index), context);
  double mass[2] = {0, 0};
  for (const HeldOutVisit& v : list.held_out) mass[g.held_out.positive[v.sample]] += v.weight;
  std::vector<int32_t> h(index.size(), 0);
  size_t best = 0;
  double best_loss = 1;
  for (size_t t = 0; t < weaks.size() && t - std::min(t, best) <= patience; ++t) {
    double loss = 0;
    for (size_t k = 0; k < index.size(); ++k) {
      h[k] += votes.at(k, t) ? weaks[t].alpha_q20 : -weaks[t].alpha_q20;
      const bool positive = g.held_out.positive[index[k]] != 0;
      const double margin = (positive ? h[k] : -h[k]) * 0x1.0p-20;
      loss += 0.5 * list.held_out[k].weight / std::max(mass[positive], 1.0) * std::exp(-margin);
    }
    if (loss < best_loss) {
      best_loss = loss;
      best = t + 1;
    }
  }
  return std::max<size_t>(best, 1);
}

/// The features of lowest hash that a node may choose from; empty: all.
std::vector<uint32_t> node_features(const Growth& g, uint64_t seed, uint64_t heap_index) {
  const auto wanted = static_cast<size_t>(g.config.tree.node_features);
  std::vector<uint32_t> chosen;
  if (wanted == 0 || wanted >= g.haar.size()) return chosen;
  std::vector<std::pair<uint64_t, uint32_t>> keyed;
  for (uint32_t f = 0; f < g.haar.size(); ++f) {
    keyed.emplace_back(hash64(seed ^ kFeatureStream, heap_index, f), f);
  }
  std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(wanted), keyed.end());
  for (size_t k = 0; k < wanted; ++k) chosen.push_back(keyed[k].second);
  std::sort(chosen.begin(), chosen.end());
  return chosen;
}

/// Trains the strong classifier of node `n` and appends it to the model.
void train_node(Growth& g, size_t n, const Context& context) {
  Model& model = g.partial.model;
  const TreeConfig& config = g.config.tree;
  const NodeSamples& list = g.lists[n];
  const uint64_t heap_index = model.nodes[n].heap_index;
  const std::vector<uint32_t> selected =
      select_samples(g.samples, list, config, context.seed, heap_index);
  const std::vector<double> weight = initial_weights(g.samples, selected, list, config.balance);
  std::vector<uint8_t> positive;
  for (const uint32_t i : selected) positive.push_back(g.samples.positive[i]);
  BoostProblem problem;
  problem.places = places_of(g.images, g.samples, selected);
  problem.positive = positive;
  problem.weight = weight;
  const std::vector<uint32_t> features = node_features(g, context.seed, heap_index);
  problem.features = features;
  problem.rounds = rounds_at(config, model.nodes[n].depth);
  problem.kind = config.weak;
  StrongClassifier strong = strong_classifier(boost(g.pool, problem, context), g.pool,
                                              config.worst_error, selected.size());
  strong.weaks.resize(best_length(g, list, strong.weaks, context));
  Node& node = model.nodes[n];
  node.first_weak = static_cast<uint32_t>(model.weaks.size());
  node.n_weak = static_cast<uint32_t>(strong.weaks.size());
  for (WeakClassifier weak : strong.weaks) {
    weak.feature = model_feature(model, g.haar[weak.feature]);
    model.weaks.push_back(weak);
  }
  const auto positives =
      static_cast<uint32_t>(std::accumulate(positive.begin(), positive.end(), 0));
  model.history.push_back({static_cast<int32_t>(n), static_cast<uint32_t>(list.index.size()),
                           positives, static_cast<uint32_t>(selected.size()) - positives,
                           strong.errors});
  if (node.n_weak == 0) node.reason = NodeReason::kNoWeakClassifier;
}

/// Gives node `n` its two children.
void split_node(Growth& g, size_t n, const Context& context) {
  Model& model = g.partial.model;
  NodeSamples list = std::move(g.lists[n]);
  const std::vector<WeakClassifier> weaks = pool_weaks(model, model.nodes[n]);
  const std::vector<int32_t> alphas = alphas_of(weaks);
  NodeSamples children[2];
  route_training(g, list,
                 cast_votes(g.pool, weaks, places_of(g.images, g.samples, list.index), context),
                 alphas, children);
  const std::vector<uint32_t> visited = visited_samples(list);
  route_held_out(g, list,
                 cast_votes(g.pool, weaks, places_of(g.images, g.held_out, visited), context),
                 alphas, children);
  g.visits[n] = std::move(list.held_out);
  const bool separated = !children[0].index.empty() && !children[1].index.empty();
  for (int side = 0; side < 2; ++side) {
    Node child;
    child.depth = model.nodes[n].depth + 1;
    child.heap_index = 2 * model.nodes[n].heap_index + static_cast<uint64_t>(side);
    sum_masses(g.samples, children[side], &child.mass_positive, &child.mass_negative);
    if (children[side].index.empty()) {
      child.reason = NodeReason::kEmpty;
    } else if (!separated) {
      child.reason = NodeReason::kNothingSeparated;
    }
    const auto id = static_cast<int32_t>(g.lists.size());
    (side == 0 ? model.nodes[n].left : model.nodes[n].right) = id;
    g.lists.push_back(std::move(children[side]));
    g.visits.emplace_back();
    // On resume the node is already there, possibly trained.
    if (static_cast<size_t>(id) == model.nodes.size()) model.nodes.push_back(child);
  }
}

/// Finishes node `n`: decides, trains, splits. Nodes of a resumed run only split.
void finish_node(Growth& g, size_t n, const TrainHooks& hooks, const Context& context) {
  Model& model = g.partial.model;
  const bool known = n < g.partial.finished;
  if (!known) {
    model.nodes[n].reason = stop_before(g, model.nodes[n], g.lists[n]);
    if (model.nodes[n].reason == NodeReason::kGrown) train_node(g, n, context);
  }
  if (model.nodes[n].reason == NodeReason::kGrown) {
    split_node(g, n, context);
  } else {
    g.visits[n] = std::move(g.lists[n].held_out);
    g.lists[n] = {};
  }
  if (known) return;
  g.partial.finished = n + 1;
  if (hooks.after_node) hooks.after_node(g.partial);
  if (context.stop_requested()) {
    throw Stopped("stopped after node " + std::to_string(n) + "; continue with --resume",
                  static_cast<ExitCode>(context.stop->load()));
  }
}

/// What a level ends with: mining for the next one, and the held-out scores.
void finish_level(Growth& g, size_t first_node, const Context& context) {
  const int depth = g.partial.model.nodes[first_node].depth;
  if (g.held_out.size() > 0) {
    const HeldOutScore s = score(held_out_posteriors(g), g.held_out);
    char text[128];
    std::snprintf(text, sizeof text, "depth %d: held-out log-loss %.5f, AUC %.5f", depth,
                  s.log_loss, s.auc);
    context.info(text);
  }
  if (g.config.mining.enabled && depth > 0 && depth < g.config.tree.depth) {
    mine_negatives(g, first_node, context);
  }
}

void grow(Growth& g, const TrainHooks& hooks, const Context& context) {
  Model& model = g.partial.model;
  const double all_nodes = std::pow(2.0, g.config.tree.depth);
  int depth = 0;
  for (size_t n = 0; n < model.nodes.size() && n < g.lists.size(); ++n) {
    const Node& node = model.nodes[n];
    if (node.depth != depth) {
      depth = node.depth;
      finish_level(g, n, context);
    }
    context.progress(
        std::min(1.0, static_cast<double>(n) / (2 * all_nodes - 1)),
        "training node " + std::to_string(n + 1) + " at depth " + std::to_string(depth));
    finish_node(g, n, hooks, context);
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
  model.logistic = make_logistic_table();
  model.info.class_name = config.labels.class_name;
  model.info.class_value = config.labels.class_value;
  model.info.seed = seed;
  for (const TrainingVolume& v : volumes) model.info.volume_digests.push_back(v.digest);
  return model;
}

/// The root with all samples, or the checkpoint's tree with the root's list.
void plant(Growth& g, const TrainHooks& hooks) {
  NodeSamples root;
  root.index.resize(g.samples.size());
  std::iota(root.index.begin(), root.index.end(), 0u);
  root.mass = g.samples.mass;
  for (uint32_t i = 0; i < g.held_out.size(); ++i) root.held_out.push_back({i, kOneQ30, 0});
  Node node;
  sum_masses(g.samples, root, &node.mass_positive, &node.mass_negative);
  const uint64_t mean =
      (node.mass_positive + node.mass_negative) / std::max<uint64_t>(1, g.samples.size());
  if (hooks.resume != nullptr) {
    g.partial = *hooks.resume;
    const Node& old = g.partial.model.nodes.at(0);
    bool same = old.mass_positive == node.mass_positive && old.mass_negative == node.mass_negative;
    for (const auto& feature : g.partial.model.features) same &= feature.pool_index < g.haar.size();
    if (!same) {
      throw InputError(
          "the checkpoint belongs to other training data or settings; delete it and train anew");
    }
  } else {
    g.partial.model.mean_mass = mean;
    g.partial.model.nodes.push_back(node);
  }
  g.lists.push_back(std::move(root));
  g.visits.emplace_back();
}

void finish_report(const Growth& g, const Model& model, TrainReport* report) {
  if (report == nullptr) return;
  report->positive_samples = static_cast<size_t>(
      std::accumulate(g.samples.positive.begin(), g.samples.positive.end(), size_t{0}));
  report->negative_samples = g.samples.size() - report->positive_samples;
  report->pool_features = g.haar.size();
  report->nodes = model.nodes.size();
  report->weak_classifiers = model.weaks.size();
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

}  // namespace

std::vector<image::ChannelSpec> channel_specs(const FeatureConfig& config) {
  std::vector<image::ChannelSpec> specs;
  for (const image::ChannelKind kind : config.channels) {
    for (int level = 0; level < config.pyramid_levels; ++level) specs.push_back({kind, level});
  }
  if (specs.empty()) throw UsageError("features/channels: needs at least one channel");
  return specs;
}

StrongClassifier strong_classifier(std::span<const BoostRound> rounds, const FeaturePool& pool,
                                   double worst_error, size_t selected) {
  StrongClassifier strong;
  const double smallest = 1.0 / (2.0 * static_cast<double>(selected));
  for (const BoostRound& round : rounds) {
    if (!round.found) break;
    const double error = round.error();
    if (error >= worst_error) break;
    const double clamped = std::max(error, smallest);
    const double alpha = 0.5 * std::log((1 - clamped) / clamped);
    WeakClassifier weak;
    weak.feature = round.feature;
    weak.codes = pool.host[round.feature].codes;
    weak.bins = round.bins;
    weak.mask = round.mask;
    weak.alpha_q20 = static_cast<int32_t>(std::llround(alpha * (1 << kAlphaBits)));
    strong.weaks.push_back(weak);
    strong.errors.push_back(error);
    if (error < smallest) break;
  }
  return strong;
}

Model train(const std::vector<TrainingVolume>& volumes, const image::ModelSpace& space,
            const TrainConfig& config, const TrainHooks& hooks, TrainReport* report,
            const Context& context) {
  if (volumes.empty()) throw InputError("there is no training volume");
  const auto [train_volumes, held_out_volumes] =
      hold_out(volumes.size(), config.validation.fraction, context.seed);
  const std::vector<image::ChannelSpec> channels = channel_specs(config.features);
  const std::vector<features::HaarFeature> haar = make_pool(config, channels, context.seed);
  int pad = 0;
  for (const auto& feature : haar) pad = std::max(pad, features::reach(feature));

  SampleSet samples =
      draw_samples(volumes, train_volumes, config.samples, context.seed, context.threads);
  SampleSet held_out =
      draw_samples(volumes, held_out_volumes, config.samples, context.seed, context.threads);
  check_classes(samples, config.tree.allow_constant);
  context.info("training on " + std::to_string(train_volumes.size()) + " volumes, " +
               std::to_string(samples.size()) + " samples, " + std::to_string(haar.size()) +
               " features; " + std::to_string(held_out_volumes.size()) + " volumes held out");
  const TrainingImages images =
      load_training_images(volumes, channels, config.space.padding, pad, context);
  place_samples(samples, volumes, images);
  place_samples(held_out, volumes, images);
  FeaturePool pool =
      make_feature_pool(haar, images.common_layouts(), config.tree.tap_cost, context);
  const std::vector<uint32_t> range = lowest_hash_samples(samples, kRangeSamples, context.seed);
  range_pool(pool, places_of(images, samples, range), context);

  Growth growth{config, volumes, images, pool, haar, samples, held_out, {}, {}, {}};
  growth.partial.model = new_model(config, space, volumes, context.seed);
  plant(growth, hooks);
  finish_report(growth, growth.partial.model, report);
  grow(growth, hooks, context);

  Model model = growth.partial.model;
  size_t pruned = 0;
  if (held_out.size() > 0) {
    std::vector<double> posterior = held_out_posteriors(growth);
    if (config.validation.prune) pruned = prune(model, growth.visits, held_out, &posterior);
    const HeldOutScore s = score(posterior, held_out);
    model.info.validation = {{"log_loss", s.log_loss}, {"auc", s.auc}};
  }
  model.self_tests = make_self_tests(model, context.seed);
  if (report != nullptr) {
    report->training_volumes = train_volumes.size();
    report->held_out_volumes = held_out_volumes.size();
    report->nodes = model.nodes.size();
    report->weak_classifiers = model.weaks.size();
    report->pruned_nodes = pruned;
    if (!model.info.validation.empty()) {
      report->held_out_log_loss = model.info.validation[0].second;
      report->held_out_auc = model.info.validation[1].second;
    }
  }
  check_model(model);
  return model;
}

}  // namespace larch::pbt
