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

  bool are_none() const { return names().outputs.empty(); }
  /// All of them with the flags that name them as roles.
  CaseFiles names() const;
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

/// Throws UsageError unless something is wanted and the endings name formats that can hold it.
/// `is_volume`: one volume is written, not frames.
void check_angiography_files(const AngiographyFiles& files, bool is_volume);

/// Throws UsageError if that many frames on this grid do not fit the formats.
void check_angiography_files_hold(const AngiographyFiles& files, const Grid& grid, int64_t frames);

/// What a list can write for each sequence.
enum class AngiographyProduct {
  kDifference,
  kField,
  kValidity,
  kGrid,
  kPreview,
  kAnimation,
  kNative
};
constexpr auto enum_names(AngiographyProduct*) {
  return std::to_array<EnumName<AngiographyProduct>>(
      {{AngiographyProduct::kDifference, "difference"},
       {AngiographyProduct::kField, "field"},
       {AngiographyProduct::kValidity, "validity"},
       {AngiographyProduct::kGrid, "grid"},
       {AngiographyProduct::kPreview, "preview"},
       {AngiographyProduct::kAnimation, "animation"},
       {AngiographyProduct::kNative, "native"}});
}

/// The files of case `id` in `folder`: <id>.dcm (or another ending) for the difference,
/// <id>.field.mha, <id>.validity.mha, <id>.csv (grid), <id>.png (preview), <id>.gif (animation) and
/// <id>.native.dcm.
AngiographyFiles angiography_files_of_case(const std::string& folder, const std::string& id,
                                           const std::vector<AngiographyProduct>& products,
                                           const std::string& ending);

}  // namespace larch::pipeline
