// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "larch/angiography.h"
#include "larch/core/error.h"
#include "larch/dsa/registration.h"

namespace larch::dsa {
namespace {

/// The largest numbers that 16 bits hold beside the two that count as saturated.
constexpr int64_t kMaximumRange = 65533;

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
  if (high - low > kMaximumRange) {
    throw InputError("'" + fill_name + "' and '" + mask_name + "' hold values from " +
                     std::to_string(low) + " to " + std::to_string(high) + "; a range of up to " +
                     std::to_string(kMaximumRange) + " can be subtracted");
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

/// Histograms of smaller blocks are noisy, and their peaks often wrong.
constexpr int64_t kFewVoxels = 1024;

}  // namespace

void check_volume_config(const DsaConfig& config, const Vec3i& size, const Context& context) {
  using enum Method;
  if (config.method == kShift || config.method == kFlex) {
    throw UsageError("--method shift and flex are for sequences; volumes take block or none");
  }
  for (const Pass& pass : passes_of(config, /*is_volume=*/true)) {
    const Vec3i block = grid_of_pass(pass, size).block;
    const int64_t voxels = static_cast<int64_t>(block.x) * block.y * block.z;
    if (voxels < kFewVoxels) {
      context.warn("blocks of " + std::to_string(voxels) +
                   " voxels have few differences to compare; below " + std::to_string(kFewVoxels) +
                   " many vectors are wrong");
    }
    if (voxels <= kMaximumBlockPixels) continue;
    throw UsageError("blocks of " + std::to_string(voxels) +
                     " voxels are too large: " + std::to_string(kMaximumBlockPixels) +
                     " is the most; give --passes with blocks of 40 or less (usual: 16)");
  }
}

SubtractedFrames subtract_volume(const VolumeRequest& request, const Context& whole) {
  const Turn turn = whole.turn();
  const Context& context = turn.context();
  DsaConfig config = request.config;
  const Vec3i size = request.fill.size();
  require_on_grid("the mask volume", request.mask.grid(), "the volume", request.fill.grid());
  if (size.z < 2) {
    throw InputError("'" + request.fill_name +
                     "' is no volume; frames of a sequence are subtracted without --mask-volume");
  }
  require_region(request.region, static_cast<size_t>(request.fill.voxels()));
  check_volume_config(config, size, context);
  const StoredVolumes stored =
      stored_of(request.fill, request.mask, request.fill_name, request.mask_name);
  StoredValues values;
  values.bits = stored.bits;
  values.is_inverted = true;
  config.dark = 0;
  MaskInput input;
  input.size = size;
  input.stored = {stored.mask};
  input.table = make_sample_table(values, config);
  input.region = request.region;
  context.progress(0.2, "matching");
  const SequenceMask prepared = make_mask(input, config, context);
  const SequenceWants wants{.field = request.wants_field, .uncorrected = true};
  SubtractedFrames result = subtract_frames(prepared, stored.fill, config, wants, context);
  context.progress(1, "done");
  const int32_t at_edge = result.figures[0].edge_hits;
  if (at_edge > 0) {
    context.warn("the motion of " + std::to_string(at_edge) +
                 " blocks may exceed the search range of " + std::to_string(config.range) +
                 " voxels; give a larger --range");
  }
  return result;
}

}  // namespace larch::dsa
