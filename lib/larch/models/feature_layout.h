// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "larch/features/haar.h"
#include "larch/image/integral.h"
#include "larch/image/preprocess.h"
#include "larch/models/layout.h"

/// The parts that models of images have in common: the images they are for, the features of those,
/// and measurements.
namespace larch::models {

template <>
inline constexpr auto kLastEnumerator<features::HaarType> = features::HaarType::kOffsetPair;

template <class V>
void layout(V& v, image::ChannelSpec& channel) {
  auto& [kind, level] = channel;
  v("kind", kind, "what is computed from the image");
  v("level", level, "pyramid level; each has half the resolution of the one before");
}

template <class V>
void layout(V& v, features::Cuboid& cuboid) {
  auto& [lo, hi, weight] = cuboid;
  v("lo", lo, "first voxel relative to the one that is classified");
  v("hi", hi, "one past the last voxel");
  v("weight", weight, "factor of the sum over its voxels");
}

template <class V>
void layout(V& v, features::HaarFeature& feature) {
  auto& [type, channel, pool_index, cuboid_count, cuboids] = feature;
  v("type", type, "family");
  v("channel", channel, "index into channels");
  v("pool_index", pool_index, "place in the pool it was chosen from");
  v("cuboids", FirstOf<features::Cuboid, 4>{cuboid_count, cuboids}, "boxes whose sums it adds");
}

template <class V>
void layout(V& v, std::pair<std::string, double>& measurement) {
  auto& [name, value] = measurement;
  v("name", name, "what was measured");
  v("value", value, "the measurement");
}

/// The images that a model is for.
struct Space {
  image::ModelSpace& space;
  image::Padding& padding;
};
template <class V>
void layout(V& v, Space& images) {
  auto& [spacing_mm, orientation, intensity] = images.space;
  v("spacing_mm", spacing_mm, "voxel size");
  v("orientation", orientation, "which axes the model sees");
  v("padding", images.padding, "what lies beyond the border of an image");
  v("intensity", intensity, "how intensities become integers");
}

}  // namespace larch::models
