// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/case_labels.h"

#include <algorithm>
#include <array>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <utility>

#include "larch/boundary.h"
#include "larch/cases/images.h"
#include "larch/config/text.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/itk/find_images.h"
#include "larch/io/mesh/mesh_io.h"

namespace larch::pipeline {
namespace {

using io::bad;

/// Returns the masks of a folder by the names of their structures; empty if it is none.
std::map<std::string, std::string> masks_in(const std::string& folder) {
  std::map<std::string, std::string> masks;
  if (!is_folder(folder)) return masks;
  for (const std::string& file : files_in(folder)) {
    std::string name = std::filesystem::path(file).filename().string();
    const bool is_mask = is_named_as_volume(file) || has_mesh_extension(file);
    if (!is_mask || name.starts_with('.')) continue;
    name.erase(name.size() - file_extension(name).size());
    if (!masks.emplace(name, file).second) {
      bad(folder, "two masks are called '" + name + "'; move one away");
    }
  }
  return masks;
}

/// Throws InputError unless each edge of the triangles is run through as often in one direction as
/// in the other. Vertices at one place are one.
void require_closed(const Mesh& mesh, const std::string& path) {
  using Place = std::array<double, 3>;
  std::map<std::pair<Place, Place>, int> runs;
  const auto place = [&mesh](int32_t vertex) {
    const Vec3d& mm = mesh.vertices_mm[static_cast<size_t>(vertex)];
    return Place{mm.x, mm.y, mm.z};
  };
  for (const Vec3i& triangle : mesh.triangles) {
    for (int k = 0; k < 3; ++k) {
      const Place a = place(triangle[k]), b = place(triangle[(k + 1) % 3]);
      if (a != b) runs[std::minmax(a, b)] += a < b ? 1 : -1;
    }
  }
  const auto open = std::ranges::count_if(runs, [](const auto& run) { return run.second != 0; });
  if (open == 0) return;
  bad(path, "the surface is not closed: " + std::to_string(open) +
                " edges lack a triangle on one side, or have one that is turned inside out; close "
                "it, or give a label map");
}

/// Returns 1 inside of a closed surface.
LabelVolume read_surface(const std::string& path, const Grid& grid, const ReadOptions& image) {
  const Mesh mesh = read_mesh(path, image.warn);
  require_closed(mesh, path);
  LabelVolume labels = labels_of(mesh, grid, 1, Context{});
  if (std::ranges::count(labels, 1) == 0) {
    bad(path,
        "the surface encloses no voxel of the image; surfaces are taken to be LPS mm unless their "
        "header says SPACE=RAS");
  }
  const Vec3i& size = grid.size;
  const auto outside = std::ranges::count_if(mesh.vertices_mm, [&](const Vec3d& vertex_mm) {
    const Vec3d at = index_from_world(grid, vertex_mm);
    return std::min({at.x, at.y, at.z, size.x - 1 - at.x, size.y - 1 - at.y, size.z - 1 - at.z}) <
           -0.5;
  });
  if (outside > 0 && image.warn) {
    image.warn("'" + path + "': " + std::to_string(outside) +
               " vertices of the surface lie outside of the image; is it of the same frame?");
  }
  return labels;
}

/// Reads a label map or a surface.
LabelVolume read_file(const std::string& path, const Case& c, const Grid& grid,
                      const ReadOptions& image) {
  if (has_mesh_extension(path)) return read_surface(path, grid, image);
  LabelVolume labels = read_labels(path, label_options(image, grid));
  cases::require_same_grid(c.image, grid, path, labels.grid());
  return labels;
}

}  // namespace

std::vector<DatasetLabel> classes_of_masks(const std::vector<Case>& cases) {
  std::set<std::string> names;
  size_t folders = 0, files = 0;
  for (const Case& c : cases) {
    const std::map<std::string, std::string> masks = masks_in(c.label);
    if (!c.label.empty()) ++(masks.empty() ? files : folders);
    for (const auto& [name, file] : masks) names.insert(name);
  }
  if (folders > 0 && files > 0) {
    throw InputError("the labels of " + std::to_string(folders) +
                     " cases are folders of masks, of " + std::to_string(files) +
                     " others they are none; give the one or the other");
  }
  std::vector<DatasetLabel> classes;
  classes.reserve(names.size());
  for (const std::string& name : names) {
    classes.push_back({name, {static_cast<int32_t>(classes.size()) + 1}});
  }
  return classes;
}

LabelVolume read_case_labels(const Case& c, const Grid& grid,
                             const std::vector<DatasetLabel>& classes, const ReadOptions& image) {
  const std::map<std::string, std::string> masks = masks_in(c.label);
  if (masks.empty()) return read_file(c.label, c, grid, image);
  LabelVolume labels(grid);
  std::vector<std::string> missing, shared;
  std::map<int32_t, int64_t> voxels;
  for (const auto& [name, values] : classes) {
    const int32_t label = values[0];
    const auto file = masks.find(name);
    if (file == masks.end()) {
      missing.push_back(name);
      continue;
    }
    const LabelVolume mask = read_file(file->second, c, grid, image);
    std::map<int32_t, int64_t> overlap;  // with those before it
    int32_t value = 0;
    for (int64_t i = 0; i < mask.voxels(); ++i) {
      if (mask[i] == 0) continue;
      if (mask[i] != value && value != 0) bad(file->second, "a mask has one value beside 0");
      value = mask[i];
      ++voxels[label];
      if (labels[i] != 0) ++overlap[labels[i]];
      labels[i] = labels[i] == 0 ? label : labels[i];
    }
    for (const auto& [other, count] : overlap) {
      shared.push_back(classes[static_cast<size_t>(other) - 1].name + " and " + name + " (" +
                       std::to_string(count) + " voxels)");
      if (10 * count <= std::min(voxels[label], voxels[other])) continue;
      bad(c.label,
          "masks overlap in more than a tenth of a structure, and a voxel has one label: " +
              shared.back() + "; move one of them away");
    }
  }
  const auto warn = [&](const char* what, const std::vector<std::string>& of) {
    if (of.empty() || !image.warn) return;
    image.warn("case '" + c.id + "', '" + c.label + "': " + what + config::join(of));
  };
  warn("no masks of structures that are taken not to be there: ", missing);
  warn("masks overlap, where the first one counts: ", shared);
  return labels;
}

}  // namespace larch::pipeline
