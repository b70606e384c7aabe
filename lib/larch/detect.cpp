// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/detect.h"

#include <algorithm>
#include <atomic>
#include <memory>
#include <utility>

#include "larch/config/config.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/experts/experts.h"
#include "larch/filters/components.h"
#include "larch/forest/evaluate.h"
#include "larch/image/preprocess.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/opened_model.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "larch/pose/box_voxels.h"
#include "larch/voxels/slabs.h"

namespace larch {
namespace {

Volume<float> resampled(const Volume<float>& map, const Grid& grid, const Context& context) {
  return image::resample(map, grid, context);
}
LabelVolume resampled(const LabelVolume& map, const Grid& grid, const Context& context) {
  return image::resample_labels(map, grid, context);
}
/// `outside`: the value outside of a region, which may be empty.
template <class T>
void bring_to(const Grid& grid, Volume<T>& map, const Volume<uint8_t>& region, T outside,
              const Context& context) {
  if (!describe_difference(map.grid(), grid, 1e-6).empty()) map = resampled(map, grid, context);
  map.set_geometry(grid);  // a single slice agrees whatever the spacing across it is
  for (int64_t i = 0; i < region.voxels(); ++i) {
    if (region[i] == 0) map[i] = outside;
  }
}

/// Returns what is shown of an image: the mean of its components.
Volume<float> shown(std::vector<Volume<float>> components) {
  Volume<float> image = std::move(components[0]);
  for (size_t k = 1; k < components.size(); ++k) {
    for (int64_t i = 0; i < image.voxels(); ++i) image[i] += components[k][i];
  }
  for (float& value : image) value /= static_cast<float>(components.size());
  return image;
}

/// Returns the region of interest in model space: voxels whose nearest input voxel is set.
Volume<uint8_t> roi_in_model_space(const Volume<uint8_t>& roi, const Grid& grid,
                                   const Context& context) {
  const auto labels = mapped<int32_t>(roi, [](uint8_t value) { return value; });
  return mapped<uint8_t>(image::resample_labels(labels, grid, context),
                         [](int32_t value) { return value != 0; });
}

/// A region of interest in model space and on the image's grid; empty: everywhere.
struct Region {
  Volume<uint8_t> in_model_space{};
  const Volume<uint8_t>& in_image;
};

/// Tells whether structures are to be told from what is around them by their probability.
bool needs_probability(const Model& model, const DetectRequest& request) {
  const bool asks_experts = request.distribution && !image_model(model).experts.empty();
  return model.has_background() && (request.labels || request.probability || asks_experts);
}

/// Returns the maps of a forest that a request needs.
forest::Wanted wanted_of(const Model& model, const DetectRequest& request) {
  forest::Wanted wanted;
  wanted.labels = request.labels && !model.has_background();
  wanted.distribution = request.distribution || needs_probability(model, request);
  wanted.leaves = request.leaves;
  const int trees = request.config.leaf_trees;
  if (trees > 0) wanted.leaf_trees = static_cast<uint32_t>(trees);
  return wanted;
}

/// The maps of an evaluation, of a forest or of boosting trees.
struct Maps : forest::Maps {
  Volume<float> probability;  ///< of the structures together
};

/// Replaces the probabilities by what the experts of the model say, where it has found anything.
void ask_experts(const Model& model, const Volume<int16_t>& image, int64_t memory_bytes, Maps& maps,
                 const Context& context) {
  const voxels::ImageModel& m = image_model(model);
  if (m.experts.empty() || maps.probability.empty()) return;
  if (memory_bytes <= 0) memory_bytes = voxels::default_memory_bytes(context.device);
  std::vector<Volume<float>> parts =
      experts::look_again(m.experts, model.opened().experts, image, m.space.intensity.steps,
                          maps.probability, memory_bytes, context);
  if (parts.empty()) {  // nothing was found at which they could look
    std::ranges::fill(maps.probability, 0.0F);
    return;
  }
  maps.probability =
      mapped<float>(experts::together(parts), [](float p) { return std::min(p, 1.0F); });
  const forest::Model* forest = forest_of(model);
  if (forest == nullptr) {
    if (!m.experts.table.empty()) maps.distribution = std::move(parts);
    return;
  }
  const auto around = static_cast<size_t>(forest->background);
  maps.distribution[around] = mapped<float>(maps.probability, [](float p) { return 1 - p; });
  for (size_t c = 0, part = 0; c < maps.distribution.size(); ++c) {
    if (c != around) maps.distribution[c] = std::move(parts[part++]);
  }
}

/// Evaluates components in model space and brings the maps to `grid`. Throws MemoryError.
Maps evaluate_voxels(const Model& model, const std::vector<Volume<int16_t>>& components,
                     const DetectRequest& request, const Region& where, const Grid& grid,
                     const Context& context) {
  const Volume<uint8_t>& roi = where.in_model_space;
  const Volume<uint8_t>* region = roi.empty() ? nullptr : &roi;
  Maps maps;
  const forest::Model* forest = forest_of(model);
  if (forest == nullptr) {
    maps.probability =
        pbt::evaluate_volume(std::get<pbt::ResidentModel>(model.opened().any), components,
                             request.config.evaluate, request.memory_bytes, context, region);
  } else {
    static_cast<forest::Maps&>(maps) =
        forest::evaluate_volume(std::get<forest::ResidentModel>(model.opened().any), components,
                                wanted_of(model, request), request.memory_bytes, context, region);
  }
  if (forest != nullptr && needs_probability(model, request)) {
    const auto around = static_cast<size_t>(forest->background);
    maps.probability = mapped<float>(maps.distribution[around], [](float p) { return 1 - p; });
    for (int64_t i = 0; i < roi.voxels(); ++i) {
      if (roi[i] == 0) maps.probability[i] = 0;
    }
  }
  ask_experts(model, components[0], request.memory_bytes, maps, context);
  const Volume<uint8_t>& inside = where.in_image;
  if (!maps.probability.empty()) bring_to(grid, maps.probability, inside, 0.0F, context);
  for (Volume<float>& map : maps.distribution) bring_to(grid, map, inside, 0.0F, context);
  for (LabelVolume& map : maps.leaves) bring_to(grid, map, inside, -1, context);
  for (LabelVolume& map : maps.labels) bring_to(grid, map, inside, 0, context);
  return maps;
}

/// One image on its way.
struct Job {
  const Model& model;
  const DetectRequest& request;
  Grid grid{};  ///< of the image
  LabelTable classes{};
  std::vector<std::optional<Pose>> boxes{};  ///< widened; by class, or empty
  Volume<uint8_t> region{};                  ///< 0 where no class is looked for; may be empty
  Volume<float> shown{};                     ///< empty unless a later step needs it
  Maps maps{};
};

/// The probabilities of experts are smooth already.
bool cuts_graph(const Job& job) {
  const std::optional<bool> wanted = job.request.config.structure.regularise;
  return job.request.labels && wanted.value_or(image_model(job.model).experts.empty());
}

/// Widens the boxes, and takes what lies outside of all of them out of the region. Returns the
/// classes whose boxes hold no voxel.
std::vector<size_t> set_region(Job& job, int threads) {
  const std::vector<std::optional<Pose>>& boxes = job.request.boxes;
  std::vector<size_t> outside;
  job.region = job.request.region;
  if (boxes.empty()) return outside;
  Volume<uint8_t> inside(job.grid);
  job.boxes.resize(boxes.size());
  for (size_t k = 0; k < boxes.size(); ++k) {
    if (!boxes[k]) continue;
    std::atomic<bool> holds_any{false};
    job.boxes[k] = pose::widened(*boxes[k], job.request.config.margin_mm);
    pose::for_voxels_in(*job.boxes[k], job.grid, threads, [&](const Vec3i& at) {
      inside(at) = job.region.empty() ? 1 : job.region(at);
      if (!holds_any) holds_any = true;
    });
    if (!holds_any) outside.push_back(k);
  }
  job.region = std::move(inside);
  return outside;
}

/// Gives the probability that a class has outside of its box to the background. What is left is
/// below 0, so that another class wins there even where all others are 0.
void keep_in_boxes(Job& job, int threads) {
  const forest::Model* forest = forest_of(job.model);
  if (job.boxes.empty() || job.maps.distribution.empty()) return;
  Volume<float>* background =
      forest == nullptr ? nullptr : &job.maps.distribution[static_cast<size_t>(forest->background)];
  parallel_for_each(threads, job.grid.voxels(), 1 << 14, [&](int64_t i) {
    auto box = job.boxes.begin();
    float moved = 0;
    for (Volume<float>& map : job.maps.distribution) {
      if (job.region[i] == 0 || &map == background) continue;
      const std::optional<Pose>& own = *box++;
      if (own && pose::holds(*own, job.grid, job.grid.voxel(i))) continue;
      moved += map[i];
      map[i] = -1;
    }
    if (background != nullptr) (*background)[i] += moved;
    if (job.maps.probability.empty()) return;
    job.maps.probability[i] = std::max(job.maps.probability[i] - moved, 0.0F);
  });
}

/// Returns the labels of structures: inside of them the likelier class wins, the first of equal
/// ones.
LabelVolume classes_inside(const Volume<uint8_t>& mask, const Model& model, const Maps& maps) {
  const forest::Model* forest = forest_of(model);
  const int32_t around = forest == nullptr ? -1 : forest->background;
  std::vector<int32_t> values;
  if (forest == nullptr) {
    for (const LabelEntry& entry : model.structures()) values.push_back(entry.value);
  } else {
    for (const forest::ForestClass& c : forest->class_table) values.push_back(c.value);
  }
  LabelVolume labels(mask.grid(), forest == nullptr ? 0 : values[static_cast<size_t>(around)]);
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] == 0) continue;
    const bool has_one = maps.distribution.empty();
    labels[i] = values[has_one ? 0 : forest::likeliest_structure(maps.distribution, around, i)];
  }
  return labels;
}

/// Moves the threshold to 1/2 on the logit scale, so that the energy of the graph cut, which knows
/// only 1/2, respects it.
Volume<float> centred(const Volume<float>& probability, double threshold) {
  return mapped<float>(probability, [=](float p) {
    const double on = p * (1 - threshold), off = (1 - p) * threshold;
    return on / (on + off);
  });
}

/// `image` is empty unless the weights of the graph need it.
Volume<uint8_t> segment(const Volume<float>& probability, const Volume<float>& image,
                        const StructureConfig& config, bool cuts, double threshold,
                        const Context& context) {
  Volume<float> moved;
  if (threshold != 0.5) moved = centred(probability, threshold);
  const Volume<float>& p = threshold == 0.5 ? probability : moved;
  if (!cuts) return mapped<uint8_t>(p, [](float value) { return value > 0.5F; });
  return regularise::graph_cut(p, image.empty() ? nullptr : &image, config.graph_cut, context);
}

/// Returns the smoothed surface. Throws MemoryError, before it is made, if it takes more than is
/// free.
Mesh surface_of(Volume<uint8_t> mask, const mesh::SmoothConfig& config, const Context& context) {
  const mesh::SurfaceSize size = mesh::surface_size(mask, context);
  mesh::require_memory(size,
                       std::max(mesh::marching_cubes_bytes(size, mask.size(), context.threads),
                                mesh::smooth_bytes(size, config)));
  Mesh surface = mesh::marching_cubes(mask, context);
  mask = {};
  return mesh::smooth(std::move(surface), config, context);
}

/// Resamples and quantises the image as the model wants it; in its turn it integrates channels and
/// evaluates the trees.
void evaluate(Job& job, std::vector<Volume<float>> components, const Context& context,
              StepSeconds& seconds) {
  const DetectRequest& request = job.request;
  const image::ModelSpace& space = image_model(job.model).space;
  std::vector<Volume<int16_t>> voxels;
  Region region{{}, job.region};
  {
    const Step step(seconds, "model space", 0, context);
    for (const Volume<float>& image : components) {
      voxels.push_back(image::to_model_space(image, space, context, request.name));
    }
    if (!job.region.empty()) {
      region.in_model_space = roi_in_model_space(job.region, voxels[0].grid(), context);
    }
    const bool has_contrast =
        request.config.structure.graph_cut.weights == regularise::EdgeCost::kContrast;
    if (request.shown || (cuts_graph(job) && has_contrast)) {
      job.shown = shown(std::move(components));
    }
    components.clear();
  }
  const Turn turn = context.turn();
  const Step step(seconds, "evaluation", 0.2, turn.context());
  job.maps = evaluate_voxels(job.model, voxels, request, region, job.grid, turn.context());
  keep_in_boxes(job, turn.context().threads);
}

/// Goes from the probability to the labels and their surfaces.
void find_structure(Job& job, Detection& found, const Context& context) {
  const DetectRequest& request = job.request;
  const StructureConfig& config = request.config.structure;
  auto step = std::make_unique<Step>(found.seconds, "structure", 0.6, context);
  if (!job.maps.labels.empty()) {  // every voxel is of a class
    found.labels = std::move(job.maps.labels[0]);
    found.voxels = job.grid.voxels() - std::count(job.region.begin(), job.region.end(), 0);
  }
  const Volume<float>& probability = job.maps.probability;
  if (probability.empty()) return;
  const std::optional<double> of_model = image_model(job.model).info.measured("threshold");
  const double threshold = config.threshold.value_or(of_model.value_or(0.5));
  found.threshold = threshold;
  if (!request.labels) {
    found.voxels = std::count_if(probability.begin(), probability.end(),
                                 [t = static_cast<float>(threshold)](float p) { return p > t; });
    return;
  }
  Volume<uint8_t> mask =
      segment(probability, job.shown, config, cuts_graph(job), threshold, context);
  if (config.keep_components > 0) {
    const bool many = job.classes.size() > 1;
    const LabelVolume classes = many ? classes_inside(mask, job.model, job.maps) : LabelVolume{};
    mask = filters::keep_largest_component(mask, config.keep_components, context.threads,
                                           many ? &classes : nullptr);
  }
  if (config.fill_holes) mask = filters::fill_holes(mask, context.threads);
  for (int64_t i = 0; i < job.region.voxels(); ++i) {
    if (job.region[i] == 0) mask[i] = 0;
  }
  found.voxels = std::count_if(mask.begin(), mask.end(), [](uint8_t m) { return m != 0; });
  found.labels = classes_inside(mask, job.model, job.maps);
  if (!request.surfaces) return;
  step.reset();
  const Step surfaces(found.seconds, "surface", 0.9, context);
  found.surfaces.push_back(surface_of(std::move(mask), request.config.smooth, context));
  for (size_t k = 0; k < job.classes.size() && job.classes.size() > 1; ++k) {
    const auto of_class =
        mapped<uint8_t>(found.labels, [&](int32_t label) { return label == job.classes[k].value; });
    found.surfaces.push_back(surface_of(of_class, request.config.smooth, context));
  }
}

/// Throws InputError unless the images are as many as the model takes, on one grid.
void check_images(const Model& model, const std::vector<Volume<float>>& components,
                  const DetectRequest& request) {
  const size_t needed = std::max<size_t>(image_model(model).components.size(), 1);
  if (components.size() != needed || components[0].empty()) {
    throw InputError(request.name + " has " + std::to_string(components.size()) +
                     " components; the model takes " + std::to_string(needed));
  }
  for (const Volume<float>& image : components) {
    require_on_grid("a component", image.grid(), request.name, components[0].grid());
  }
  if (!request.boxes.empty() && !model.has_background()) {
    throw UsageError("the model has no background class, to which voxels outside of boxes belong");
  }
  if (!request.boxes.empty() && request.boxes.size() != model.structures().size()) {
    throw InputError("boxes are as many as the structures of the model");
  }
  if (!request.region.empty()) {
    require_on_grid("the region", request.region.grid(), request.name, components[0].grid());
  }
}

}  // namespace

Detection detect(const Model& model, std::vector<Volume<float>> components,
                 const DetectRequest& request, const Context& context) {
  check_images(model, components, request);
  check_settings(model, request.config);
  Job job{model, request, components[0].grid()};
  job.classes = model.structures();
  Detection found;
  found.outside = set_region(job, context.threads);
  evaluate(job, std::move(components), context, found.seconds);
  find_structure(job, found, context);
  if (request.probability) found.probability = std::move(job.maps.probability);
  if (request.distribution) found.distribution = std::move(job.maps.distribution);
  for (Volume<float>& map : found.distribution) {
    if (!job.boxes.empty()) map = mapped<float>(map, [](float p) { return std::max(p, 0.0F); });
  }
  found.leaves = std::move(job.maps.leaves);
  if (request.shown) found.shown = std::move(job.shown);
  return found;
}

std::vector<Candidate> top_candidates(const Volume<float>& probability, int64_t count) {
  std::vector<Candidate> best;
  if (count <= 0) return best;
  // Voxels that may be among the best are collected until they are twice as many as wanted; then
  // the better half is kept, and its last one is the bar for those that follow.
  const auto wanted = static_cast<size_t>(std::min(count, probability.voxels()));
  const auto keep = static_cast<std::ptrdiff_t>(wanted);
  const auto comes_before = [](const Candidate& a, const Candidate& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.voxel < b.voxel;
  };
  std::optional<Candidate> bar;
  for (int64_t i = 0; i < probability.voxels(); ++i) {
    const Candidate candidate{i, probability[i]};
    if (bar && !comes_before(candidate, *bar)) continue;
    best.push_back(candidate);
    if (best.size() < 2 * wanted) continue;
    std::nth_element(best.begin(), best.begin() + (keep - 1), best.end(), comes_before);
    best.resize(wanted);
    bar = best.back();
  }
  std::sort(best.begin(), best.end(), comes_before);
  best.resize(std::min(wanted, best.size()));
  return best;
}

int64_t detection_bytes(const Model& model, const Grid& grid, const DetectRequest& request,
                        bool has_region, const Device& device) {
  const Vec3i size = image::model_grid(grid, image_model(model).space).size;
  if (const forest::Model* forest = forest_of(model)) {
    return forest::plan_slabs(*forest, size, wanted_of(model, request), has_region,
                              request.memory_bytes, device)
        .bytes;
  }
  const auto problem = voxels::slab_problem(size, has_region, request.memory_bytes, device);
  return pbt::plan_slabs(std::get<pbt::ResidentModel>(model.opened().any).model, problem).bytes;
}

void check_settings(const Model& model, const DetectConfig& config) {
  if (model.is_forest()) {
    config::require_default(config.evaluate, "evaluate.", "boosting trees");
  }
  if (model.has_background()) return;
  config::require_default(config.structure, "structure.", "models with a background class");
  config::require_default(config.smooth, "smooth.", "models with a background class");
}

}  // namespace larch
