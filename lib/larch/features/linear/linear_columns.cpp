// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/linear/linear_columns.h"

#include <cmath>
#include <utility>

#include "larch/features/tap.h"

namespace larch::features {

LinearColumns make_linear_columns(std::vector<LinearFeature> features, std::vector<LinearTap> taps,
                                  std::span<const image::IntegralLayout> layouts,
                                  const Device& device) {
  LinearColumns out;
  out.features = std::move(features);
  out.taps = std::move(taps);
  out.layouts.assign(layouts.begin(), layouts.end());
  out.device_features = Buffer<LinearFeature>(device, std::span<const LinearFeature>(out.features));
  out.device_taps = Buffer<LinearTap>(device, std::span<const LinearTap>(out.taps));
  return out;
}

namespace {

/// Appends a column of these taps.
LinearFeature add_column(const std::vector<Tap>& of_feature,
                         std::span<const image::IntegralLayout> layouts,
                         std::vector<LinearTap>& taps) {
  LinearFeature column;
  column.first_tap = static_cast<int32_t>(taps.size());
  const int32_t channel = common_channel(of_feature);
  column.channel = channel == kManyChannels ? kSeveralChannels : static_cast<uint16_t>(channel);
  for (const Tap& tap : of_feature) taps.push_back(linear_tap(tap, layouts));
  column.n_tap = static_cast<uint16_t>(taps.size() - static_cast<size_t>(column.first_tap));
  return column;
}

}  // namespace

LinearColumns make_box_columns(std::span<const BoxFeature> features,
                               std::span<const image::IntegralLayout> layouts,
                               const Context& context) {
  std::vector<LinearFeature> columns;
  std::vector<LinearTap> taps;
  for (const BoxFeature& feature : features) {
    std::vector<Tap> corners = corner_taps(feature);
    std::erase_if(corners, [&](const Tap& tap) { return !counts(tap, layouts[tap.channel]); });
    columns.push_back(add_column(corners, layouts, taps));
  }
  return make_linear_columns(std::move(columns), std::move(taps), layouts, context.device);
}

LinearColumns make_haar_columns(const std::vector<HaarFeature>& pool,
                                std::span<const image::IntegralLayout> layouts, double tap_cost,
                                const Context& context) {
  std::vector<LinearFeature> columns;
  std::vector<LinearTap> taps;
  columns.reserve(pool.size());
  for (const HaarFeature& feature : pool) {
    LinearFeature column = add_column(corner_taps(feature), layouts, taps);
    column.channel = feature.channel;
    column.cost_units =
        static_cast<uint32_t>(std::llround(tap_cost * column.n_tap / 32.0 * 2147483648.0));
    columns.push_back(column);
  }
  return make_linear_columns(std::move(columns), std::move(taps), layouts, context.device);
}

}  // namespace larch::features
