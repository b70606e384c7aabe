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

/// Holds what the header of a multi-frame X-Ray Angiographic image says beside size, frames and
/// times. Of the origin: series_description and series_number (0: 1 is written) are those of the
/// file itself, the instance is that of the source, and without a study one is made from
/// `identity`.
struct XaHeader : AngiogramOrigin {
  bool is_derived = false;  ///< DERIVED\SECONDARY, otherwise ORIGINAL\PRIMARY
  int bits = 16;            ///< stored, of 16
  bool is_monochrome1 = false;
  std::optional<PixelRescaling> rescaling{};  ///< empty: the writer's own, which knows differences
  PixelIntensity intensity = PixelIntensity::kLinear;
  int intensity_sign = 0;  ///< PixelIntensityRelationshipSign; 0: not written
  std::string derivation{};
  std::vector<MaskItem> masks{};  ///< empty: no Mask Subtraction Sequence
  /// Window over values: differences, or pixels. Without it the writer takes one that holds 99 % of
  /// them.
  std::optional<XaWindow> window{};
  /// Decides the UIDs of instance and series: the sha256 of input and configuration, so that the
  /// same run gives the same file.
  std::string identity{};
  std::string patient_name{}, patient_id{};  ///< where none are copied
  std::string software{};                    ///< SoftwareVersions; empty: not written
};

/// Returns the header of a sequence that was made from `source`: its patient, study and
/// acquisition, its device as contributing equipment, a series of its own with the number after
/// that of the source, a reference to the source, no masks. Of a source that is not DICOM: with
/// empty patient and study data. `derivation`: what was done, in a sentence. `is_log`: the
/// differences are of logarithms.
XaHeader derived_xa_header(const Angiogram& source, const std::string& identity,
                           const std::string& derivation, bool is_log);

namespace io {

/// Throws UsageError, naming `path`, for what DICOM cannot hold: more than 65535 rows or columns,
/// more than 4 GiB of pixels.
void require_xa_holds(const std::string& path, const Grid& grid, int64_t frames);

/// Returns all bytes of a multi-frame X-Ray Angiographic image (PS3.3, A.14) before its pixels,
/// explicit little endian: the preamble, the elements of `header` and the head of the pixel data
/// for `frames` pictures of 16 bits. `zero`: the stored number of the value 0, which becomes the
/// negative RescaleIntercept. Dates of the instance are empty, so that the same header gives the
/// same bytes, and a header without a window has blanks in its place, so that both have the same
/// number of bytes. Without a spacing that is known the grid has 1, and the file says none unless
/// it is copied. Throws as require_xa_holds does, and UsageError for more than 65534 bytes of
/// uneven times.
std::string xa_header_bytes(const std::string& path, const Grid& grid, int64_t frames,
                            const std::vector<double>& times_ms, const XaHeader& header, int zero);

}  // namespace io
}  // namespace larch
