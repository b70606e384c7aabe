// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/step/step_math.h"

namespace larch::levelset {

/// A level-set function with what moves it, on one device, by brick (BrickLayout::offset).
///
/// phi stands in two buffers, which are read and written in turn: step t (from 0) reads phi[t % 2].
/// A voxel that is not computed has the same value in both.
struct LevelsetField {
  BrickLayout layout{};
  Step step{};
  std::array<Buffer<float>, 2> phi{};
  Buffer<int16_t> speed{};  ///< D, kSpeedOne is 1; kFrozen: phi stays as it is
  std::array<Buffer<int16_t>, 3>
      advection{};  ///< A along x, y, z, kSpeedOne is 1; empty: 0 everywhere
};

/// Makes both buffers, on context.device, of `phi` in units of the smallest spacing, held in [-c,
/// c]: step 0 is next. Throws InputError where phi is not a number, MemoryError that gives the
/// bytes needed.
void set_phi(LevelsetField& field, const Volume<float>& phi, const Context& context);

/// Values of an image by brick, on the device of the context: for LevelsetField::speed and
/// advection. What fills the bricks at the borders is 0.
Buffer<int16_t> by_brick(const Volume<int16_t>& values, const Context& context);

/// LevelsetField::speed or advection (`values`) as an image on `grid`, which has the size of the
/// field.
Volume<int16_t> stored_volume(const LevelsetField& field, const Buffer<int16_t>& values,
                              const Grid& grid, const Context& context);

/// phi after `iterations` steps as an image on `grid`, which has the size of the field.
Volume<float> phi_volume(const LevelsetField& field, int64_t iterations, const Grid& grid,
                         const Context& context);

}  // namespace larch::levelset
