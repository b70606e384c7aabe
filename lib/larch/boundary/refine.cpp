// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary/refine.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <span>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/features/steerable/steerable.h"
#include "larch/mesh/sphere_template.h"

namespace larch::boundary {
namespace {

using StepFunction = void(const LevelView&, const MeshState&, const Context&);
using RangeFunction = void(const LevelView&, const MeshState&, double, const Context&);

constexpr size_t kMaximum = mesh::kMaximumTemplateVertices;
/// The range of displacements shrinks from one iteration of a level to the next.
constexpr double kRanges[] = {1, 0.75, 0.5, 0.35};

/// The buffers of a search for the first shape.
struct SearchBuffers {
  Buffer<Vec3d> x;
  Buffer<float> probabilities;
  Buffer<double> scores, chosen;
  SearchView view;

  SearchBuffers(const ResidentModel& resident, const Pose& pose, const Device& device)
      : chosen(device, 3) {
    const Model& model = resident.model;
    if (model.refine.search == ShapeSearch::kBoundary) {
      view.modes = std::min(model.refine.search_modes, model.modes());
    }
    for (int k = 0; k < view.modes; ++k) view.candidates *= kSearchValues;
    const size_t places =
        static_cast<size_t>(view.candidates) * static_cast<size_t>(mesh::kTemplateVertices[0]);
    x = Buffer<Vec3d>(device, places);
    probabilities = Buffer<float>(device, places);
    scores = Buffer<double>(device, static_cast<size_t>(view.candidates));
    view.centre = pose.centre_mm;
    view.turn = shape::turn_of(pose, model.shape.edges_mm);
    view.x = x.data();
    view.probabilities = probabilities.data();
    view.scores = scores.data();
    view.chosen = chosen.data();
  }
};

}  // namespace

namespace cpu {

void begin_level(const LevelView& level, const MeshState& state, const Context&) {
  boundary::begin_level(OneThread{}, level, state);
}

void score(const LevelView& level, const MeshState& state, double range, const Context& context) {
  parallel_for(context.threads, level.count, 4, [&](int64_t begin, int64_t end) {
    for (auto v = static_cast<int>(begin); v < end; ++v) {
      for (int j = 0; j < kDisplacements; ++j) {
        state.probabilities[kDisplacements * v + j] =
            level.classifier.probability(features::moved_along_normal(
                state.frames[v], static_cast<float>(displacement(range, j))));
      }
    }
  });
}

void update(const LevelView& level, const MeshState& state, double range, const Context& context) {
  parallel_for(context.threads, level.count, 64, [&](int64_t begin, int64_t end) {
    for (auto v = static_cast<int>(begin); v < end; ++v) take_peak(level, state, range, v);
  });
  update_mesh(OneThread{}, level, state);
}

void search_shape(const LevelView& level, const SearchView& search, const MeshState& state,
                  const Context& context) {
  const int candidates = search.modes > 0 ? search.candidates : 0;
  parallel_for(context.threads, candidates, 1, [&](int64_t begin, int64_t end) {
    for (auto c = static_cast<int>(begin); c < end; ++c) {
      for (int v = 0; v < level.count; ++v) place_candidate(level, search, c, v);
      for (int v = 0; v < level.count; ++v) {
        search.probabilities[c * level.count + v] =
            level.classifier.probability(candidate_frame(level, search, c, v));
      }
    }
  });
  choose_shape(OneThread{}, level, search, state);
}

}  // namespace cpu

namespace {

constexpr Dispatch<StepFunction> kBegin{"boundary::begin_level", cpu::begin_level,
                                        LARCH_CUDA_FN(cuda::begin_level)};
constexpr Dispatch<RangeFunction> kScore{"boundary::score", cpu::score, LARCH_CUDA_FN(cuda::score)};
constexpr Dispatch<RangeFunction> kUpdate{"boundary::update", cpu::update,
                                          LARCH_CUDA_FN(cuda::update)};
constexpr Dispatch<void(const LevelView&, const SearchView&, const MeshState&, const Context&)>
    kSearch{"boundary::search_shape", cpu::search_shape, LARCH_CUDA_FN(cuda::search_shape)};

/// Returns the view of a level, for refine and for training.
LevelView level_view(const ResidentModel& resident, int level,
                     const std::vector<image::LevelImage>& images) {
  const Model& model = resident.model;
  const ResidentModel::Level& there = resident.levels[static_cast<size_t>(level)];
  const Stage& stage = model.stages[static_cast<size_t>(level)];
  LevelView view;
  view.rings = there.rings.data();
  view.parents = there.parents.data();
  view.first = level > 0 ? mesh::kTemplateVertices[level - 1] : 0;
  view.count = mesh::kTemplateVertices[level];
  view.shape = {resident.mean.data(),
                resident.modes.data(),
                there.duals.data(),
                resident.deviations.data(),
                model.modes(),
                static_cast<int>(kMaximum),
                view.count};
  view.classifier.trees = there.trees.views.data();
  view.classifier.tree_count = static_cast<uint32_t>(there.trees.views.size());
  view.classifier.features = there.features.data();
  view.classifier.images =
      features::steerable_images(images, stage.halvings, model.space.intensity.steps);
  view.scale = model.scale(level);
  view.extent = images[0].extent;
  view.range_voxels = stage.range_voxels;
  view.lambda = image::by_level(model.refine.lambda, level);
  view.project = image::by_level(model.refine.project, level);
  view.fairing = model.refine.fairing;
  view.smooths_positions = model.refine.smoothing == Smoothing::kPositions;
  return view;
}

}  // namespace

MeshBuffers::MeshBuffers(const Device& device)
    : vectors(device, 5 * kMaximum),
      numbers(device, 7 * kMaximum),
      probabilities(device, kDisplacements * kMaximum),
      frames(device, kMaximum),
      fit(device, 1),
      turn(device, 1) {
  vectors.set_zero();
  state.x = vectors.data();
  state.best = reinterpret_cast<float*>(state.x + kMaximum);
  state.normals = state.x + 2 * kMaximum;
  state.points = state.normals + kMaximum;
  state.part = state.points + kMaximum;
  state.frames = frames.data();
  state.probabilities = probabilities.data();
  double* next = numbers.data();
  for (double** array :
       {&state.wanted, &state.weights, &state.moved, &state.smoothing.residual,
        &state.smoothing.direction, &state.smoothing.product, &state.smoothing.inverse}) {
    *array = std::exchange(next, next + kMaximum);
  }
  state.fit = fit.data();
  state.turn = turn.data();
}

ResidentModel make_resident(Model model, const Device& device) {
  ResidentModel resident;
  for (int l = 0; l < model.levels(); ++l) {
    const mesh::TemplateLevel& of = mesh::sphere_template().levels[static_cast<size_t>(l)];
    Stage& stage = model.stages[static_cast<size_t>(l)];
    std::vector<uint16_t> parents;
    for (const auto& four : of.parents) parents.insert(parents.end(), four.begin(), four.end());
    ResidentModel::Level& level = resident.levels.emplace_back();
    level.rings = {device, of.rings};
    level.parents = {device, parents};
    level.duals = {device, shape::duals_of(model.shape, model.modes(), l)};
    level.trees = features::resident_trees(stage.features, tree::flatten(stage.trees, {}), device);
    level.features = {device, stage.features};
    stage.trees = {};
    stage.features.clear();
  }
  const shape::FlatModes flat = shape::flat_modes(model.shape, model.modes());
  resident.mean = {device, model.shape.mean_mm};
  resident.modes = {device, flat.modes};
  resident.deviations = {device, flat.deviations};
  resident.model = std::move(model);
  return resident;
}

std::vector<image::LevelImage> make_images(std::span<const ResidentModel> models,
                                           const Volume<int16_t>& voxels,
                                           const image::ImageExtent& extent,
                                           const Context& context) {
  int finest = models[0].model.stages[0].halvings, coarsest = 0;
  for (const ResidentModel& resident : models) {
    for (const Stage& stage : resident.model.stages) {
      finest = std::min(finest, stage.halvings);
      coarsest = std::max(coarsest, stage.halvings);
    }
  }
  return image::make_levels(voxels.view(), coarsest + features::kSteerableLevels - 1, finest,
                            context, extent);
}

std::vector<Vec3d> placed_mean(const Model& model, const Pose& pose) {
  return shape::placed_mean(model.shape, pose,
                            mesh::kTemplateVertices[std::max(model.levels() - 1, 0)]);
}

Refined refine(const ResidentModel& resident, const std::vector<image::LevelImage>& images,
               const Start& start, int first, int last, const Context& context) {
  const Device& device = context.device;
  MeshBuffers mesh(device);
  SearchBuffers search(resident, start.pose, device);
  mesh.vectors.upload(start.vertices_mm);
  for (int l = first; l <= last; ++l) {
    const LevelView level = level_view(resident, l, images);
    if (l == 0 && start.vertices_mm.empty()) {
      kSearch(device, level, search.view, mesh.state, context);
    }
    kBegin(device, level, mesh.state, context);
    for (int k = 0; k < resident.model.refine.iterations; ++k) {
      const double range = level.range_voxels * kRanges[std::min(k, 3)];
      kScore(device, level, mesh.state, range, context);
      kUpdate(device, level, mesh.state, range, context);
    }
  }
  // Vertices and probabilities lie behind each other, so that they are read back together.
  const auto count = static_cast<size_t>(mesh::kTemplateVertices[last]);
  std::vector<Vec3d> read(kMaximum + count * sizeof(float) / sizeof(Vec3d) + 1);
  mesh.vectors.download(read);
  Refined out{{}, std::vector<float>(count)};
  std::memcpy(out.probability.data(), &read[kMaximum], count * sizeof(float));
  read.resize(count);
  out.vertices_mm = std::move(read);
  return out;
}

std::vector<Vec3d> best_places(const ResidentModel& resident,
                               const std::vector<image::LevelImage>& images,
                               const std::vector<Vec3d>& vertices_mm, int level,
                               const Context& context) {
  const Device& device = context.device;
  MeshBuffers mesh(device);
  mesh.vectors.upload(vertices_mm);
  const LevelView view = level_view(resident, level, images);
  kBegin(device, view, mesh.state, context);
  kScore(device, view, mesh.state, view.range_voxels, context);
  std::vector<Vec3d> read = mesh.vectors.to_vector();
  const std::vector<float> p = mesh.probabilities.to_vector();
  std::vector<Vec3d> places;
  for (size_t v = 0; v < static_cast<size_t>(view.count); ++v) {
    const Peak peak = find_peak(p.data() + kDisplacements * v, view.range_voxels);
    places.push_back(read[v] + read[2 * kMaximum + v] * (peak.voxels * view.scale.spacing_mm));
  }
  return places;
}

}  // namespace larch::boundary
