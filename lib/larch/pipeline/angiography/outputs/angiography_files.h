// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/config/fields.h"
#include "larch/data/grid.h"

namespace larch::pipeline {

/// Names of the files of one subtraction; empty: not wanted.
struct AngiographyFiles {
  std::string difference, field, validity, grid, preview, animation, native;
};

/// What a field of motion is written in.
enum class FieldUnits {
  kMm,      ///< mm along LPS, on the grid of the frames
  kPixels,  ///< pixels along columns and rows, on a grid of spacing 1
};
constexpr auto enum_names(FieldUnits*) {
  return std::to_array<EnumName<FieldUnits>>(
      {{FieldUnits::kMm, "mm"}, {FieldUnits::kPixels, "px"}});
}
/// The grid that a field on `grid` is written on.
Grid field_grid(const Grid& grid, FieldUnits units);

/// Throws UsageError unless the endings name formats that can hold what is wanted.
/// `is_volume`: one volume is written, not frames.
void check_angiography_files(const AngiographyFiles& files, bool is_volume);

/// Throws UsageError if that many frames on this grid do not fit the formats.
void check_angiography_files_hold(const AngiographyFiles& files, const Grid& grid, int64_t frames);

}  // namespace larch::pipeline
