// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/train.h"

#include <algorithm>
#include <cmath>
#include <numeric>
#include <span>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/features/linear/linear_source.h"
#include "larch/learning/lowest_hash.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pbt/model.h"
#include "larch/pbt/train/trees.h"
#include "larch/tree/check.h"
#include "larch/tree/train/grow.h"
#include "larch/tree/train/score.h"
#include "larch/voxels/pool.h"
#include "larch/voxels/threshold.h"

namespace larch::pbt {
namespace {

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

/// Returns a model without trees.
Model start_model(const TrainConfig& config, const image::ModelSpace& space,
                  const std::vector<TrainingVolume>& volumes, const SampleSet& samples,
                  uint64_t seed) {
  Model model;
  static_cast<tree::Ensemble&>(model) = tree::start_tree(config.tree, samples);
  static_cast<ImageModel&>(model) = start_image_model(config, space, volumes, seed);
  return model;
}

/// Returns the best threshold on held-out volumes. The whole volumes are evaluated, in model space,
/// with the voxels at the boundary that no samples are drawn from.
std::optional<ScoredThreshold> best_threshold(const Model& model, const Material& m,
                                              std::span<const size_t> held_out,
                                              const Context& context) {
  ThresholdSearch search(1);
  const ResidentModel resident(model, context.device);
  for (const size_t v : held_out) {
    const auto volume = m.images.volumes[v].fetch();
    context.throw_if_stopped("stopped while the held-out volumes were evaluated");
    const auto posterior =
        evaluate_volume(resident, volume->components(), {}, m.images.bytes_left, context);
    const Volume<uint8_t>& truth = volume->truth.empty() ? volume->classes : volume->truth;
    for (int64_t i = 0; i < truth.voxels(); ++i) {
      if (truth[i] == static_cast<uint8_t>(VoxelClass::kIgnored)) continue;
      const bool is_positive = truth[i] == static_cast<uint8_t>(VoxelClass::kPositive);
      search.add(posterior[i], 0, is_positive ? 0 : ThresholdSearch::kNone);
    }
  }
  return search.best();
}

/// Scores the model on the held-out samples, cut off at each depth too, and finds its threshold on
/// the held-out volumes.
void validate(Model& model, const Material& m, std::span<const size_t> held_out,
              const Context& context) {
  std::vector<DepthScore> scores;
  for (const auto& posterior :
       tree::posteriors_by_depth(grown_of(model), m.held_out_source, m.held_out.size(), context)) {
    scores.push_back(tree::score(posterior, m.held_out));
  }
  model.info.validation = {{"volumes", static_cast<double>(held_out.size())},
                           {"log_loss", scores.back().log_loss},
                           {"auc", scores.back().auc}};
  if (const auto best = best_threshold(model, m, held_out, context)) {
    store_threshold(*best, model.info, context);
  }
  for (const DepthScore& score : scores) add_depth_score(model.info, score);
}

/// Validates the model, makes its self-tests, checks it and reports.
void finish_model(Model& model, const Material& m, std::span<const size_t> held_out,
                  TrainReport* report, const Context& context) {
  if (m.held_out.size() > 0) validate(model, m, held_out, context);
  model.self_tests = make_self_tests(model, model.features.size(), context.seed);
  check_model(model);
  if (report == nullptr) return;
  report->figures.insert(report->figures.end(), {{"trees", double(model.trees())},
                                                 {"nodes", double(model.nodes.size())},
                                                 {"weak_classifiers", double(model.weaks.size())}});
  if (held_out.empty()) return;
  const auto pruned = std::ranges::count(model.nodes, NodeReason::kPruned, &Node::reason);
  report->figures.emplace_back("pruned_nodes", double(pruned));
  report->add_measured(model.info, {"log_loss", "auc", "dice", "threshold"});
}

/// Says what the run is made of.
void report_material(const VolumeSplit& split, const SampleSet& samples, size_t features,
                     TrainReport* report, const Context& context) {
  context.info("training on " + std::to_string(split.train.size()) + " volumes, " +
               std::to_string(samples.size()) + " samples, " + std::to_string(features) +
               " features; " + std::to_string(split.held_out.size()) + " volumes held out");
  if (report == nullptr) return;
  const double positive = std::accumulate(samples.positive.begin(), samples.positive.end(), 0.0);
  report->figures = {{"training_volumes", double(split.train.size())},
                     {"held_out_volumes", double(split.held_out.size())},
                     {"positive_samples", positive},
                     {"negative_samples", double(samples.size()) - positive},
                     {"features", double(features)}};
}

}  // namespace

Model train_trees(const std::vector<TrainingVolume>& volumes, const image::ModelSpace& space,
                  const TrainConfig& config, const TrainHooks& hooks, TrainReport* report,
                  const Context& context) {
  // Volumes: whole ones are held out.
  if (volumes.empty()) throw InputError("there is no training volume");
  const VolumeSplit split = hold_out(volumes, config.validation.fraction.value_or(0), context.seed);

  // Samples: voxels, class by class; and how often their volumes count for each tree.
  const auto draw = [&](const std::vector<size_t>& which) {
    return draw_samples(volumes, which, config.samples, context.seed, context.threads);
  };
  SampleSet samples = draw(split.train), held_out = draw(split.held_out);
  check_classes(samples, config.tree.allow_constant);
  const auto occurrences =
      draw_volumes_of_trees(split.train, volumes.size(), samples, config, context.seed);

  // Pool: the features to choose from, on the channels.
  const std::vector<image::ChannelSpec> channels =
      channel_specs(config.features, config.space.components.size());
  const std::vector<features::HaarFeature> pool = make_pool(config, channels, context.seed);
  report_material(split, samples, pool.size(), report, context);

  // Channels: integrated on the device; where the samples lie in them.
  TrainingImages images = load_training_images(
      volumes, channels, config.space.padding, features::reach_along(pool), context,
      needs_of(config, samples.size() + held_out.size(), channels.size()));
  const features::SamplePlaces places = place_samples(samples, images),
                               held_out_places = place_samples(held_out, images);

  // Matrix: the columns that boosting chooses from, and the code of each of their values.
  const features::LinearColumns columns =
      features::make_haar_columns(pool, images.common_layouts(), config.tree.tap_cost, context);
  features::LinearSource source(columns, places);
  const features::LinearSource held_out_source(columns, held_out_places);
  const std::vector<learning::CodeMap> maps =
      source.range(range_samples(samples, samples.size(), context), context);

  // Trees, and the model that they are.
  Material material{config, images,          pool, samples,    held_out,
                    source, held_out_source, maps, occurrences};
  const Model start = start_model(config, space, volumes, samples, context.seed);
  Model model = grow_trees(material, start, hooks, context);
  finish_model(model, material, split.held_out, report, context);
  return model;
}

}  // namespace larch::pbt
