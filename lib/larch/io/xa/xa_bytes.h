// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/data/grid.h"
#include "larch/io/xa/xa_header.h"

namespace larch::io {

/// All bytes of a multi-frame X-Ray Angiographic image before its pixels.
struct XaBytes {
  std::string bytes;
  size_t centre_at = 0, width_at = 0;  ///< of the texts of the window, kWindowBytes each
};
constexpr size_t kWindowBytes = 16;

/// Throws UsageError, naming `path`, for what DICOM cannot hold: more than 65535 rows or columns,
/// more than 4 GiB of pixels, more than 65534 bytes of uneven times.
void require_xa_holds(const std::string& path, const Grid& grid, int64_t frames);

/// The preamble, all elements of `header` and the head of the pixel data for `frames` pictures of
/// 16 bits: X-Ray Angiographic Image Storage (PS3.3, A.14), explicit little endian. `zero`: the
/// stored number of the value 0, which becomes the negative RescaleIntercept. Instance dates
/// are empty, so that the same header gives the same bytes with one version of GDCM. Without a
/// spacing that is known the grid has 1, and the file says none unless it is copied. Throws as
/// require_xa_holds does; OutputError.
XaBytes xa_bytes(const std::string& path, const Grid& grid, int64_t frames,
                 const std::vector<double>& times_ms, const XaHeader& header, int zero);

/// The text of a number in the place that XaBytes keeps for it.
std::string window_text(double value);

}  // namespace larch::io
