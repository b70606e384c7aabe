// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <utility>
#include <vector>

#include "larch/data/volume.h"

namespace larch {

/// Returns label maps with whole structures, for write_segmentation: as many as overlapping ones
/// need, at least one. `alone(k)`: the label map of structure k, with a value of its own.
template <class Alone>
std::vector<LabelVolume> layers_of(size_t count, const Grid& grid, const Alone& alone) {
  std::vector<LabelVolume> layers{LabelVolume(grid)};
  for (size_t k = 0; k < count; ++k) {
    LabelVolume one = alone(k);
    const auto has_room = [&](const LabelVolume& layer) {
      return std::equal(one.begin(), one.end(), layer.begin(),
                        [](int32_t a, int32_t b) { return a == 0 || b == 0; });
    };
    const auto layer = std::ranges::find_if(layers, has_room);
    if (layer == layers.end()) {
      layers.push_back(std::move(one));
    } else {
      std::transform(one.begin(), one.end(), layer->begin(), layer->begin(), std::plus<>());
    }
  }
  return layers;
}

}  // namespace larch
