// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/core/context.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/speed/speed_math.h"

namespace larch::levelset {

/// Holds what D of one label is made of. Images have the size of the layout; x is the fastest axis.
struct DataSpeed {
  BrickLayout layout{};
  SpeedRule rule{};
  const float* values = nullptr;    ///< the speed image where the rule has one, or the intensities
  const uint8_t* pinned = nullptr;  ///< not 0: D is kFrozen; null: nowhere
};

/// Writes D as it is stored (stored_data_speed), by brick, and 0 where bricks are filled up, on the
/// device of the context, where all pointers lead.
void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context);

namespace cuda {
void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context);
}  // namespace cuda

}  // namespace larch::levelset
