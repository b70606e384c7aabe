// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/digest.h"
#include "larch/data/grid.h"

namespace larch {

/// Says what is refused because it is most often a mistake, and may be meant after all.
enum class Allow {
  kMissingSpacing,        ///< DICOM without a pixel spacing: 1 mm is taken
  kMixedPatients,         ///< slices of one series with different patients or studies
  kMixedReferenceFrames,  ///< slices of one series with different FrameOfReferenceUID
  kSliceSpacing,          ///< positions that disagree with SpacingBetweenSlices: they are believed
  kUnusedBits,            ///< DICOM samples with other bits set than those that are stored: cut off
};
constexpr auto enum_names(Allow*) {
  return std::to_array<EnumName<Allow>>({{Allow::kMissingSpacing, "missing-spacing"},
                                         {Allow::kMixedPatients, "mixed-patients"},
                                         {Allow::kMixedReferenceFrames, "mixed-reference-frames"},
                                         {Allow::kSliceSpacing, "slice-spacing"},
                                         {Allow::kUnusedBits, "unused-bits"}});
}

/// How an image is read.
struct ReadOptions {
  /// Takes the place of NaN and infinite voxels; without it such voxels are an error.
  std::optional<double> nan_value{};
  /// SeriesInstanceUID to read from a DICOM folder that holds several series; empty = the only one.
  std::string series_uid{};
  /// Says what is taken all the same; `warn` is told.
  std::vector<Allow> allow{};
  /// Receives a sentence, which names the file, for each thing that was taken on trust. May be
  /// empty; called in the thread that reads.
  std::function<void(const std::string&)> warn{};
  /// Which frame is read of an image that has several, counted from 1 as in DICOM: a volume of a
  /// 4-D image, or a picture of a cine. Without it such an image is an error.
  std::optional<int> frame{};
  /// True if messages may name --frame: the program has that flag, and it counts for this image.
  bool has_frame_flag = true;
  /// NaN and infinite voxels that nan_value does not replace are handed on as they are, to a caller
  /// that has a rule of its own for them. Only where floats are read.
  bool keeps_not_finite = false;
  /// The grid of the image that a label map belongs to. DICOM segmentations leave out slices
  /// without a segment, which are background then.
  std::optional<Grid> label_grid{};
  /// Is told the digests of the files that are read whole.
  DigestSink digest{};
};

/// Passes if `options` allow it, with a warning; throws InputError otherwise, naming the flag.
/// `what` names the file and says what is wrong, `taken` what is done if it is allowed.
void require_allowed(const ReadOptions& options, Allow what_for, const std::string& what,
                     const std::string& taken);

/// When the frames of a series were taken, in a unit of the file.
struct FrameTimes {
  double step = 0;     ///< from one frame to the next; 0: not known
  double first = 0;    ///< of the first frame
  double unit_ms = 0;  ///< ms in the unit; 0: the file does not say
};

}  // namespace larch
