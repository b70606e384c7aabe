// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>

#include "larch/data/volume.h"
#include "larch/levelset/speed/regions.h"
#include "larch/levelset/speed/window.h"

namespace larch::levelset {

/// What D of one label is made of.
struct DataSpeed {
  const Volume<float>* image = nullptr;
  std::optional<Window> window{};        ///< or
  const Volume<float>* given = nullptr;  ///< a speed image, divided by given_scale
  double given_scale = 1;
  double region_weight = 0;  ///< w: D = (1 - w) (window or given) + w region_speed
  RegionMeans means{};
  const Volume<int16_t>* edge_stop = nullptr;  ///< g as it is stored, which D is multiplied by
  const Volume<uint8_t>* pinned = nullptr;     ///< where it is not 0, D is kFrozen
};

/// D as it is stored (stored_speed). Each value is made in doubles and rounded once. -1 where a
/// number that it is made from is not finite: the intensity, unless a speed image stands in its
/// place and there is no region term, or the given speed.
Volume<int16_t> stored_data_speed(const DataSpeed& parts, int threads);
/// The voxels where a number is not finite that D is made from.
int64_t count_without_number(const DataSpeed& parts, int threads);

}  // namespace larch::levelset
