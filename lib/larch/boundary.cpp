// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/boundary.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "larch/boundary/slide.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/image/preprocess.h"
#include "larch/mesh/sphere_template.h"
#include "larch/mesh/voxelise.h"
#include "larch/opened_model.h"
#include "larch/pose/truth.h"

namespace larch {
namespace {

constexpr double kMaximumLost = 0.5;  ///< vertices without a boundary, where no confidence is known

/// Returns a structure of a model; no name: its only one. Throws UsageError.
const boundary::ResidentModel& structure_of(const Model& model, const std::string& name) {
  const auto& all = opened_as<boundary::ResidentModels>(model, "one of boundaries");
  std::string names;
  for (const boundary::ResidentModel& one : all) {
    if (one.model.structure == name || (name.empty() && all.size() == 1)) return one;
    names += (names.empty() ? "" : ", ") + one.model.structure;
  }
  throw UsageError("the model has no structure '" + name + "'; it has " + names);
}

/// Throws InputError unless a refinement can start from a mesh.
void check_mesh(const BoundaryStart& start) {
  if (mesh::template_level_of(start.mesh) < 0) {
    throw InputError(start.name + " has " + std::to_string(start.mesh.vertices_mm.size()) +
                     " vertices and is no mesh of boundary-refine, whose vertices correspond; "
                     "for another segmentation give its label map (--start-labels)");
  }
  if (mesh::signed_volume_mm3(start.mesh) <= 0) {
    throw InputError(start.name + " is turned inside out");
  }
}

Vec3d grid_mm_of_world(const Grid& grid, const Vec3d& world_mm) {
  const Vec3d index = index_from_world(grid, world_mm);
  return {index.x * grid.spacing_mm.x, index.y * grid.spacing_mm.y, index.z * grid.spacing_mm.z};
}
Mesh world_mesh(const Grid& grid, const std::vector<Vec3d>& vertices_mm) {
  Mesh mesh;
  for (const Vec3d& at : vertices_mm)
    mesh.vertices_mm.push_back(grid.origin_mm + grid.direction * at);
  for (const mesh::TemplateLevel& level : mesh::sphere_template().levels) {
    if (level.rings.size() == vertices_mm.size()) mesh.triangles = level.triangles;
  }
  mesh.frame = grid.frame;
  return mesh;
}

/// Throws InputError if the whole start lies outside of the image; says so if a part does.
std::string check_inside(const Mesh& start, const Grid& grid, const std::string& structure) {
  const std::string what = "the start" + (structure.empty() ? "" : " of '" + structure + "'");
  size_t outside = 0;
  for (const Vec3d& at : start.vertices_mm) {
    outside += grid.holds(index_from_world(grid, at)) ? 0 : 1;
  }
  if (outside == start.vertices_mm.size()) {
    throw InputError(what + " lies outside of the image; is it of another image or frame?");
  }
  if (outside == 0) return {};
  return "a part of " + what + " lies outside of the image (" + std::to_string(outside) + " of " +
         std::to_string(start.vertices_mm.size()) +
         " vertices), where there is no boundary to find";
}

/// The start in mm along the axes of the grid in model space; `mesh`: as it lies in the world.
boundary::Start make_start(const BoundaryStart& given, const boundary::Model& model,
                           const Grid& space, Mesh& mesh) {
  boundary::Start start;
  if (!given.pose) {
    check_mesh(given);
    for (const Vec3d& at : given.mesh.vertices_mm) {
      start.vertices_mm.push_back(grid_mm_of_world(space, at));
    }
    mesh = world_mesh(space, start.vertices_mm);
    start.vertices_mm.resize(static_cast<size_t>(mesh::kTemplateVertices[0]));
    return start;
  }
  start.pose = hdn::grid_from_world(space, *given.pose);
  mesh = world_mesh(space, boundary::placed_mean(model, start.pose));
  return start;
}

/// How far each vertex has moved, outwards positive, from where the start has it.
std::vector<float> displacements(const Mesh& start, const Mesh& result) {
  std::vector<float> moved(result.vertices_mm.size(), 0);
  const mesh::SphereTemplate& sphere = mesh::sphere_template();
  for (const mesh::TemplateLevel& level : sphere.levels) {
    if (level.rings.size() != std::min(start.vertices_mm.size(), result.vertices_mm.size()))
      continue;
    for (size_t v = 0; v < level.rings.size(); ++v) {
      const Vec3d normal =
          mesh::vertex_normal(level.rings[v], start.vertices_mm.data(), static_cast<int>(v));
      moved[v] = static_cast<float>(dot(result.vertices_mm[v] - start.vertices_mm[v], normal));
    }
  }
  return moved;
}

/// Starts near the given one: a quarter of the size to either side along each axis of the shape.
std::vector<boundary::Start> starts_near(const boundary::Start& given,
                                         const boundary::Model& model) {
  Pose pose = given.pose;
  if (!given.vertices_mm.empty()) {
    shape::ShapeFit fit;
    const shape::Similarity at =
        shape::fit_similarity(OneThread{}, static_cast<int>(given.vertices_mm.size()),
                              model.shape.mean_mm.data(), given.vertices_mm.data(), fit);
    pose = {at.centre, at.rotation, model.shape.edges_mm * at.scale};
  }
  std::vector<boundary::Start> starts;
  for (int k = 0; k < 6; ++k) {
    Vec3d shift{};
    shift[k / 2] = (k % 2 == 0 ? 0.25 : -0.25) * pose.edges_mm[k / 2];
    Pose moved = pose;
    moved.centre_mm += rotate(pose.rotation, shift);
    starts.push_back({moved, {}});
  }
  return starts;
}

/// The result of the start, or, where the model is not sure of it, the surest of those of starts
/// near it that count as found.
boundary::Refined refine_surely(const boundary::ResidentModel& resident,
                                const std::vector<image::LevelImage>& images,
                                const boundary::Start& start, double& confidence,
                                const Context& context) {
  const boundary::Model& model = resident.model;
  const auto run = [&](const boundary::Start& from) {
    context.throw_if_stopped("stopped between starts");
    return boundary::refine(resident, images, from, 0, model.levels() - 1, context);
  };
  boundary::Refined best = run(start);
  if (!model.confidence.is_known()) return best;
  confidence = model.confidence(boundary::measures_of(model, best));
  double wanted = model.confidence.calibration.found;
  if (confidence >= wanted) return best;
  for (const boundary::Start& near : starts_near(start, model)) {
    boundary::Refined other = run(near);
    const double sure = model.confidence(boundary::measures_of(model, other));
    if (sure < wanted) continue;
    confidence = wanted = sure;
    best = std::move(other);
  }
  return best;
}

/// Finds what is said of the result from what was measured of it.
void add_figures(const boundary::Model& model, RefinedBoundary& out) {
  const auto count = static_cast<double>(out.probability.size());
  double lost = 0, moved = 0;
  for (const float p : out.probability) lost += p < boundary::kFound ? 1 : 0;
  for (const float mm : out.displacement_mm) moved += std::abs(static_cast<double>(mm));
  out.without_boundary = lost / count;
  out.displacement_voxels = moved / count / model.space.spacing_mm.x;
  const int level = std::max(mesh::template_level_of(out.mesh), 0);
  out.volume_mm3 = mesh::signed_volume_mm3(out.mesh);
  out.area_mm2 = mesh::area_mm2(out.mesh);
  out.flipped_triangles = mesh::flipped_triangles(level, out.mesh.vertices_mm);
  const learning::Calibration& rule = model.confidence.calibration;
  if (out.confidence < 0) {
    out.status = out.without_boundary > kMaximumLost ? "not found" : "found";
  } else {
    out.status = out.confidence < rule.least   ? "not found"
                 : out.confidence < rule.found ? "uncertain"
                                               : "found";
  }
}

}  // namespace

std::vector<RefinedBoundary> refine_boundaries(const Model& opened, Volume<float> image,
                                               std::span<const BoundaryStart> given,
                                               const Context& context, const std::string& name) {
  std::vector<RefinedBoundary> all(given.size());
  if (all.empty()) return all;
  const Grid grid = image.grid();
  Volume<int16_t> voxels;
  std::vector<boundary::Start> starts;
  {
    const Step step(all[0].seconds, "model space", 0, context);
    const image::ModelSpace& space = structure_of(opened, given[0].structure).model.space;
    voxels = image::to_model_space(image, space, context, name);
    image = {};
    for (size_t k = 0; k < all.size(); ++k) {
      starts.push_back(make_start(given[k], structure_of(opened, given[k].structure).model,
                                  voxels.grid(), all[k].start));
      all[k].remark = check_inside(all[k].start, grid, given[k].structure);
    }
  }
  std::vector<boundary::Refined> refined;
  {
    const Turn turn = context.turn();
    const Step step(all[0].seconds, "refinement", 0.3, turn.context());
    const auto images =
        boundary::make_images(opened_as<boundary::ResidentModels>(opened, "one of boundaries"),
                              voxels, image::extent_of(grid, voxels.grid()), turn.context());
    for (size_t k = 0; k < all.size(); ++k) {
      refined.push_back(refine_surely(structure_of(opened, given[k].structure), images, starts[k],
                                      all[k].confidence, turn.context()));
    }
  }
  {
    const Step step(all[0].seconds, "sliding", 0.9, context);
    parallel_for_each(context.threads, static_cast<int64_t>(all.size()), 1, [&](size_t k) {
      const boundary::Model& model = structure_of(opened, given[k].structure).model;
      boundary::slide(model, refined[k]);
      all[k].mesh = world_mesh(voxels.grid(), refined[k].vertices_mm);
      all[k].probability = std::move(refined[k].probability);
      all[k].displacement_mm = displacements(all[k].start, all[k].mesh);
      add_figures(model, all[k]);
    });
  }
  return all;
}

RefinedBoundary refine_boundary(const Model& opened, Volume<float> image,
                                const BoundaryStart& given, const Context& context,
                                const std::string& name) {
  return std::move(refine_boundaries(opened, std::move(image), {&given, 1}, context, name)[0]);
}

Pose pose_of_labels(const Model& opened, const std::string& structure, const LabelVolume& labels,
                    const std::string& name) {
  const boundary::Model& model = structure_of(opened, structure).model;
  Volume<uint8_t> mask = pose::structure_mask(labels, model.labels);
  if (mask.empty() && opened.structures().size() == 1) {
    // A program that finds one structure gives it a label of its own.
    mask = pose::structure_mask(labels, {});
    if (mask.empty()) throw InputError(name + " is empty: it has no voxel to start from");
  }
  if (mask.empty()) {
    throw InputError(name + " has no voxel of '" + model.structure + "' to start from");
  }
  return pose::fit_pose(mask, model.mean_distance_mm).pose;
}

LabelVolume labels_of(const Mesh& mesh, const Grid& grid, int32_t label, const Context& context) {
  return mapped<int32_t>(mesh::voxelise(mesh, grid, context),
                         [&](uint8_t inside) { return inside != 0 ? label : 0; });
}

std::string check_start(const Model& opened, const BoundaryStart& given, const Grid& grid) {
  const boundary::Model& model = structure_of(opened, given.structure).model;
  Mesh start;
  make_start(given, model, image::model_grid(grid, model.space), start);
  return check_inside(start, grid, given.structure);
}

}  // namespace larch
