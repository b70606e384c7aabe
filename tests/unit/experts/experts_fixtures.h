// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "larch/core/random_math.h"
#include "larch/experts/train.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::fixtures {

/// Is a place, in voxels from the centre, in the ellipsoid with these half axes?
inline bool in_ellipsoid(const Vec3d& at, const Vec3d& half) {
  return at.x * at.x / (half.x * half.x) + at.y * at.y / (half.y * half.y) +
             at.z * at.z / (half.z * half.z) <=
         1;
}

/// A small structure in noise that is black or white, of which a voxel is where it is white.
struct WhiteVoxels {
  Volume<int16_t> image;
  Volume<float> probability;
  Volume<int8_t> part;
};
inline WhiteVoxels white_voxels(uint64_t seed, const Vec3d& half = {2.4, 1.3, 0.8},
                                const Vec3i& size = {14, 13, 12}) {
  const Grid grid = grid_of(size);
  WhiteVoxels one{Volume<int16_t>(grid), Volume<float>(grid), Volume<int8_t>(grid)};
  for (int64_t i = 0; i < grid.voxels(); ++i) {
    const auto key = static_cast<uint64_t>(i);
    one.image[i] = hash_below(seed, 1, key, 2) != 0 ? 1023 : 0;
    one.part[i] = one.image[i] != 0 ? 0 : experts::TrainingCase::kNone;
    const Vec3d at = grid.voxel(i).cast<double>() - size.cast<double>() * 0.5;
    const double noise = hash_unit(seed, 2, key);
    if (in_ellipsoid(at, half)) one.probability[i] = static_cast<float>(0.7 + 0.3 * noise);
  }
  return one;
}

/// Cases with samples at the centre of the structure alone. They are at few nodes, so that the sums
/// of several fit memory that few slices of one case do.
inline std::vector<WhiteVoxels> few_samples(uint64_t count) {
  std::vector<WhiteVoxels> all;
  for (uint64_t seed = 0; seed < count; ++seed) {
    WhiteVoxels& one = all.emplace_back(white_voxels(seed, {2.4, 1.3, 6}, {26, 25, 30}));
    for (int64_t i = 0; i < one.part.voxels(); ++i) {
      const Vec3d at = (one.part.grid().voxel(i) - Vec3i{13, 12, 15}).cast<double>();
      if (dot(at, at) > 3) one.part[i] = experts::TrainingCase::kUnused;
    }
  }
  return all;
}

inline experts::Trained train_experts(const std::vector<WhiteVoxels>& all, int parts,
                                      const Context& context,
                                      int64_t memory_bytes = int64_t{1} << 30) {
  std::vector<experts::TrainingCase> cases;
  for (size_t i = 0; i < all.size(); ++i) {
    const std::shared_ptr<const Volume<int16_t>> image(std::shared_ptr<void>(), &all[i].image);
    cases.push_back({image, all[i].probability, all[i].part, static_cast<int>(i % 2)});
  }
  return experts::train(cases, parts, 2, experts::kFullIntensity, memory_bytes, context);
}

}  // namespace larch::fixtures
