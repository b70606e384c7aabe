// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/dsa/region.h"
#include "larch/dsa/registration.h"
#include "larch/dsa/sequence.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/pipeline/angiography/angiography_case.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/angiography_preview.h"
#include "larch/pipeline/angiography/outputs/angiography_report.h"

namespace larch::pipeline {
namespace {

/// The largest numbers that 16 bits hold beside the two that count as saturated.
constexpr int64_t kMostRange = 65533;

/// Both volumes as samples of 16 bits from 1 on: nothing in a volume is saturated.
struct StoredVolumes {
  std::vector<uint16_t> fill{}, mask{};
  int bits = 8;
};

StoredVolumes stored_of(const Volume<int32_t>& fill, const Volume<int32_t>& mask,
                        const std::string& fill_name, const std::string& mask_name) {
  const auto [fill_low, fill_high] = std::minmax_element(fill.begin(), fill.end());
  const auto [mask_low, mask_high] = std::minmax_element(mask.begin(), mask.end());
  const int64_t low = std::min(*fill_low, *mask_low), high = std::max(*fill_high, *mask_high);
  if (high - low > kMostRange) {
    throw InputError("'" + fill_name + "' and '" + mask_name + "' hold values from " +
                     std::to_string(low) + " to " + std::to_string(high) + "; a range of up to " +
                     std::to_string(kMostRange) + " can be subtracted");
  }
  StoredVolumes stored;
  while ((int64_t{1} << stored.bits) - 2 < high - low + 1) ++stored.bits;
  const auto shifted = [&](const Volume<int32_t>& volume) {
    std::vector<uint16_t> out(static_cast<size_t>(volume.voxels()));
    std::transform(volume.begin(), volume.end(), out.begin(),
                   [&](int32_t v) { return static_cast<uint16_t>(v - low + 1); });
    return out;
  };
  stored.fill = shifted(fill);
  stored.mask = shifted(mask);
  return stored;
}

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

/// Histograms of smaller blocks are noisy, and their peaks often wrong.
constexpr int64_t kFewVoxels = 1024;

/// Throws UsageError for what cannot be done with a volume of this size; warns of small blocks.
void check_volume_config(const dsa::DsaConfig& config, const Vec3i& size, const Context& context) {
  using enum dsa::Method;
  if (config.method == kShift || config.method == kFlex) {
    throw UsageError("--method shift and flex are for sequences; volumes take block or none");
  }
  for (const dsa::Pass& pass : dsa::passes_of(config, /*is_volume=*/true)) {
    const Vec3i block = dsa::grid_of_pass(pass, size).block;
    const int64_t voxels = static_cast<int64_t>(block.x) * block.y * block.z;
    if (voxels < kFewVoxels) {
      context.warn("blocks of " + std::to_string(voxels) +
                   " voxels have few differences to compare; below " + std::to_string(kFewVoxels) +
                   " many vectors are wrong");
    }
    if (voxels <= dsa::kMostBlockPixels) continue;
    throw UsageError("blocks of " + std::to_string(voxels) +
                     " voxels are too large: " + std::to_string(dsa::kMostBlockPixels) +
                     " is the most; give --passes with blocks of 40 or less (usual: 16)");
  }
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
  check_volume_config(o.config, fill.size, c.context());
  volume_region(c, o.roi, fill);
  return look_at_image(c);
}

Outputs subtract_volume(const cases::CaseJob& c, const AngiographyOptions& o,
                        const Context& context) {
  dsa::DsaConfig config = o.config;
  const auto fill = read_volume<int32_t>(c.row.image, c.read);
  const auto mask = read_volume<int32_t>(o.mask_volume, c.read);
  const Grid grid = fill.grid();
  cases::require_same_grid(o.mask_volume, mask.grid(), c.row.image, grid);
  if (grid.size.z < 2) {
    throw InputError("'" + c.row.image +
                     "' is no volume; frames of a sequence are subtracted without --mask-volume");
  }
  check_volume_config(config, grid.size, context);
  const StoredVolumes stored = stored_of(fill, mask, c.row.image, o.mask_volume);
  const std::vector<uint8_t> region = volume_region(c, o.roi, grid);
  dsa::StoredValues values;
  values.bits = stored.bits;
  values.is_inverted = true;
  config.dark = 0;
  dsa::MaskInput input;
  input.size = grid.size;
  input.stored = {stored.mask};
  input.table = dsa::make_sample_table(values, config);
  input.region = region;
  context.progress(0.2, "matching");
  const dsa::SequenceMask prepared = dsa::make_mask(input, config, context);
  const dsa::SequenceWants wants{.field = c.wants("field"), .uncorrected = true};
  const auto result = std::make_shared<const dsa::SubtractedFrames>(
      dsa::subtract_frames(prepared, stored.fill, config, wants, context));
  context.progress(1, "done");
  BlockCounts blocks;
  count_blocks(result->matches, result->figures[0], blocks);
  if (blocks.at_edge > 0) {
    context.warn("the motion of " + std::to_string(blocks.at_edge) +
                 " blocks may exceed the search range of " + std::to_string(config.range) +
                 " voxels; give a larger --range");
  }
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
