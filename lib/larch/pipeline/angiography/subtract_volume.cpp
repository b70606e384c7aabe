// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/subtract_volume.h"

#include <algorithm>
#include <memory>
#include <vector>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/data/vector_field.h"
#include "larch/dsa/region.h"
#include "larch/dsa/registration.h"
#include "larch/dsa/sequence.h"
#include "larch/files/file.h"
#include "larch/io/image/vector_image.h"
#include "larch/pipeline/angiography/outputs/angiography_preview.h"
#include "larch/pipeline/angiography/outputs/angiography_report.h"

namespace larch::pipeline {
namespace {

/// The largest numbers that 16 bits hold beside the two that count as saturated.
constexpr int64_t kMostRange = 65533;

/// Both volumes as samples of 16 bits from 1 on: nothing in a volume is saturated.
struct StoredVolumes {
  std::vector<uint16_t> fill{}, mask{};
  int32_t least = 0;
  int bits = 8;
};

StoredVolumes stored_of(const VolumeRequest& request, const Volume<int32_t>& fill,
                        const Volume<int32_t>& mask) {
  const auto [fill_low, fill_high] = std::minmax_element(fill.begin(), fill.end());
  const auto [mask_low, mask_high] = std::minmax_element(mask.begin(), mask.end());
  const int64_t low = std::min(*fill_low, *mask_low), high = std::max(*fill_high, *mask_high);
  if (high - low > kMostRange) {
    throw InputError("'" + request.fill + "' and '" + request.mask + "' hold values from " +
                     std::to_string(low) + " to " + std::to_string(high) + "; a range of up to " +
                     std::to_string(kMostRange) + " can be subtracted");
  }
  StoredVolumes stored;
  stored.least = static_cast<int32_t>(low);
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

void require_same_grid(const std::string& a, const Grid& of_a, const std::string& b,
                       const Grid& of_b) {
  const std::string difference = describe_difference(of_a, of_b, 1e-2);
  if (difference.empty()) return;
  throw InputError("'" + a + "' is not on the grid of '" + b + "': " + difference +
                   "; resample it");
}

std::vector<uint8_t> region_of(const VolumeRequest& request, const Grid& grid) {
  if (request.roi.empty()) return {};
  const LabelVolume roi = read_labels(request.roi, label_options(request.read));
  require_same_grid(request.roi, roi.grid(), request.fill, grid);
  std::vector<uint8_t> inside(static_cast<size_t>(roi.voxels()));
  std::transform(roi.begin(), roi.end(), inside.begin(),
                 [](int32_t label) { return static_cast<uint8_t>(label != 0); });
  if (dsa::count_inside(inside) == 0) {
    throw InputError("'" + request.roi + "': no voxel is left inside of the region");
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
                   " voxels have few differences to "
                   "compare; below " +
                   std::to_string(kFewVoxels) + " many vectors are wrong");
    }
    if (voxels <= dsa::kMostBlockPixels) continue;
    throw UsageError("a block of " + std::to_string(pass.block) + " voxels a side has " +
                     std::to_string(block.x) + " x " + std::to_string(block.y) + " x " +
                     std::to_string(block.z) + " of them here, and " +
                     std::to_string(dsa::kMostBlockPixels) +
                     " is the most; give --block or --passes with blocks of 40 or less (usual: " +
                     std::to_string(dsa::kVolumeBlock) + ")");
  }
}

dsa::SequenceWants wants_of(const VolumeRequest& request) {
  return {.field = !request.files.field.empty(), .shifted = false, .uncorrected = true};
}

/// The result on the grid of the input.
struct SubtractedVolume {
  Grid grid{};
  dsa::SubtractedFrames result{};
};

VectorField field_of(const SubtractedVolume& volume, FieldUnits units) {
  const Grid grid = field_grid(volume.grid, units);
  VectorField field(grid);
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const Vec3f d = volume.result.field_px[static_cast<size_t>(i)];
    const Vec3d mm = grid.direction * Vec3d{d.x * grid.spacing_mm.x, d.y * grid.spacing_mm.y,
                                            d.z * grid.spacing_mm.z};
    field[i] = mm.cast<float>();
  }
  return field;
}

/// The slice in the middle.
PreviewFrame middle_slice(const SubtractedVolume& volume) {
  const Vec3i size = volume.grid.size;
  const size_t pixels = static_cast<size_t>(size.x) * static_cast<size_t>(size.y);
  const size_t first = pixels * static_cast<size_t>(size.z / 2);
  const auto slice = [&](const std::vector<int16_t>& all) {
    const auto from = all.begin() + static_cast<ptrdiff_t>(first);
    return std::vector<int16_t>(from, from + static_cast<ptrdiff_t>(pixels));
  };
  PreviewFrame frame;
  frame.frame = size.z / 2;
  frame.size = {size.x, size.y, 1};
  frame.uncorrected = slice(volume.result.uncorrected);
  frame.corrected = slice(volume.result.difference);
  return frame;
}

template <class T>
Volume<T> on_grid(const Grid& grid, const std::vector<T>& values) {
  Volume<T> volume(grid);
  std::copy(values.begin(), values.end(), volume.begin());
  return volume;
}

void add_files(const AngiographyFiles& files, FieldUnits units, const dsa::BlockGrid& grid,
               dsa::Metric metric, const std::shared_ptr<const SubtractedVolume>& volume,
               int threads, Outputs& outputs) {
  outputs.add(files.difference, [=](const std::string& path) {
    write_volume(path, on_grid(volume->grid, volume->result.difference), threads);
  });
  outputs.add(files.field, [=](const std::string& path) {
    write_vector_field(path, field_of(*volume, units), threads);
  });
  outputs.add(files.validity, [=](const std::string& path) {
    write_volume(path, on_grid(volume->grid, volume->result.validity), threads);
  });
  outputs.add(files.grid, [=](const std::string& path) {
    write_file(
        path, grid_header(/*is_volume=*/true) + grid_rows(0, grid, volume->result.matches, metric));
  });
  outputs.add(files.preview, [=](const std::string& path) {
    write_png(path, preview_picture(middle_slice(*volume), grid));
  });
}

}  // namespace

void check_volume(const VolumeRequest& request, const dsa::DsaConfig& config,
                  const Context& context) {
  const ImageInfo fill = probe_image(request.fill, request.read);
  const ImageInfo mask = probe_image(request.mask, request.read);
  require_same_grid(request.mask, mask.grid, request.fill, fill.grid);
  check_volume_config(config, fill.grid.size, context);
}

Outputs subtract_volume(const VolumeRequest& request, const dsa::DsaConfig& given,
                        const Context& context) {
  dsa::DsaConfig config = given;
  const auto fill = read_volume<int32_t>(request.fill, request.read);
  const auto mask = read_volume<int32_t>(request.mask, request.read);
  const Grid grid = fill.grid();
  require_same_grid(request.mask, mask.grid(), request.fill, grid);
  if (grid.size.z < 2) {
    throw InputError("'" + request.fill +
                     "' is no volume; frames of a sequence are subtracted without --mask-volume");
  }
  check_volume_config(config, grid.size, context);
  const StoredVolumes stored = stored_of(request, fill, mask);
  const std::vector<uint8_t> region = region_of(request, grid);
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
  const dsa::SequenceWants wants = wants_of(request);
  const auto volume = std::make_shared<SubtractedVolume>();
  std::vector<Vec3i> previous;
  volume->grid = grid;
  volume->result = dsa::subtract_frames(prepared, stored.fill, config, wants, previous, context);
  context.progress(1, "done");
  const FrameRecord record =
      record_of(0, volume->result.matches, volume->result.figures[0], {}, config.metric);
  if (record.blocks.at_edge > 0) {
    context.warn("the motion of " + std::to_string(record.blocks.at_edge) +
                 " blocks may exceed the search range of " + std::to_string(config.range) +
                 " voxels; give a larger --range");
  }
  Outputs outputs;
  outputs.grid(request.fill, describe(grid));
  outputs.metric("blocks", static_cast<double>(record.blocks.all))
      .metric("unreliable", static_cast<double>(record.blocks.unreliable))
      .metric("edge_hits", static_cast<double>(record.blocks.at_edge))
      .metric("longest_motion_px", record.figures.field.longest_px);
  add_files(request.files, request.field_units, dsa::last_grid(config, grid.size), config.metric,
            volume, context.threads, outputs);
  return outputs;
}

}  // namespace larch::pipeline
