// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "larch/levelset/speed/data_speed.h"
#include "tests/unit/levelset/problems.h"

// Data speeds of images, on the device of a context.
namespace larch::test {

/// A volume on the device of a context; empty where the volume is.
template <class T>
Buffer<T> on_device(const Volume<T>& volume, const Context& context) {
  return Buffer<T>(context.device,
                   std::span<const T>(volume.data(), static_cast<size_t>(volume.voxels())));
}
/// What D is made of; `pinned` may be empty.
struct SpeedParts {
  levelset::SpeedRule rule{};
  Volume<float> values{};
  Volume<uint8_t> pinned{};
};

/// D as it is stored, by brick.
inline std::vector<int16_t> speeds_by_brick(const SpeedParts& parts, const Context& context) {
  const Buffer<float> values = on_device(parts.values, context);
  const Buffer<uint8_t> pinned = on_device(parts.pinned, context);
  levelset::DataSpeed data;
  data.layout = levelset::make_brick_layout(parts.values.size());
  data.rule = parts.rule;
  data.values = values.data();
  data.pinned = pinned.empty() ? nullptr : pinned.data();
  Buffer<int16_t> stored(context.device, static_cast<size_t>(data.layout.stored_voxels()));
  levelset::make_data_speed(data, stored.data(), context);
  return stored.to_vector();
}

/// Intensities of 0 to 200 with a step, noise, and some that are no number.
inline Volume<float> uneven_image(const Vec3i& size) {
  Volume<float> image(levelset_grid(size));
  for (int64_t i = 0; i < image.voxels(); ++i) {
    const auto noise = static_cast<float>(hash_unit(11, 0, static_cast<uint64_t>(i)));
    image[i] = (i % 100 < 37 ? 90.0F : 20.0F) + 100 * noise;
    if (i % 29 == 7) image[i] = std::numeric_limits<float>::quiet_NaN();
    if (i % 31 == 3) image[i] = std::numeric_limits<float>::infinity();
  }
  return image;
}

/// Some voxels, scattered.
inline Volume<uint8_t> scattered(const Vec3i& size, double part) {
  Volume<uint8_t> voxels(levelset_grid(size));
  for (int64_t i = 0; i < voxels.voxels(); ++i) {
    voxels[i] = hash_unit(12, 0, static_cast<uint64_t>(i)) < part ? 1 : 0;
  }
  return voxels;
}

/// Every combination of what D can be made of, on images of a size.
inline std::vector<SpeedParts> all_speed_parts(const Vec3i& size) {
  std::vector<SpeedParts> all;
  const Grid grid = levelset_grid(size);
  for (int which = 0; which < 4; ++which) {
    SpeedParts parts;
    parts.values = uneven_image(size);
    parts.rule.window = {40.5, 150.25};
    if ((which & 1) != 0) {
      parts.rule.is_given = true;
      parts.rule.given_scale = 3;
      parts.values = volume_of<float>(
          grid, [](const Vec3d& at) { return 3.1 * std::sin(at.x + 2 * at.y - at.z); });
      for (int64_t i = 0; i < parts.values.voxels(); i += 37) parts.values[i] = -INFINITY;
    }
    if ((which & 2) != 0) parts.pinned = scattered(size, 0.2);
    all.push_back(std::move(parts));
  }
  return all;
}

}  // namespace larch::test
