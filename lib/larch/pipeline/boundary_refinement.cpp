// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/boundary_refinement.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/boundary/slide.h"
#include "larch/core/error.h"
#include "larch/core/step.h"
#include "larch/features/steerable/steerable_math.h"
#include "larch/hdn/model.h"
#include "larch/io/markups/markups.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/measures.h"
#include "larch/mesh/sphere_template.h"
#include "larch/mesh/voxelise.h"
#include "larch/picture/canvas.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/training_files.h"
#include "larch/pose/truth.h"

namespace larch::pipeline {
namespace {

constexpr double kMostLost = 0.5;  ///< vertices without a boundary, where no confidence is known

/// One image on its way.
struct RefinementJob {
  Volume<float> image{};  ///< empty after the refinement unless a picture is wanted
  Grid grid{};            ///< of the image
  Mesh start{}, result{};
  std::vector<float> probability{}, displacement_mm{};
  int32_t label = 1;
  std::string name{};  ///< of the structure
  StepSeconds seconds{};
  double confidence = -1;  ///< below 0: the model does not know
  std::string remark{};    ///< about the start
};

BoundaryStart start_of(const cases::CaseJob& c, const BoundaryStart& given) {
  BoundaryStart start = given;
  if (c.is_of_list) {
    start = {cell_of(c.row, kPosesStart), c.row.label, cell_of(c.row, kMeshStart)};
  }
  const int count =
      (start.poses.empty() ? 0 : 1) + (start.labels.empty() ? 0 : 1) + (start.mesh.empty() ? 0 : 1);
  if (count != 1) {
    throw InputError("a refinement starts from one of poses, a label map and a mesh; here are " +
                     std::to_string(count));
  }
  return start;
}

/// The pose of the structure in a file of poses, world.
Pose pose_in_file(const std::string& path, const std::string& structure) {
  std::string names;
  for (const DetectedPose& one : read_any_poses(path)) {
    if (one.name == structure) {
      if (one.has_pose) return one.pose;
      throw InputError("'" + path + "': '" + structure + "' is " + one.status +
                       "; there is no pose to start from");
    }
    names += (names.empty() ? "" : ", ") + one.name;
  }
  throw InputError("'" + path + "' has no structure '" + structure + "'; it has " + names);
}

Pose pose_of_labels(const std::string& path, const boundary::Model& model,
                    const ReadOptions& read) {
  const LabelVolume labels = read_labels(path, label_options(read));
  const Volume<uint8_t> mask = pose::structure_mask(labels, model.labels);
  if (mask.empty()) {
    // A program that finds one structure gives it a label of its own.
    const Volume<uint8_t> any = pose::structure_mask(labels, {});
    if (any.empty()) throw InputError("'" + path + "' is empty: it has no voxel to start from");
    return pose::fit_pose(any, model.mean_distance_mm).pose;
  }
  return pose::fit_pose(mask, model.mean_distance_mm).pose;
}

/// The vertices of a mesh that a run of the same topology has written, world.
std::vector<Vec3d> vertices_of_mesh(const std::string& path, const ReadOptions& read) {
  const Mesh mesh = read_mesh(path, read.warn);
  if (mesh::template_level_of(mesh) < 0) {
    throw InputError("'" + path + "' has " + std::to_string(mesh.vertices_mm.size()) +
                     " vertices and is no mesh of this program, whose vertices correspond; for "
                     "another segmentation give its label map with --start-labels");
  }
  if (mesh::signed_volume_mm3(mesh) <= 0) {
    throw InputError("'" + path + "' is turned inside out");
  }
  return mesh.vertices_mm;
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

/// Throws InputError if the whole start lies outside of the image; warns and says so if a part
/// does.
std::string check_inside(const cases::CaseJob& c, const Mesh& start, const Grid& grid) {
  size_t outside = 0;
  for (const Vec3d& at : start.vertices_mm) {
    const Vec3d index = index_from_world(grid, at);
    bool is_inside = true;
    for (int axis = 0; axis < 3; ++axis) {
      is_inside = is_inside && index[axis] >= -0.5 && index[axis] <= grid.size[axis] - 0.5;
    }
    outside += is_inside ? 0 : 1;
  }
  if (outside == start.vertices_mm.size()) {
    throw InputError("the start lies outside of the image; is it of another image or frame?");
  }
  if (outside == 0) return {};
  std::string remark = "a part of the start lies outside of the image (" + std::to_string(outside) +
                       " of " + std::to_string(start.vertices_mm.size()) +
                       " vertices), where there is no boundary to find";
  c.context().warn((c.is_of_list ? "case '" + c.row.id + "': " : "") + remark);
  return remark;
}

/// The start in mm along the axes of the grid in model space; `mesh`: as it lies in the world.
boundary::Start make_start(const BoundaryStart& files, const boundary::Model& model,
                           const Grid& space, const ReadOptions& read, Mesh& mesh) {
  boundary::Start start;
  if (!files.mesh.empty()) {
    for (const Vec3d& at : vertices_of_mesh(files.mesh, read)) {
      start.vertices_mm.push_back(grid_mm_of_world(space, at));
    }
    mesh = world_mesh(space, start.vertices_mm);
    start.vertices_mm.resize(static_cast<size_t>(mesh::kTemplateVertices[0]));
    return start;
  }
  const Pose pose = files.poses.empty() ? pose_of_labels(files.labels, model, read)
                                        : pose_in_file(files.poses, model.structure);
  start.pose = hdn::grid_from_world(space, pose);
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

LabelVolume labels_of(const Mesh& mesh, const Grid& grid, int32_t label, const Context& context) {
  return mapped<int32_t>(mesh::voxelise(mesh, grid, context),
                         [&](uint8_t inside) { return inside != 0 ? label : 0; });
}

void add_files(const cases::CaseJob& c, const std::shared_ptr<const RefinementJob>& job,
               Outputs& outputs) {
  Context host;
  host.threads = c.context().threads;
  outputs.add(c.file("output"), [=](const std::string& path) {
    const VertexNumbers numbers[] = {{"probability", job->probability},
                                     {"displacement_mm", job->displacement_mm}};
    write_mesh(path, job->result, numbers);
  });
  const std::string labels = c.file("labelmap");
  const picture::Rgb colour = picture::palette_colour(job->label);
  const LabelTable table{{job->label, job->name, {colour.r, colour.g, colour.b}}};
  if (!labels.empty()) {
    outputs.add(labels, [=](const std::string& path) {
      write_labelmap(path, labels_of(job->result, job->grid, job->label, host), table,
                     host.threads);
    });
    outputs.add_companion(cases::companion_of(labels, ".tsv"),
                          [=](const std::string& path) { write_label_table(path, table); });
  }
  outputs.add(c.file("qc"), [=](const std::string& path) {
    const LabelVolume start = labels_of(job->start, job->grid, job->label, host);
    picture::QcOptions options;
    options.reference = &start;
    options.colours = table;
    write_png(path, picture::qc_picture(
                        job->image, labels_of(job->result, job->grid, job->label, host), options));
  });
}

/// Returns what the result is called.
std::string status_of(const RefinementJob& job, const learning::Calibration& rule, double lost) {
  if (job.confidence < 0) return lost > kMostLost ? "not found" : "found";
  return job.confidence < rule.least   ? "not found"
         : job.confidence < rule.found ? "uncertain"
                                       : "found";
}

void add_figures(const RefinementJob& job, const boundary::Model& model, Outputs& outputs) {
  const auto count = static_cast<double>(job.probability.size());
  double sum = 0, lost = 0, moved = 0;
  for (const float p : job.probability) {
    sum += p;
    lost += p < boundary::kFound ? 1 : 0;
  }
  lost /= count;
  for (const float mm : job.displacement_mm) moved += std::abs(static_cast<double>(mm));
  const int level = std::max(mesh::template_level_of(job.result), 0);
  outputs.metric("volume_ml", mesh::signed_volume_mm3(job.result) / 1000)
      .metric("area_cm2", mesh::area_mm2(job.result) / 100)
      .metric("probability", sum / count)
      .metric("displacement_mm", moved / count)
      .metric("displacement_voxels", moved / count / model.space.spacing_mm.x)
      .metric("flipped_triangles", mesh::flipped_triangles(level, job.result.vertices_mm))
      .metric("without_boundary", lost);
  for (const auto& [step, seconds] : job.seconds) outputs.metric("seconds: " + step, seconds);
  const std::string status = status_of(job, model.confidence.calibration, lost);
  nlohmann::ordered_json structure{{"name", job.name}, {"status", status}};
  std::string message;
  if (status != "found") message = "'" + job.name + "' is " + status;
  char text[64];
  if (job.confidence >= 0) {
    outputs.metric("confidence", job.confidence);
    structure["confidence"] = job.confidence;
    std::snprintf(text, sizeof text, " (confidence %.2f)", job.confidence);
  } else {
    std::snprintf(text, sizeof text, ": %.0f %% of the vertices find no boundary", 100 * lost);
  }
  if (!message.empty()) message += text;
  if (!job.remark.empty()) message += (message.empty() ? "" : "; ") + job.remark;
  outputs.report("structure", structure);
  if (!message.empty()) outputs.note(message);
  outputs.status(status == "not found" ? "rejected" : "done", message);
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

}  // namespace

Outputs refine_boundary(const cases::CaseJob& c, const boundary::ResidentModel& resident,
                        const BoundaryStart& given) {
  const boundary::Model& model = resident.model;
  const BoundaryStart files = start_of(c, given);
  const auto job = std::make_shared<RefinementJob>();
  job->image = read_volume<float>(c.row.image, c.read);
  job->grid = job->image.grid();
  job->name = model.structure;
  job->label = model.labels.size() == 1 ? model.labels[0] : 1;
  if (c.wants("labelmap")) require_image_holds(c.file("labelmap"), job->grid.size);
  if (!c.is_of_list) c.context().info(describe(job->grid));
  Volume<int16_t> voxels;
  boundary::Start start;
  {
    const Step step(job->seconds, "model space", 0, c.context());
    voxels = image::to_model_space(job->image, model.space, c.context(), "'" + c.row.image + "'");
    if (!c.wants("qc")) job->image = {};
    start = make_start(files, model, voxels.grid(), c.read, job->start);
    job->remark = check_inside(c, job->start, job->grid);
  }
  {
    const Turn turn = c.context().turn();
    const Step step(job->seconds, "refinement", 0.3, turn.context());
    const auto images = boundary::make_images(
        resident, voxels, image::extent_of(job->grid, voxels.grid()), turn.context());
    boundary::Refined refined =
        refine_surely(resident, images, start, job->confidence, turn.context());
    boundary::slide(model, refined);
    job->result = world_mesh(voxels.grid(), refined.vertices_mm);
    job->probability = std::move(refined.probability);
  }
  job->displacement_mm = displacements(job->start, job->result);
  c.context().progress(1, "done");
  Outputs outputs;
  outputs.grid(c.row.image, describe(job->grid));
  add_figures(*job, model, outputs);
  add_files(c, job, outputs);
  return outputs;
}

void check_start(const cases::CaseJob& c, const boundary::Model& model,
                 const BoundaryStart& given) {
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  Mesh start;
  make_start(start_of(c, given), model, image::model_grid(grid, model.space), c.read, start);
  check_inside(c, start, grid);
}

cases::CaseLook look_at_boundary(const cases::CaseJob& c, const boundary::ResidentModel& resident,
                                 const BoundaryStart& start) {
  start_of(c, start);
  const Grid grid = cases::probe_one_volume(c.row.image, c.read).grid;
  if (c.wants("labelmap")) require_image_holds(c.file("labelmap"), grid.size);
  const boundary::Model& model = resident.model;
  const Grid space = image::model_grid(grid, model.space, "'" + c.row.image + "'");
  cases::CaseLook look = cases::look_of(grid);
  look.cells.emplace_back("in the model", cases::size_cell(space));
  // The image, and of each resolution voxels and texels, which together are a seventh more.
  const auto per_voxel = static_cast<int64_t>(sizeof(int16_t) + sizeof(image::Texel));
  look.bytes = 4 * grid.voxels() + 2 * space.voxels() + per_voxel * space.voxels() * 8 / 7;
  return look;
}

}  // namespace larch::pipeline
