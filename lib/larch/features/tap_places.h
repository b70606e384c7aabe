// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>

#include "larch/features/tap.h"
#include "larch/image/integral.h"

namespace larch::features {

/// A tap for one layout: its offset from the element of a voxel (IntegralLayout::base) in the
/// integral volume of the tap's channel. Throws MemoryError if it leaves 32 bits.
LinearTap linear_tap(const Tap& tap, std::span<const image::IntegralLayout> layouts);

/// Whether a tap can be other than 0: of two planes, which an image of one slice without padding
/// across it has, the lower one holds zeros.
bool counts(const Tap& tap, std::span<const image::IntegralLayout> layouts);

/// The channel of all of these taps: kManyChannels if they are of several, 0 if there are none.
constexpr int32_t kManyChannels = -1;
int32_t common_channel(std::span<const Tap> taps);

/// Whether every tap reads within the padding of its channel, wherever the voxel lies.
bool within_padding(std::span<const Tap> taps, std::span<const image::IntegralLayout> layouts);

}  // namespace larch::features
