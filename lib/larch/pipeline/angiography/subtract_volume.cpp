// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/angiography.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/frame_outputs.h"

namespace larch::pipeline {
namespace {

std::vector<uint8_t> volume_region(const cases::CaseJob& c, const std::string& name,
                                   const Grid& grid) {
  if (name.empty()) return {};
  const LabelVolume roi = read_labels(name, label_options(c.read, grid));
  cases::require_same_grid(name, roi.grid(), c.row.image, grid);
  std::vector<uint8_t> inside = region_of_labels(roi);
  if (dsa::count_inside(inside) == 0) {
    throw InputError("'" + name + "': no voxel is left inside of the region");
  }
  return inside;
}

template <class T>
Volume<T> on_grid(const Grid& grid, const std::vector<T>& values) {
  Volume<T> volume(grid);
  std::copy(values.begin(), values.end(), volume.begin());
  return volume;
}

/// `grid`: the one that the field is written on.
VectorField field_of(const dsa::SubtractedFrames& result, const Grid& grid) {
  VectorField field = on_grid(grid, result.field_px);
  for (Vec3f& v : field) {
    const Vec3d spacing = grid.spacing_mm;
    v = (grid.direction * Vec3d{v.x * spacing.x, v.y * spacing.y, v.z * spacing.z}).cast<float>();
  }
  return field;
}

void add_volume_files(const cases::CaseJob& c, const AngiographyOptions& o, const Grid& grid,
                      const std::shared_ptr<const dsa::SubtractedFrames>& result, int threads,
                      Outputs& outputs) {
  const dsa::BlockGrid blocks = dsa::last_grid(o.config, grid.size);
  outputs.add(c.file("output"), [=](const std::string& path) {
    write_volume(path, on_grid(grid, result->difference), threads);
  });
  outputs.add(c.file("field"), [=, on = o.field_grid(grid)](const std::string& path) {
    write_vector_field(path, field_of(*result, on), threads);
  });
  outputs.add(c.file("validity"), [=](const std::string& path) {
    write_volume(path, on_grid(grid, result->validity), threads);
  });
  outputs.add(c.file("grid"), [=, metric = o.config.metric](const std::string& path) {
    write_file(path,
               grid_header(/*is_volume=*/true) + grid_rows(0, blocks, result->matches, metric));
  });
  outputs.add(c.file("preview"), [=](const std::string& path) {
    // The slice in the middle.
    const int z = grid.size.z / 2;
    const PreviewFrame slice =
        preview_frame(z, *result, static_cast<size_t>(z), {grid.size.x, grid.size.y, 1}, {});
    write_png(path, preview_picture(slice, blocks));
  });
}

}  // namespace

cases::CaseLook look_at_volume(const cases::CaseJob& c, const AngiographyOptions& o) {
  const Grid fill = probe_image(c.row.image, c.read).grid;
  cases::require_same_grid(o.mask_volume, probe_image(o.mask_volume, c.read).grid, c.row.image,
                           fill);
  dsa::check_volume_config(o.config, fill.size, c.context());
  volume_region(c, o.roi, fill);
  return look_at_image(c);
}

Outputs subtract_volume(const cases::CaseJob& c, const AngiographyOptions& o,
                        const Context& context) {
  dsa::VolumeRequest request;
  request.fill_name = c.row.image;
  request.mask_name = o.mask_volume;
  request.fill = read_volume<int32_t>(c.row.image, c.read);
  request.mask = read_volume<int32_t>(o.mask_volume, c.read);
  const Grid grid = request.fill.grid();
  cases::require_same_grid(o.mask_volume, request.mask.grid(), c.row.image, grid);
  request.region = volume_region(c, o.roi, grid);
  request.wants_field = c.wants("field");
  request.config = o.config;
  const auto result =
      std::make_shared<const dsa::SubtractedFrames>(dsa::subtract_volume(request, context));
  const dsa::BlockCounts blocks = dsa::count_blocks(result->matches, result->figures[0]);
  Outputs outputs;
  outputs.grid(c.row.image, describe(grid))
      .metric("blocks", static_cast<double>(blocks.all))
      .metric("unreliable", static_cast<double>(blocks.unreliable))
      .metric("edge_hits", static_cast<double>(blocks.at_edge))
      .metric("longest_motion_px", result->figures[0].field.longest_px);
  add_volume_files(c, o, grid, result, context.threads, outputs);
  return outputs;
}

}  // namespace larch::pipeline
