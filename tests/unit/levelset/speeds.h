// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <limits>
#include <span>
#include <vector>

#include "larch/levelset/speed/data_speed.h"
#include "larch/levelset/speed/regions.h"
#include "tests/unit/levelset/problems.h"

// Sums of regions and data speeds of images, on the device of a context.
namespace larch::test {

/// A volume on the device of a context; empty where the volume is.
template <class T>
Buffer<T> on_device(const Volume<T>& volume, const Context& context) {
  return Buffer<T>(context.device,
                   std::span<const T>(volume.data(), static_cast<size_t>(volume.voxels())));
}
template <class T>
const T* pointer_to(const Buffer<T>& buffer) {
  return buffer.empty() ? nullptr : buffer.data();
}

/// A surface in an image. `pinned` may be empty.
struct RegionImages {
  Volume<float> image{}, phi{};
  Volume<uint8_t> pinned{};
};

inline levelset::RegionSums region_sums_of(const RegionImages& images, const Vec3i& reach,
                                           const Context& context) {
  levelset::LevelsetField field;
  field.layout = levelset::make_brick_layout(images.phi.size());
  levelset::set_phi(field, images.phi, context);
  const Buffer<float> intensities = on_device(images.image, context);
  const Buffer<uint8_t> pinned = on_device(images.pinned, context);
  levelset::Regions regions;
  regions.layout = field.layout;
  regions.phi = field.phi[0].data();
  regions.intensities = intensities.data();
  regions.pinned = pointer_to(pinned);
  regions.steps = levelset::intensity_steps_of(images.image, context.threads);
  regions.reach = reach;
  return levelset::region_sums(regions, context);
}

inline levelset::RegionMeans region_means(const RegionImages& images, double band_mm,
                                          const Context& context = {}) {
  const Vec3i reach = levelset::region_reach(images.phi.grid(), band_mm);
  return levelset::means_of(region_sums_of(images, reach, context),
                            levelset::intensity_steps_of(images.image, 1));
}

/// What D is made of; `given`, `pinned` and `edge_stop` may be empty.
struct SpeedParts {
  levelset::SpeedRule rule{};
  Volume<float> image{}, given{};
  Volume<uint8_t> pinned{};
  Volume<int16_t> edge_stop{};
};

/// D as it is stored, by brick.
inline std::vector<int16_t> speeds_by_brick(const SpeedParts& parts, const Context& context) {
  const Buffer<float> intensities = on_device(parts.image, context);
  const Buffer<float> given = on_device(parts.given, context);
  const Buffer<uint8_t> pinned = on_device(parts.pinned, context);
  const Buffer<int16_t> edge_stop =
      parts.edge_stop.empty() ? Buffer<int16_t>() : levelset::by_brick(parts.edge_stop, context);
  levelset::DataSpeed data;
  data.layout = levelset::make_brick_layout(parts.image.size());
  data.rule = parts.rule;
  data.images = {pointer_to(intensities), pointer_to(given), pointer_to(pinned)};
  data.edge_stop = pointer_to(edge_stop);
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

/// phi is below 0 where `inside` is not 0.
inline RegionImages region_images(const Vec3i& size, const Volume<uint8_t>& inside,
                                  bool is_pinned) {
  RegionImages images;
  images.image = uneven_image(size);
  images.phi = Volume<float>(levelset_grid(size), 2.5F);
  for (int64_t i = 0; i < images.phi.voxels(); ++i) {
    if (inside[i] != 0)
      images.phi[i] = i % 3 == 0 ? -1e-30F : -2.0F;
    else if (i % 5 == 0)
      images.phi[i] = 0;
  }
  if (is_pinned) {
    images.pinned = Volume<uint8_t>(levelset_grid(size));
    for (int64_t i = 0; i < images.pinned.voxels(); ++i) images.pinned[i] = i % 7 == 2 ? 1 : 0;
  }
  return images;
}

/// Every combination of what D can be made of, on images of a size.
inline std::vector<SpeedParts> all_speed_parts(const Vec3i& size) {
  std::vector<SpeedParts> all;
  const Grid grid = levelset_grid(size);
  for (int which = 0; which < 16; ++which) {
    SpeedParts parts;
    parts.image = uneven_image(size);
    parts.rule.window = {40.5, 150.25};
    if ((which & 1) != 0) {
      parts.rule.is_given = true;
      parts.rule.given_scale = 3;
      parts.given = volume_of<float>(
          grid, [](const Vec3d& at) { return 3.1 * std::sin(at.x + 2 * at.y - at.z); });
      for (int64_t i = 0; i < parts.given.voxels(); i += 37) parts.given[i] = -INFINITY;
    }
    if ((which & 2) != 0) {
      parts.rule.region_weight = 0.3;
      parts.rule.means = {130.7, 61.3};
    }
    if ((which & 4) != 0) {
      parts.edge_stop =
          speed_of(grid, [](const Vec3d& at) { return 0.5 + 0.5 * std::sin(0.7 * at.x + at.z); });
    }
    if ((which & 8) != 0) parts.pinned = scattered(size, 0.2);
    all.push_back(std::move(parts));
  }
  return all;
}

}  // namespace larch::test
