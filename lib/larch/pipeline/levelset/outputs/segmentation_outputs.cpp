// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/outputs/segmentation_outputs.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/filters/distance.h"
#include "larch/io/image/image.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/picture/qc.h"
#include "larch/pipeline/levelset/outputs/segmentation_report.h"

namespace larch::pipeline {
namespace {

// For the headers of files.
constexpr const char* kLevelSetText = "Larch level set in mm, phi < 0 inside, clamped";
constexpr const char* kDistanceText = "Larch signed distance in mm, negative inside";

Volume<uint8_t> mask_of(const LabelVolume& labels) {
  Volume<uint8_t> mask(labels.grid());
  std::transform(labels.begin(), labels.end(), mask.begin(),
                 [](int32_t label) { return static_cast<uint8_t>(label != 0); });
  return mask;
}

Volume<uint8_t> inside_of(const Volume<float>& phi) {
  Volume<uint8_t> mask(phi.grid());
  std::transform(phi.begin(), phi.end(), mask.begin(),
                 [](float value) { return static_cast<uint8_t>(value < 0); });
  return mask;
}

/// The distance from the outermost voxels of a mask; the diagonal where there is none.
Volume<float> distance_of(const Volume<uint8_t>& mask, int threads) {
  const int64_t inside = std::count(mask.begin(), mask.end(), uint8_t{1});
  if (inside > 0 && inside < mask.voxels()) return filters::signed_distance_mm(mask, threads);
  const Grid& grid = mask.grid();
  double squares = 0;
  for (int axis = 0; axis < 3; ++axis) {
    const double side = grid.size[axis] * grid.spacing_mm[axis];
    squares += side * side;
  }
  return Volume<float>(grid, static_cast<float>(std::sqrt(squares) * (inside == 0 ? 1 : -1)));
}

/// The surface where a level set is 0. Throws MemoryError, before it is made, if it takes more than
/// is free.
Mesh surface_of(Volume<float> phi, const Context& context) {
  const int64_t bytes = mesh::marching_cubes_bytes(mesh::surface_size(inside_of(phi), context),
                                                   phi.size(), context.threads);
  const auto free_bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
  if (bytes > free_bytes) {
    throw MemoryError("surface mesh: needs " + std::to_string(bytes) + " bytes, free are " +
                      std::to_string(free_bytes) +
                      "; leave the mesh out, or run where more is free");
  }
  for (float& value : phi) value = -value;  // positive inside, as the surface wants it
  return mesh::marching_cubes(phi, 0, context);
}

using SegmentationPtr = std::shared_ptr<const SegmentationJob>;

/// Adds the files of each label beside `path`, that of all. `write`: a label to a file.
template <class F>
void add_labels(const std::string& path, const SegmentationPtr& job, Outputs& outputs,
                const F& write) {
  if (path.empty()) return;
  for (size_t f = 0; f < job->result.by_label.size(); ++f) {
    outputs.add_companion(name_of_label(path, job->result.by_label[f].label),
                          [=](const std::string& name) { write(name, job->result.by_label[f]); });
  }
}

void add_figures(const levelset::SegmentResult& result, Outputs& outputs) {
  int64_t voxels = 0, iterations = 0;
  double volume_ml = 0;
  bool touches_border = false;
  for (const levelset::LabelResult& label : result.by_label) {
    voxels += label.voxels;
    volume_ml += label.volume_ml;
    iterations = std::max(iterations, label.progress.iterations);
    touches_border = touches_border || label.touches_border;
  }
  outputs.metric("voxels", static_cast<double>(voxels))
      .metric("volume_ml", volume_ml)
      .metric("iterations", static_cast<double>(iterations))
      .metric("touches_border", touches_border ? 1 : 0);
}

}  // namespace

Volume<float> level_set_of_all(const levelset::SegmentResult& result) {
  Volume<float> phi = result.by_label.at(0).phi_mm;
  for (size_t f = 1; f < result.by_label.size(); ++f) {
    const Volume<float>& other = result.by_label[f].phi_mm;
    for (int64_t i = 0; i < phi.voxels(); ++i) phi[i] = std::min(phi[i], other[i]);
  }
  return phi;
}

Volume<float> distance_of_all(const levelset::SegmentResult& result, int threads) {
  return distance_of(mask_of(result.labels), threads);
}

namespace {

/// Level set, distance and mesh, of all and of each label.
void add_surfaces(const cases::CaseJob& c, bool by_label, const SegmentationPtr& job,
                  Outputs& outputs) {
  const Context& context = c.context();
  const auto divided = [&](const char* flag) { return by_label ? c.file(flag) : ""; };
  outputs.add(c.file("level-set"), [=, threads = context.threads](const std::string& path) {
    write_volume(path, level_set_of_all(job->result), threads, kLevelSetText);
  });
  add_labels(
      divided("level-set"), job, outputs,
      [threads = context.threads](const std::string& path, const levelset::LabelResult& label) {
        write_volume(path, label.phi_mm, threads, kLevelSetText);
      });
  outputs.add(c.file("distance"), [=, threads = context.threads](const std::string& path) {
    write_volume(path, distance_of_all(job->result, threads), threads, kDistanceText);
  });
  add_labels(
      divided("distance"), job, outputs,
      [threads = context.threads](const std::string& path, const levelset::LabelResult& label) {
        write_volume(path, distance_of(inside_of(label.phi_mm), threads), threads, kDistanceText);
      });
  if (c.wants("mesh")) {
    auto surface = std::make_shared<Mesh>(surface_of(level_set_of_all(job->result), context));
    outputs.metric("triangles", static_cast<double>(surface->triangles.size()));
    outputs.add(c.file("mesh"), [=](const std::string& path) { write_mesh(path, *surface); });
    add_labels(
        divided("mesh"), job, outputs,
        [threads = context.threads](const std::string& path, const levelset::LabelResult& label) {
          Context own;
          own.threads = threads;
          write_mesh(path, surface_of(label.phi_mm, own));
        });
  }
}

}  // namespace

Outputs segmentation_outputs(const cases::CaseJob& c, bool by_label, const SegmentationPtr& job) {
  const levelset::Tracker tracker = job->request.config.tracker;
  Outputs outputs;
  outputs.grid(job->image, describe(job->request.image.grid()));
  add_figures(job->result, outputs);
  for (const auto& [step, seconds] : job->seconds) outputs.metric("seconds: " + step, seconds);
  outputs.report("segmentation", segmentation_report(job->result, job->request.config));
  for (const std::string& warning : job->result.warnings) outputs.note(warning);
  outputs.add(c.file("output"), [=, threads = c.context().threads](const std::string& path) {
    write_labelmap(path, job->result.labels, {}, threads);
  });
  add_surfaces(c, by_label, job, outputs);
  outputs.add(c.file("qc"), [=](const std::string& path) {
    write_png(path, picture::qc_picture(job->request.image, job->result.labels));
  });
  outputs.add(c.file("plot"), [=](const std::string& path) {
    const std::string name = std::filesystem::path(job->image).filename().string();
    write_png(path, segmentation_plot(job->result, tracker, name));
  });
  const bool is_empty =
      std::all_of(job->result.by_label.begin(), job->result.by_label.end(),
                  [](const levelset::LabelResult& label) { return label.voxels == 0; });
  if (is_empty) {
    outputs.status("rejected",
                   "nothing is left: the surface has vanished; place the seed in the structure, "
                   "make it larger, or choose --lower and --upper around its intensities");
  }
  return outputs;
}

}  // namespace larch::pipeline
