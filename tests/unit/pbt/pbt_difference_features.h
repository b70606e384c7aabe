// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/pbt/evaluate/compiled_model.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::fixtures {

/// A tree whose features are boxes of one channel, differences of two channels of one level, and
/// differences of two levels.
struct DifferenceModel {
  pbt::Model trees;
  std::vector<image::ChannelSpec> channels{{image::ChannelKind::kIntensity, 0},
                                           {image::ChannelKind::kGaussian, 0},
                                           {image::ChannelKind::kIntensity, 1}};
  std::vector<std::vector<features::Tap>> taps;  ///< of each feature
  int pad = 0;

  pbt::TapsOf taps_of() const {
    return [this](uint32_t feature) { return taps[feature]; };
  }
};

inline DifferenceModel difference_model(uint64_t seed) {
  DifferenceModel model;
  RandomTree spec;
  spec.channels = model.channels;
  spec.weaks = 8;
  model.trees = random_model(seed, spec);
  model.pad = model.trees.reach();
  for (size_t f = 0; f < model.trees.features.size(); ++f) {
    std::vector<features::Tap> taps = features::corner_taps(model.trees.features[f]);
    const size_t own = taps.size();
    const uint32_t other = hash_below(seed, 30, f, 4);  // 3: the feature keeps its one channel
    for (size_t t = 0; t < own && other < 3; ++t) {
      features::Tap tap = taps[t];
      tap.channel = static_cast<uint16_t>(other);
      tap.weight = -tap.weight;
      taps.push_back(tap);
    }
    model.taps.push_back(taps);
  }
  return model;
}

}  // namespace larch::fixtures
