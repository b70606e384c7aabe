// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "larch/io/xa/angiogram.h"

namespace larch {

/// Window for looking at values.
struct XaWindow {
  double centre = 0, width = 1;
};

/// What the header of a multi-frame X-Ray Angiographic image says beside size, frames and times.
struct XaHeader {
  bool is_derived = false;  ///< DERIVED\SECONDARY, otherwise ORIGINAL\PRIMARY
  int bits = 16;            ///< stored, of 16
  bool is_monochrome1 = false;
  std::optional<PixelRescaling> rescaling{};  ///< empty: the writer's own, which knows differences
  PixelIntensity intensity = PixelIntensity::kLinear;
  int intensity_sign = 0;  ///< PixelIntensityRelationshipSign; 0: not written
  std::string series_description{}, derivation{};
  std::vector<MaskItem> masks{};  ///< empty: no Mask Subtraction Sequence
  /// Window over values: differences, or pixels. Without it the writer takes one that holds 99 % of
  /// them.
  std::optional<XaWindow> window{};
  /// Decides the UIDs of instance and series (and of the study, if there is none): the sha256 of
  /// input and configuration, so that the same run gives the same file.
  std::string identity{};
  std::string study_uid{};                                          ///< empty: from `identity`
  std::string source_class_uid{}, source_instance_uid{};            ///< SourceImageSequence
  bool is_lossy = false;                                            ///< of the source
  double display_rate_hz = 0;                                       ///< 0: not written
  std::string other_plane_class_uid{}, other_plane_instance_uid{};  ///< of BIPLANE A or B
  std::string plane = "SINGLE PLANE";   ///< third value of ImageType, or BIPLANE A or B
  std::vector<CopiedElement> copied{};  ///< of the source
  int series_number = 1;
  std::vector<CopiedElement> source_equipment{};  ///< ContributingEquipmentSequence; empty: none
  std::string patient_name{}, patient_id{};       ///< where none are copied
};

/// The header of a sequence that was made from `source`: its patient, study and acquisition, its
/// device as contributing equipment, a series of its own with the number after that of the source,
/// a reference to the source, no masks. Of a source that is not DICOM: with empty patient and study
/// data. `derivation`: what was done, in a sentence. `is_log`: the differences are of logarithms.
XaHeader derived_xa_header(const Angiogram& source, const std::string& identity,
                           const std::string& derivation, bool is_log);

}  // namespace larch
