// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/features/box.h"
#include "larch/features/haar.h"
#include "larch/features/tap.h"
#include "larch/image/integral.h"

namespace larch::features {

/// A column that is a sum of taps.
struct LinearFeature {
  int32_t first_tap = 0;
  uint16_t n_tap = 0;
  uint16_t channel = 0;     ///< of all taps, or kSeveralChannels
  uint32_t cost_units = 0;  ///< price of the taps in units of candidate_key
};

constexpr uint16_t kSeveralChannels = UINT16_MAX;

/// Linear features and their taps for the strides of the images, on one device. Haar boxes are such
/// features; so is everything else that reduces to taps.
struct LinearColumns {
  std::vector<LinearFeature> features;
  std::vector<LinearTap> taps;
  std::vector<image::IntegralLayout> layouts;  ///< of the channels that the taps refer to
  Buffer<LinearFeature> device_features;       ///< the same on the device
  Buffer<LinearTap> device_taps;
};

/// Puts features and taps on a device.
LinearColumns make_linear_columns(std::vector<LinearFeature> features, std::vector<LinearTap> taps,
                                  std::span<const image::IntegralLayout> layouts,
                                  const Device& device);

/// Returns the columns of features of boxes, in their order.
LinearColumns make_box_columns(std::span<const BoxFeature> features,
                               std::span<const image::IntegralLayout> layouts,
                               const Context& context);

/// Returns the columns of a pool of Haar features: column i is pool[i]. `layouts`: one per channel;
/// `tap_cost`: the price of 32 taps in units of the error. Throws MemoryError if an offset leaves
/// 32 bits.
LinearColumns make_haar_columns(const std::vector<HaarFeature>& pool,
                                std::span<const image::IntegralLayout> layouts, double tap_cost,
                                const Context& context);

}  // namespace larch::features
