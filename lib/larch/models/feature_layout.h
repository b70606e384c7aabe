// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

#include "larch/features/box.h"
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
  auto& [kind, level, component, sigma_voxels] = channel;  // the others: ChannelInput
  v("kind", kind, "what is computed from the image");
  v("level", level, "pyramid level; each has half the resolution of the one before");
}

/// Holds what a channel is made from beside its kind and level.
struct ChannelInput {
  int32_t component = 0;
  double sigma_voxels = 0;
};
template <class V>
void layout(V& v, ChannelInput& input) {
  auto& [component, sigma_voxels] = input;
  v("component", component, "of the input; -1: luminance");
  v("sigma_voxels", sigma_voxels, "of a filter");
}

/// The components of the input and what channels take of them: sections that models of one
/// component without filters do not have, as all models were before there were others.
template <class V>
void input_sections(V& v, std::vector<std::string>& components,
                    std::vector<image::ChannelSpec>& channels) {
  std::vector<ChannelInput> inputs;
  bool plain = components.empty();
  for (const image::ChannelSpec& channel : channels) {
    inputs.push_back({channel.component, channel.sigma_voxels});
    plain = plain && channel.component == 0 && channel.sigma_voxels == 0;
  }
  About about{"names of the components of the input"};
  about.left_out = plain;
  v.section("components", components, about);
  about.doc = "what of the input each channel is made from";
  v.section("channel_inputs", inputs, about);
  for (size_t c = 0; c < channels.size() && c < inputs.size(); ++c) {
    channels[c].component = inputs[c].component;
    channels[c].sigma_voxels = inputs[c].sigma_voxels;
  }
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
void layout(V& v, features::BoxFeature& feature) {
  auto& [box_count, channels, boxes] = feature;
  int count = box_count;
  v("channels", FirstOf<uint16_t, 4>{count, channels}, "index into channels, of each box");
  v("boxes", FirstOf<features::Cuboid, 4>{box_count, boxes}, "boxes whose sums it adds");
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
