// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/train.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <deque>
#include <exception>
#include <future>
#include <optional>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/features/box.h"
#include "larch/files/atomic_file.h"
#include "larch/forest/train.h"
#include "larch/hdn/train/train.h"
#include "larch/models/checkpoint.h"
#include "larch/pbt/train/train.h"
#include "larch/train_experts.h"
#include "larch/voxels/pool.h"

namespace larch {
namespace {

using voxels::ClassifierKind;

bool is_forest(const voxels::TrainConfig& config) {
  return config.classifier == ClassifierKind::kForest;
}

bool fits(voxels::TrainConfig config, ClassifierKind kind) {
  config.classifier = kind;
  try {
    check_keys(config);
    return true;
  } catch (const UsageError&) {
    return false;
  }
}

double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

/// The mean edge of a box, in voxels: that of the cube, or in a picture the square, of its volume.
double edge_of(const Vec3i& box, bool planar) {
  const double area = 1.0 * box.x * box.y;
  return planar ? std::sqrt(area) : std::cbrt(area * box.z);
}

/// Adds the edges of the boxes around the structures of a volume.
void add_structures(const voxels::TrainingVolume& volume, std::optional<int> background,
                    bool planar, std::vector<double>& edges) {
  struct Box {
    Vec3i lo, hi;
  };
  std::map<int32_t, Box> boxes;
  const LabelVolume& labels = volume.labels;
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    if (labels[i] == voxels::kUnlabelled || labels[i] == background) continue;
    const Vec3i at = labels.grid().voxel(i);
    Box& box = boxes.try_emplace(labels[i], Box{at, at}).first->second;
    widen(box.lo, box.hi, at);
  }
  for (const auto& [label, box] : boxes) {
    edges.push_back(edge_of(box.hi - box.lo + Vec3i{1, 1, 1}, planar));
  }
}

/// A third of a structure, a quarter of an image: what lies farther away tells little of a voxel,
/// and nothing where it is outside of the image.
void fit_boxes(voxels::ForestConfig& forest, std::optional<int> background,
               const std::vector<voxels::TrainingVolume>& volumes, const Context& context) {
  const bool planar = std::all_of(volumes.begin(), volumes.end(),
                                  [](const auto& v) { return v.grid().size.z == 1; });
  std::vector<double> images, structures;
  for (const voxels::TrainingVolume& volume : volumes) {
    images.push_back(edge_of(volume.grid().size, planar));
    add_structures(*volume.fetch(), background, planar, structures);
  }
  if (structures.empty()) return;  // the training says what is wrong
  const double image = median(images), structure = median(structures);
  const int edge = std::max(1, static_cast<int>(std::min(structure / 3, image / 4)));
  const features::BoxSpec most;
  if (!forest.reach) forest.reach = std::min(edge, most.reach);
  if (!forest.largest_box) forest.largest_box = std::min(edge, most.largest);
  context.info(
      formatted("forest/reach %d and forest/largest_box %d, for structures of %.0f and images of "
                "%.0f voxels along an edge",
                *forest.reach, *forest.largest_box, structure, image));
}

/// Throws UsageError for keys that are not as they are by default, unless they have an effect.
template <class T>
void check_effect(bool has_effect, const T& value, const char* prefix, const char* kind,
                  std::initializer_list<const char*> keys) {
  if (!has_effect) config::require_default(value, prefix, kind, keys);
}

/// Throws UsageError for keys without effect on decision forests.
void check_keys_of_forests(const voxels::TrainConfig& config) {
  const bool boxes = config.forest.pool == voxels::ForestPool::kBoxes;
  const bool all_labels = config.labels.positive.empty();
  check_effect(false, config.tree, "tree.", "boosting trees", {});
  check_effect(false, config.mining, "mining.", "boosting trees", {});
  check_effect(false, config.samples, "samples.", "boosting trees", {});
  check_effect(false, config.validation, "validation.", "boosting trees", {"prune", "patience"});
  check_effect(!boxes, config.features, "features.", "--forest.pool haar",
               {"count", "window", "sizes"});
  check_effect(boxes, config.forest, "forest.", "--forest.pool boxes", {"reach", "largest_box"});
  check_effect(!all_labels, config.labels, "labels.", "forests with --labels.positive",
               {"class_name", "class_value"});
  check_effect(all_labels, config.labels, "labels.", "forests without --labels.positive",
               {"background", "names"});
}

/// Throws UsageError for keys that another key leaves without effect, whatever the classifier is.
void check_dependent_keys(const voxels::TrainConfig& config) {
  const image::IntensityRule& intensity = config.space.intensity;
  const bool has_window = intensity.rule == image::IntensityKind::kWindow;
  check_effect(!has_window, intensity, "space.intensity.", "--space.intensity.rule percentile",
               {"low_percentile", "high_percentile"});
  check_effect(has_window, intensity, "space.intensity.", "--space.intensity.rule window",
               {"window_low", "window_high"});
  check_effect(!config.features.channels.empty(), config.features, "features.",
               "--features.channels", {"pyramid_levels"});
  check_effect(config.tree.prior == tree::PriorKind::kValue, config.tree, "tree.",
               "--tree.prior value", {"prior_value"});
  check_effect(config.validation.fraction != 0, config.validation, "validation.",
               "--validation.fraction above 0", {"prune", "patience"});
  check_effect(config.mining.enabled, config.mining, "mining.", "--mining.enabled", {"per_node"});
}

/// Tells whether choose_classifier looks at the values.
bool asks_labels(const voxels::TrainConfig& config) {
  return !config.classifier && config.labels.positive.empty() &&
         fits(config, ClassifierKind::kTree) && fits(config, ClassifierKind::kForest);
}

/// Every label of a data set is a structure where none is named.
void complete(hdn::HdnConfig& config, const std::vector<DatasetLabel>& labels) {
  for (const hdn::StructureConfig& structure : config.structures)
    voxels::check_name(structure.name);
  if (!config.structures.empty()) return;
  for (const DatasetLabel& label : labels) {
    if (label.values == std::vector<int32_t>{0} || label.name == kBackgroundName ||
        label.name == kIgnoreName) {
      continue;
    }
    voxels::check_name(label.name);
    config.structures.push_back({label.name, {label.values.begin(), label.values.end()}});
  }
}

/// Throws UsageError for keys that another key leaves without effect.
void check_keys_of_network(const hdn::HdnConfig& config) {
  check_effect(config.rotations == pose::RotationSet::kUniform, config, "hdn.",
               "--hdn.rotations uniform", {"rotation_count"});
  check_effect(config.rotations == pose::RotationSet::kBall, config, "hdn.", "--hdn.rotations ball",
               {"rotation_radius_deg"});
  check_effect(config.halvings > 0, config, "hdn.", "--hdn.halvings above 0", {"keep"});
  const bool has_parents =
      config.order == hdn::Order::kAuto ||
      std::ranges::any_of(config.structures, [](const auto& s) { return !s.parent.empty(); });
  check_effect(has_parents, config, "hdn.", "structures with a parent",
               {"prior_weight", "fallback"});
}

/// What a data set calls its labels, for a forest of all of them: names where none are given, and
/// the background, which is 0 where nothing is called so but 0 occurs and has no name. `seen`: the
/// label values that occur.
void take_names(const std::vector<DatasetLabel>& labels, const std::set<int>& seen,
                voxels::LabelConfig& config, const Context& context) {
  const bool has_names = !config.names.empty();
  const auto take_background = [&](int value) {
    if (config.background || !seen.contains(value) ||
        std::ranges::count(config.ignore, value) > 0) {
      return;
    }
    config.background = value;
    context.info("label " + std::to_string(value) + " is the background");
  };
  for (const auto& [name, values] : labels) {
    if (values.size() != 1) continue;
    if (!has_names) config.names.push_back({values[0], name});
    if (name == kBackgroundName) take_background(values[0]);
  }
  const auto is_zero = [](const voxels::ClassName& n) { return n.value == 0; };
  if (std::ranges::none_of(config.names, is_zero)) take_background(0);
}

/// Sets validation/fraction by the number of volumes, and the boxes of a forest by the sizes of
/// volumes and structures.
void fit_to_volumes(voxels::TrainConfig& config, const std::vector<voxels::TrainingVolume>& volumes,
                    const Context& context) {
  config.validation.fraction = held_out_fraction(config, volumes.size());
  check_effect(config.validation.fraction != 0, config.validation, "validation.",
               "--validation.fraction above 0", {"prune", "patience"});
  voxels::ForestConfig& forest = config.forest;
  if (is_forest(config) && !forest.bootstrap) forest.bootstrap = false;
  const bool has_boxes = is_forest(config) && forest.pool == voxels::ForestPool::kBoxes;
  if (has_boxes && (!forest.reach || !forest.largest_box)) {
    const bool two_classes = !config.labels.positive.empty();
    fit_boxes(forest, two_classes ? 0 : config.labels.background, volumes, context);
  }
  config = voxels::with_constants(std::move(config));
}

/// Holds what a training learns from.
struct Material {
  voxels::TrainConfig config;  ///< without keys that are null
  image::ModelSpace space;
  std::vector<voxels::TrainingVolume> volumes{};  ///< sorted
  std::string fingerprint{};
};

/// Brings a case to model space; adds the labels that it leaves out to `config`, and those that
/// occur to `seen`.
voxels::TrainingVolume prepare(const TrainingCase& c, const image::ModelSpace& space,
                               voxels::TrainConfig& config, std::set<int>& seen,
                               const Context& context) {
  seen.merge(labels_in(c.labels));
  for (const int label : c.left_out) {
    std::vector<int>& ignored = config.labels.ignore;
    if (std::ranges::count(ignored, label) == 0) ignored.push_back(label);
  }
  const auto make = is_forest(config) ? forest::make_training_volume : voxels::make_training_volume;
  voxels::TrainingVolume volume = make(c.name, c.images, c.labels, space, config.labels, context);
  volume.group = c.group;
  return volume;
}

/// Returns bytes of the host's memory that volumes may take before others go to the disk.
int64_t bytes_of_volumes(const voxels::TrainConfig& config, const Device& device) {
  const auto half = static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2);
  const bool is_bound = config.memory_bytes > 0 && !device.is_cuda();
  return is_bound ? std::min(config.memory_bytes / 3, half) : half;
}

Material make_material(const TrainingCases& cases, const voxels::TrainConfig& config,
                       const std::string& checkpoint, const Context& context) {
  voxels::check_config(config, context.seed);
  std::vector<Grid> grids;
  for (size_t i = 0; i < cases.ids.size() && config.space.spacing_mm.empty(); ++i) {
    grids.push_back(cases.grid(i));
  }
  Material material{config, model_space(grids, config.space)};
  std::set<int> seen;
  choose_classifier(material.config, asks_labels(config) ? label_values(cases, config) : seen,
                    context);
  voxels::check_config(material.config, context.seed);
  int64_t left = bytes_of_volumes(config, context.device);
  std::shared_ptr<std::FILE> scratch;
  const auto use = [&](size_t i, const TrainingCase& c) {
    voxels::TrainingVolume& volume =
        material.volumes.emplace_back(prepare(c, material.space, material.config, seen, context));
    volume.of_case = i;
    left -= volume.bytes();
    if (left >= 0) return;
    if (!scratch) scratch = voxels::make_scratch(folder_of(checkpoint));
    volume.stow(scratch);
  };
  for_each_case(cases, context, use, cases.side_by_side ? left / 4 : 0);
  // Models do not depend on the order of the cases.
  std::vector<int>& ignored = material.config.labels.ignore;
  std::sort(ignored.begin() + static_cast<std::ptrdiff_t>(config.labels.ignore.size()),
            ignored.end());
  check_labels(config.labels.positive, seen, "labels/positive");
  check_labels(config.labels.named_values(), seen, "labels/names");
  voxels::sort_by_digest(material.volumes);
  std::vector<std::string> digests;
  for (const voxels::TrainingVolume& volume : material.volumes) {
    digests.push_back(volume.digest + volume.group);
  }
  material.fingerprint = models::fingerprint(config::to_json(config).dump(), context.seed, digests);
  if (is_forest(material.config) && config.labels.positive.empty()) {
    take_names(cases.declared, seen, material.config.labels, context);
  }
  fit_to_volumes(material.config, material.volumes, context);
  return material;
}

/// Trains by `train`; `steps`: what a training has done, "3 trees".
template <class Partial, class Train>
TrainResult grow(Material& material, const TrainingRun& run, std::string (*steps)(const Partial&),
                 const Train& train, const Context& context) {
  const models::TrainingCheckpoint<Partial> checkpoint(run.checkpoint, run.resume,
                                                       material.fingerprint, steps, context);
  const voxels::TrainConfig& config = material.config;
  voxels::TrainReport report;
  auto model =
      train(material.volumes, material.space, config, checkpoint.hooks(), &report, context);
  std::vector<size_t> held_out;
  for (const size_t v :
       voxels::hold_out(material.volumes, *config.validation.fraction, context.seed).held_out) {
    held_out.push_back(material.volumes[v].of_case);
  }
  std::ranges::sort(held_out);
  add_experts(model, config, material.volumes, report, context);
  model.info.tool_version = run.tool_version;
  model.info.training_config_json = config::to_json(config).dump();
  ModelCard card = run.card;
  if (const size_t atlases = model.experts.atlases.size()) {
    const std::string holds = "holds images of " + std::to_string(atlases) + " training cases";
    card.licence = holds + (card.licence.empty() ? "" : "; " + card.licence);
    context.warn("the model " + holds +
                 ", from which people may be known: share it only as you may share those images; "
                 "--fusion.atlases 0 stores none");
  }
  model.info.about = models::about_model(card, model.info.volume_digests);
  const std::pair<std::string, double> none("held_out_volumes", 0);
  if (*config.validation.fraction > 0 && std::ranges::count(report.figures, none) > 0) {
    context.warn("validation/fraction: " + std::to_string(material.volumes.size()) +
                 " volumes are too few to hold one out; the model is not validated or pruned");
  }
  TrainResult result{std::make_shared<models::AnyModel>(std::move(model)),
                     std::move(report.figures), std::move(report.class_dice)};
  result.held_out = std::move(held_out);
  return result;
}

}  // namespace

image::ModelSpace model_space(const std::vector<Grid>& grids, const voxels::SpaceConfig& config) {
  image::ModelSpace space;
  space.orientation = config.orientation;
  space.intensity = config.intensity;
  if (!config.spacing_mm.empty()) {
    space.spacing_mm = {config.spacing_mm[0], config.spacing_mm[1], config.spacing_mm[2]};
    return space;
  }
  // In model space the axes may be permuted, so the spacing is taken after that. The size is of no
  // interest here, and not to be believed before the file is read.
  std::vector<double> along[3];
  for (Grid grid : grids) {
    image::ModelSpace as_stored = space;
    grid.size = {1, 1, 1};
    as_stored.spacing_mm = grid.spacing_mm;
    const Grid turned = image::model_grid(grid, as_stored);
    for (int axis = 0; axis < 3; ++axis) along[axis].push_back(turned.spacing_mm[axis]);
  }
  for (int axis = 0; axis < 3; ++axis) space.spacing_mm[axis] = median(along[axis]);
  return space;
}

void choose_classifier(voxels::TrainConfig& config, const std::set<int>& values,
                       const Context& context) {
  if (asks_labels(config)) {
    const auto is_structure = [&](int value) {
      return value != 0 && std::ranges::count(config.labels.ignore, value) == 0;
    };
    const bool many = std::ranges::count_if(values, is_structure) > 1;
    config.classifier = many ? ClassifierKind::kForest : ClassifierKind::kTree;
    context.info(many ? "the labels have several values, so that a decision forest learns each of "
                        "them; --classifier pbt learns them as one class"
                      : "the labels have one value beside the background, so that a boosting tree "
                        "learns it; --classifier decision-forest trains a forest");
  } else if (!config.classifier) {
    config.classifier =
        fits(config, ClassifierKind::kTree) ? ClassifierKind::kTree : ClassifierKind::kForest;
  }
  if (!config.labels.border_voxels) config.labels.border_voxels = is_forest(config) ? 0 : 1;
}

void check_keys(const voxels::TrainConfig& config) {
  voxels::check_name(config.labels.class_name);
  for (const voxels::ClassName& c : config.labels.names) voxels::check_name(c.name);
  if (is_forest(config)) {
    check_keys_of_forests(config);
  } else if (config.classifier || !fits(config, ClassifierKind::kForest)) {
    config::require_default(config.forest, "forest.", "classifier decision-forest");
    config::require_default(config.labels, "labels.", "classifier decision-forest", {"background"});
    check_effect(config.needs_experts() && !config.labels.positive.empty(), config.labels,
                 "labels.", "classifier decision-forest, or experts and labels.positive",
                 {"names"});
    for (const int value : config.labels.positive) {
      if (config.labels.names.empty() ||
          std::ranges::count(config.labels.names, value, &voxels::ClassName::value) == 1) {
        continue;
      }
      throw UsageError("labels/names: the part " + std::to_string(value) +
                       " of labels/positive needs one name");
    }
    if (!config.labels.names.empty() &&
        config.labels.names.size() != config.labels.positive.size()) {
      throw UsageError("labels/names are those of labels/positive and no others");
    }
  }
  if (config.fusion.atlases > 0 && config.experts == false) {
    throw UsageError("fusion/atlases vote with experts: leave experts null or set it to true");
  }
  if (config.needs_experts() && !config.space.components.empty()) {
    throw UsageError("experts are for images of one component");
  }
  if (config.classifier != voxels::ClassifierKind::kEnsemble) {
    config::require_default(config.ensemble, "ensemble.", "classifier pbt-ensemble");
  }
  check_dependent_keys(config);
}

hdn::Model start_network(hdn::HdnConfig& config, const voxels::TrainConfig& shared,
                         const std::vector<DatasetLabel>& declared, uint64_t seed) {
  complete(config, declared);
  voxels::check_config(voxels::with_constants(shared), seed);
  check_keys_of_network(config);
  hdn::Model model;
  const double mm = config.finest_spacing_mm;
  model.space = {{mm, mm, mm}, image::Orientation::kWorld, shared.space.intensity};
  model.padding = shared.space.padding;
  model.halvings = config.halvings;
  model.channels = voxels::channel_specs(shared.features);
  model.prior_weight = config.prior_weight;
  model.mean_of_first = config.aggregation == hdn::Aggregation::kMean ? 100 : 0;
  std::map<std::string, int32_t> places;
  for (const size_t i : hdn::check_config(config)) {
    const hdn::StructureConfig& from = config.structures[i];
    hdn::Structure structure;
    structure.name = from.name;
    structure.labels.assign(from.labels.begin(), from.labels.end());
    structure.parent = from.parent.empty() ? -1 : places.at(from.parent);
    places[from.name] = static_cast<int32_t>(model.structures.size());
    model.structures.push_back(structure);
  }
  return model;
}

double held_out_fraction(const voxels::TrainConfig& config, size_t volumes) {
  return config.validation.fraction.value_or(volumes < 20 ? 0 : 0.15);
}

std::string memory_of_training(const std::vector<Grid>& grids, const image::ModelSpace& space,
                               const voxels::TrainConfig& given, const Context& context) {
  const voxels::TrainConfig config = voxels::with_constants(given);
  const size_t components = std::max<size_t>(1, config.space.components.size());
  const auto channels = voxels::channel_specs(config.features, components);
  const auto bytes_of_voxel = static_cast<int64_t>(2 * components + (is_forest(config) ? 4 : 2));
  const int64_t of_volume = is_forest(config) ? config.forest.samples_per_volume
                                              : int64_t{config.samples.positives_per_volume} +
                                                    config.samples.negatives_per_volume;
  std::vector<Vec3i> sizes;
  int longest = 4;
  size_t samples = 0;
  int64_t volumes = 0;
  for (const Grid& grid : grids) {
    const Grid in_space = image::model_grid(grid, space);
    sizes.push_back(in_space.size);
    longest = std::max({longest, in_space.size.x, in_space.size.y, in_space.size.z});
    volumes += in_space.voxels() * bytes_of_voxel;
    samples += static_cast<size_t>(of_volume > 0 ? std::min(in_space.voxels(), of_volume)
                                                 : in_space.voxels());
  }
  voxels::MemoryNeeds needs = voxels::needs_of(config, samples, channels.size());
  needs.volumes = std::min(volumes, config.memory_bytes / 3);
  // Boxes are no larger where the structures will tell their size.
  features::BoxSpec boxes{*config.forest.reach};
  if (!given.forest.reach) boxes.reach = std::clamp(longest / 4, 1, boxes.reach);
  const bool has_boxes = is_forest(config) && config.forest.pool == voxels::ForestPool::kBoxes;
  const Vec3i reach =
      has_boxes ? features::reach_along(boxes)
                : features::reach_along(voxels::make_pool(config, channels, context.seed));
  const voxels::PortionPlan plan = voxels::plan_portions(sizes, channels, reach, needs, context);
  int64_t all = 0;
  for (const auto& layouts : plan.layouts) all += 4 * image::total_elements(layouts);
  return "memory: " + bytes_text(all) + " for the channels of all volumes on " +
         to_string(context.device) + ", " + bytes_text(4 * plan.elements) + " of them at a time (" +
         std::to_string(plan.portions()) + " portions), " + bytes_text(plan.bytes_left) +
         " for codes";
}

std::set<int> label_values(const TrainingCases& cases, const voxels::TrainConfig& config) {
  std::set<int> values;
  for (const DatasetLabel& label : cases.declared) {
    if (label.name == kIgnoreName || label.name == kBackgroundName) continue;
    values.insert(label.values.begin(), label.values.end());
  }
  for (size_t i = 0; i < cases.ids.size() && cases.declared.empty(); ++i) {
    values.merge(labels_in(cases.labels(i)));
    for (const int ignored : config.labels.ignore) values.erase(ignored);
    if (values.size() > 1 + values.count(0)) break;
  }
  return values;
}

TrainResult train_trees(const TrainingCases& cases, const voxels::TrainConfig& config,
                        const TrainingRun& run, const Context& context) {
  const Turn turn = context.turn();
  Material material = make_material(cases, config, run.checkpoint, turn.context());
  if (is_forest(material.config)) {
    return grow<forest::PartialForest>(
        material, run,
        [](const auto& partial) { return std::to_string(partial.size()) + " trees"; },
        forest::train_forest, turn.context());
  }
  return grow<pbt::PartialModel>(
      material, run,
      [](const auto& partial) { return std::to_string(partial.finished) + " nodes"; },
      pbt::train_trees, turn.context());
}

void write_model(const std::string& path, const models::AnyModel& model) {
  std::visit([&](const auto& m) { models::write_model(path, m); }, model);
}

void check_labels(const std::vector<int>& wanted, const std::set<int>& seen, const char* key) {
  for (const int value : wanted) {
    if (seen.count(value) > 0) continue;
    std::string found;
    for (const int s : seen) found += (found.empty() ? "" : ", ") + std::to_string(s);
    throw InputError(std::string(key) + ": the label " + std::to_string(value) +
                     " never occurs in the training labels, which hold " + found);
  }
}

void for_each_case(const TrainingCases& cases, const Context& context,
                   const std::function<void(size_t, TrainingCase&)>& use, int64_t ahead_bytes) {
  std::deque<std::future<TrainingCase>> ahead;
  size_t next = 0;
  int64_t fit = 1;  // cases that may be in memory
  for (size_t i = 0; i < cases.ids.size(); ++i) {
    context.progress(0, "reading " + cases.ids[i]);
    for (; next < cases.ids.size() && static_cast<int64_t>(ahead.size()) < fit; ++next) {
      const auto how =
          ahead_bytes > 0 ? std::launch::async | std::launch::deferred : std::launch::deferred;
      ahead.push_back(std::async(how, cases.read, next));
    }
    TrainingCase one = ahead.front().get();
    ahead.pop_front();
    const int64_t bytes = static_cast<int64_t>(4 * (1 + one.images.size())) * one.labels.voxels();
    fit = std::clamp<int64_t>(ahead_bytes / std::max<int64_t>(bytes, 1), 1,
                              std::min<int64_t>({fit + 1, context.threads, 8}));
    try {
      if (cases.complete) cases.complete(i, one);
      use(i, one);
    } catch (const Error& error) {
      std::throw_with_nested(
          Error(error.code(), "cannot use the case '" + cases.ids[i] + "' (" + one.name + ")"));
    }
    context.throw_if_stopped("stopped while reading");
  }
}

}  // namespace larch
