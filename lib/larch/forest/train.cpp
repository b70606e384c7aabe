// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/forest/train.h"

#include <algorithm>
#include <map>
#include <memory>
#include <numeric>
#include <optional>
#include <set>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/features/linear/linear_source.h"
#include "larch/forest/evaluate.h"
#include "larch/learning/lowest_hash.h"
#include "larch/voxels/pool.h"
#include "larch/voxels/threshold.h"

namespace larch::forest {
namespace {

constexpr uint64_t kPixelStream = 0x70697865;  // "pixe"
constexpr uint64_t kBoxStream = 0x626f7865;    // "boxe"

/// Samples of the training volumes, then those of the held-out ones.
struct Labelled {
  voxels::SampleSet samples;
  std::vector<uint16_t> label;
  size_t training = 0;  ///< how many are of training volumes
};

/// Returns all values that occur, ascending.
std::vector<ForestClass> find_classes(const std::vector<voxels::TrainingVolume>& volumes,
                                      const voxels::LabelConfig& config) {
  std::set<int32_t> values;
  if (!config.positive.empty()) values = {0, config.class_value};
  for (const auto& volume : volumes) values.merge(labels_in(volume.fetch()->labels));
  values.erase(voxels::kUnlabelled);
  std::vector<ForestClass> classes;
  for (const int32_t value : values) {
    const auto named = std::ranges::find(config.names, value, &voxels::ClassName::value);
    std::string name = named != config.names.end() ? named->name : std::to_string(value);
    if (!config.positive.empty()) name = value == 0 ? "background" : config.class_name;
    classes.push_back({value, std::move(name)});
  }
  return classes;
}

/// Returns the index of the class with a value, which occurs.
int class_of(const std::vector<ForestClass>& classes, int32_t value) {
  const auto at = std::lower_bound(classes.begin(), classes.end(), value,
                                   [](const ForestClass& c, int32_t v) { return c.value < v; });
  return static_cast<int>(at - classes.begin());
}

/// Adds the labelled voxels of lowest hash of each volume.
void draw_voxels(const std::vector<voxels::TrainingVolume>& volumes, std::span<const size_t> which,
                 const std::vector<ForestClass>& classes, int count, uint64_t seed,
                 Labelled& drawn) {
  for (const size_t v : which) {
    const auto volume = volumes[v].fetch();
    const LabelVolume& labels = volume->labels;
    learning::LowestHashes<int64_t> lowest(count > 0 ? static_cast<size_t>(count)
                                                     : static_cast<size_t>(labels.voxels()));
    for (int64_t i = 0; i < labels.voxels(); ++i) {
      if (labels[i] == voxels::kUnlabelled) continue;
      lowest.add(hash64(seed ^ kPixelStream, v, static_cast<uint64_t>(i)), i);
    }
    for (const int64_t voxel : lowest.take()) {
      drawn.label.push_back(static_cast<uint16_t>(class_of(classes, labels[voxel])));
      drawn.samples.add(v, voxel, false, uint64_t{1} << 32);
    }
  }
}

/// Columns with the source that reads them.
struct OwnedSource {
  OwnedSource(features::LinearColumns made, const features::SamplePlaces& places)
      : columns(std::move(made)), source(columns, places) {}
  features::LinearColumns columns;
  features::LinearSource source;
};
std::shared_ptr<const learning::FeatureSource> source_of(features::LinearColumns columns,
                                                         const features::SamplePlaces& places) {
  const auto owned = std::make_shared<OwnedSource>(std::move(columns), places);
  return {owned, &owned->source};
}

/// Where the features of rounds come from: Haar features of one pool, or boxes that each round
/// draws anew.
class Pool {
 public:
  Pool(const voxels::TrainConfig& config, const Model& model, bool planar)
      : count_(config.forest.round_features), seed_(model.info.seed) {
    if (config.forest.pool == voxels::ForestPool::kHaar) {
      haar_ = voxels::make_pool(config, model.channels, seed_);
      return;
    }
    boxes_ = {config.forest.reach.value_or(boxes_.reach),
              config.forest.largest_box.value_or(boxes_.largest), planar,
              static_cast<int>(model.channels.size()),
              voxels::channel_bounds(model.space, model.channels)};
  }

  Vec3i reach() const {
    return haar_.empty() ? features::reach_along(boxes_) : features::reach_along(haar_);
  }
  bool is_haar() const { return !haar_.empty(); }
  /// All rounds have the same columns.
  bool is_fixed() const { return !haar_.empty() && haar_.size() <= static_cast<size_t>(count_); }
  uint64_t tree_seed(size_t tree) const { return tree::tree_seed(seed_, tree); }

  features::BoxFeature feature(size_t tree, const tree::PickedColumn& pick) const {
    if (!haar_.empty()) return features::boxes_of(haar_[pick.column]);
    return features::draw_box_feature(boxes_, tree_seed(tree) ^ kBoxStream,
                                      2 * uint64_t{pick.round}, pick.column);
  }

  /// To be called before rounds are drawn. `ranged`: samples that the ranges are taken from.
  void place(const features::SamplePlaces& places, const voxels::TrainingImages& images,
             std::vector<uint32_t> ranged, const Context& context) {
    places_ = places;
    layouts_ = images.common_layouts();
    ranged_ = std::move(ranged);
    if (haar_.empty()) return;
    const auto source = source_of(features::make_haar_columns(haar_, layouts_, 0, context), places);
    all_ = tree::all_columns(source, source->range(ranged_, context));
  }

  tree::RoundColumns draw(size_t tree, uint32_t round, const Context& context) const {
    if (!haar_.empty()) return tree::draw_round(all_, count_, tree_seed(tree), round);
    std::vector<features::BoxFeature> drawn;
    for (uint32_t k = 0; k < static_cast<uint32_t>(count_); ++k) {
      drawn.push_back(feature(tree, {round, k}));
    }
    const auto source = source_of(features::make_box_columns(drawn, layouts_, context), places_);
    return tree::all_columns(source, source->range(ranged_, context));
  }

 private:
  int count_;
  uint64_t seed_;
  std::vector<features::HaarFeature> haar_;
  features::BoxSpec boxes_;
  features::SamplePlaces places_;
  std::span<const image::IntegralLayout> layouts_;
  std::vector<uint32_t> ranged_;
  tree::RoundColumns all_;  ///< of the Haar features
};

/// Returns how often each training sample counts for a tree: as often as its volume was drawn.
std::vector<uint32_t> times_of_tree(const Labelled& drawn, const voxels::VolumeSplit& split,
                                    bool bootstrap, uint64_t seed) {
  std::vector<uint32_t> counts(split.train.size(), 1);
  if (bootstrap) counts = tree::bootstrap_counts(split.train.size(), seed);
  std::vector<uint32_t> times(drawn.training, 0);
  for (size_t i = 0, k = 0; i < times.size(); ++i) {  // samples are in the order of split.train
    while (split.train[k] != drawn.samples.volume(i)) ++k;
    times[i] = counts[k];
  }
  // Volumes without labels may be all that were drawn; then each sample counts once.
  if (std::all_of(times.begin(), times.end(), [](uint32_t t) { return t == 0; })) {
    std::fill(times.begin(), times.end(), 1u);
  }
  return times;
}

/// Adds up what the trees, cut off at each depth, say of the held-out samples.
class HeldOut {
 public:
  HeldOut(const Labelled& drawn, uint32_t classes, int depth)
      : label_(std::span(drawn.label).subspan(drawn.training)),
        classes_(classes),
        sums_(label_.empty() ? 0 : static_cast<size_t>(depth) + 1,
              std::vector<float>(label_.size() * classes, 0)) {}

  void add(const tree::GrownForestTree& grown, std::span<const uint32_t> weights) {
    const std::vector<tree::ForestNode>& nodes = grown.tree.nodes;
    std::vector<uint32_t> parent(nodes.size(), 0);
    for (uint32_t n = 0; n < nodes.size(); ++n) {
      if (nodes[n].is_leaf()) continue;
      const auto left = static_cast<size_t>(nodes[n].left);
      parent[left] = parent[left + 1] = n;
    }
    const size_t training = grown.node.size() - label_.size();
    for (size_t i = 0; i < label_.size(); ++i) {
      std::vector<uint32_t> path{grown.node[training + i]};
      while (path.back() != 0) path.push_back(parent[path.back()]);
      for (size_t d = 0; d < sums_.size(); ++d) {
        const size_t node = path[path.size() - 1 - std::min(d, path.size() - 1)];
        const uint32_t* counts = grown.tree.counts.data() + node * classes_;
        double total = 0;
        for (uint32_t c = 0; c < classes_; ++c) total += 1.0 * weights[c] * counts[c];
        for (uint32_t c = 0; c < classes_; ++c) {
          sums_[d][i * classes_ + c] += static_cast<float>(weights[c] * (counts[c] / total));
        }
      }
    }
  }

  /// The shares of samples that are labelled right: of all, from the deepest on, and the mean of
  /// those of the classes.
  void report(voxels::ModelInfo& info, size_t volumes) const {
    if (!sums_.empty()) info.validation.emplace_back("volumes", static_cast<double>(volumes));
    for (size_t d = sums_.size(); d-- > 0;) {
      std::vector<double> right(classes_, 0), all(classes_, 0);
      for (size_t i = 0; i < label_.size(); ++i) {
        const auto begin = sums_[d].begin() + static_cast<std::ptrdiff_t>(i * classes_);
        all[label_[i]] += 1;
        right[label_[i]] += std::max_element(begin, begin + classes_) - begin == label_[i] ? 1 : 0;
      }
      const double accuracy =
          std::accumulate(right.begin(), right.end(), 0.0) / static_cast<double>(label_.size());
      if (d + 1 == sums_.size()) {
        double sum = 0, seen = 0;
        for (uint32_t c = 0; c < classes_; ++c) {
          if (all[c] > 0) sum += right[c] / all[c], ++seen;
        }
        info.validation.emplace_back("accuracy", accuracy);
        info.validation.emplace_back("class_accuracy", sum / seen);
      }
      info.validation.emplace_back("depth " + std::to_string(d) + " accuracy", accuracy);
    }
  }

 private:
  std::span<const uint16_t> label_;
  uint32_t classes_;
  std::vector<std::vector<float>> sums_;  ///< [depth][sample][class]
};

/// Returns a model without trees.
Model start_model(const std::vector<voxels::TrainingVolume>& volumes,
                  const image::ModelSpace& space, const voxels::TrainConfig& config,
                  uint64_t seed) {
  Model model;
  model.class_table = find_classes(volumes, config.labels);
  if (model.class_table.size() > 65535) throw InputError("the labels have more than 65535 values");
  model.classes = static_cast<uint32_t>(model.class_table.size());
  std::optional<int> background = config.labels.background;
  if (!config.labels.positive.empty()) background = 0;
  for (size_t c = 0; c < model.class_table.size() && background; ++c) {
    if (model.class_table[c].value == *background) model.background = static_cast<int32_t>(c);
  }
  if (background && model.background < 0) {
    throw InputError("labels/background: no voxel has the label " + std::to_string(*background));
  }
  static_cast<voxels::ImageModel&>(model) = voxels::start_image_model(config, space, volumes, seed);
  return model;
}

/// Returns the labelled voxels of the training volumes, then those of the held-out ones, and the
/// weights of the classes.
Labelled draw_all(const std::vector<voxels::TrainingVolume>& volumes,
                  const voxels::VolumeSplit& split, const Model& model,
                  const voxels::ForestConfig& config, std::vector<uint32_t>& weights) {
  Labelled drawn;
  const auto draw = [&](const std::vector<size_t>& which) {
    draw_voxels(volumes, which, model.class_table, config.samples_per_volume, model.info.seed,
                drawn);
  };
  draw(split.train);
  drawn.training = drawn.label.size();
  draw(split.held_out);
  std::vector<uint64_t> counts(model.classes, 0);
  for (size_t i = 0; i < drawn.training; ++i) ++counts[drawn.label[i]];
  const auto seen = std::count_if(counts.begin(), counts.end(), [](uint64_t n) { return n > 0; });
  if (seen < 2) {
    throw InputError("the training volumes give " + std::to_string(drawn.training) +
                     " labelled samples of " + std::to_string(seen) +
                     " classes, and a forest needs two: check labels/positive, labels/ignore and "
                     "labels/border_voxels");
  }
  weights = tree::class_weights(config, counts);
  return drawn;
}

/// Returns the best threshold of the probability of the structures together on whole held-out
/// volumes; inside, the likelier class wins. None where no class is the background.
std::optional<voxels::ScoredThreshold> best_threshold(const Model& model,
                                                      const voxels::TrainingImages& images,
                                                      std::span<const size_t> held_out,
                                                      const Context& context) {
  if (model.background < 0) return std::nullopt;
  voxels::ThresholdSearch search(model.classes);
  const ResidentModel resident(model, context.device);
  for (const size_t v : held_out) {
    const auto volume = images.volumes[v].fetch();
    context.throw_if_stopped("stopped while the held-out volumes were evaluated");
    const LabelVolume& truth = volume->true_labels.empty() ? volume->labels : volume->true_labels;
    const Maps maps = evaluate_volume(resident, volume->components(), {.distribution = true},
                                      images.bytes_left, context);
    const Volume<float>& around = maps.distribution[static_cast<size_t>(model.background)];
    for (int64_t i = 0; i < truth.voxels(); ++i) {
      if (truth[i] == voxels::kUnlabelled) continue;
      const int its = class_of(model.class_table, truth[i]);
      search.add(1 - around[i], likeliest_structure(maps.distribution, model.background, i),
                 its == model.background ? voxels::ThresholdSearch::kNone : its);
    }
  }
  return search.best();
}

/// Says how right each depth is, and finds the threshold.
void validate(Model& model, const voxels::TrainingImages& images, std::span<const size_t> held_out,
              voxels::TrainReport* report, const Context& context) {
  const std::vector<double> accuracies = depth_accuracies(model.info);
  for (size_t d = 0; d < accuracies.size(); ++d) {
    context.info("held-out accuracy at depth " + std::to_string(d) + ": " +
                 std::to_string(accuracies[d]));
  }
  const auto best = best_threshold(model, images, held_out, context);
  if (!best) return;
  voxels::store_threshold(*best, model.info, context);
  for (size_t c = 0; report != nullptr && c < best->class_dice.size(); ++c) {
    if (best->class_dice[c] < 0) continue;  // it does not occur
    report->class_dice.emplace_back(model.class_table[c].name, best->class_dice[c]);
  }
}

/// The trees as the model's, with the features that they ask, each once.
void add_trees(Model& model, const PartialForest& trees, const Pool& pool,
               std::span<const uint32_t> weights) {
  std::map<std::pair<uint64_t, uint32_t>, uint32_t> numbers;
  const auto feature_of = [&](size_t t, const tree::PickedColumn& pick) {
    const uint64_t drawn_by = pool.is_haar() ? 0 : uint64_t{t} << 32 | pick.round;
    const auto [entry, is_new] = numbers.emplace(std::pair(drawn_by, pick.column),
                                                 static_cast<uint32_t>(model.features.size()));
    if (is_new) model.features.push_back(pool.feature(t, pick));
    return entry->second;
  };
  static_cast<tree::Forest&>(model) = tree::forest_of(trees, model.classes, weights, feature_of);
  model.self_tests = tree::make_self_tests(model, model.info.seed);
}

}  // namespace

voxels::TrainingVolume make_training_volume(
    const std::string& name, std::span<const Volume<float>> images, const LabelVolume& labels,
    const image::ModelSpace& space, const voxels::LabelConfig& config, const Context& context) {
  voxels::TrainingVolume volume = voxels::in_model_space(name, images, labels, space, context);
  const auto merged = mapped<int32_t>(volume.labels, [&](int32_t label) {
    if (label == voxels::kUnlabelled || std::ranges::count(config.ignore, label) > 0)
      return voxels::kUnlabelled;
    if (config.positive.empty()) return label;
    return std::ranges::count(config.positive, label) > 0 ? config.class_value : 0;
  });
  volume.labels = merged;
  if (const int border = config.border_voxels.value_or(0); border > 0) {
    const Volume<uint8_t> near = voxels::near_boundary(merged, border, context.threads);
    volume.true_labels = merged;
    for (int64_t i = 0; i < near.voxels(); ++i) {
      if (near[i] != 0) volume.labels[i] = voxels::kUnlabelled;
    }
  }
  volume.digest = voxels::digest_of(volume);
  return volume;
}

Model train_forest(const std::vector<voxels::TrainingVolume>& volumes,
                   const image::ModelSpace& space, const voxels::TrainConfig& config,
                   const TrainHooks& hooks, voxels::TrainReport* report, const Context& context) {
  if (volumes.empty()) throw InputError("there is no training volume");
  const voxels::ForestConfig& forest = config.forest;
  const voxels::VolumeSplit split =
      voxels::hold_out(volumes, config.validation.fraction.value_or(0), context.seed);
  Model model = start_model(volumes, space, config, context.seed);
  std::vector<uint32_t> weights;
  Labelled drawn = draw_all(volumes, split, model, forest, weights);

  // Channels: integrated on the device; features: drawn for each round.
  const bool planar = std::all_of(volumes.begin(), volumes.end(),
                                  [](const auto& v) { return v.grid().size.z == 1; });
  Pool pool(config, model, planar);
  context.info("training on " + std::to_string(split.train.size()) + " volumes, " +
               std::to_string(drawn.training) + " samples of " + std::to_string(model.classes) +
               " classes, " + std::to_string(model.channels.size()) + " channels; " +
               std::to_string(split.held_out.size()) + " volumes held out");
  voxels::TrainingImages images = voxels::load_training_images(
      volumes, model.channels, config.space.padding, pool.reach(), context,
      voxels::needs_of(config, drawn.label.size(), model.channels.size()));
  pool.place(voxels::place_samples(drawn.samples, images), images,
             voxels::range_samples(drawn.samples, drawn.training, context), context);

  // Trees, round by round.
  HeldOut held_out(drawn, model.classes, forest.depth);
  PartialForest grown;
  std::shared_ptr<learning::FeatureMatrix> kept;
  learning::Pace pace(hooks.seconds);
  for (size_t t = 0; t < static_cast<size_t>(forest.trees); ++t) {
    const auto times =
        times_of_tree(drawn, split, forest.bootstrap.value_or(false), pool.tree_seed(t));
    tree::ForestTask task{forest, model.classes, drawn.label, times, weights, pool.tree_seed(t)};
    task.draw = [&](uint32_t round) { return pool.draw(t, round, context); };
    task.kept = pool.is_fixed() ? &kept : nullptr;
    task.memory_bytes = hooks.memory_bytes;
    if (config.memory_bytes > 0 && hooks.memory_bytes == 0) task.memory_bytes = images.bytes_left;
    if (hooks.resume != nullptr && t < hooks.resume->size()) task.resume = &(*hooks.resume)[t];
    task.after_round = [&](const tree::ForestTree& so_far) {
      context.progress(
          (static_cast<double>(t) + so_far.rounds / (1.0 + forest.depth)) / forest.trees,
          "tree " + std::to_string(t + 1) + ", level " + std::to_string(so_far.rounds));
      if (!hooks.after_step || !pace.due(context)) return;
      PartialForest all = grown;
      all.push_back(so_far);
      hooks.after_step(all);
    };
    tree::GrownForestTree tree = tree::grow_tree(task, context);
    held_out.add(tree, weights);
    grown.push_back(std::move(tree.tree));
  }
  add_trees(model, grown, pool, weights);
  held_out.report(model.info, split.held_out.size());
  validate(model, images, split.held_out, report, context);
  check_model(model);
  if (report == nullptr) return model;
  report->figures = {{"training_volumes", double(split.train.size())},
                     {"held_out_volumes", double(split.held_out.size())},
                     {"samples", double(drawn.training)},
                     {"classes", double(model.classes)},
                     {"trees", double(model.trees())},
                     {"nodes", double(model.nodes.size())}};
  report->add_measured(model.info, {"accuracy", "class_accuracy", "dice", "threshold"});
  return model;
}

}  // namespace larch::forest
