// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string_view>
#include <vector>

#include <gdcmTransferSyntax.h>

#include "larch/io/dicom/dicom_file.h"

namespace larch::io {

/// What of a fragment of encapsulated pixel data tells which frame it belongs to.
struct FragmentStart {
  size_t bytes = 0;
  bool starts_image = false;  ///< by starts_frame
};

/// Fragments `first` to `first` + `count` - 1 of all, which make one frame.
struct FragmentRun {
  size_t first = 0, count = 0;
};

/// As many bytes as starts_frame looks at.
constexpr size_t kFragmentStartBytes = 64;

/// Whether a fragment starts as a frame does: a codestream, or the header of run-length coding.
bool starts_frame(std::string_view fragment, const gdcm::TransferSyntax& syntax,
                  const DicomPixelFormat& format);

/// Which fragments make which frame (PS3.5, A.4): a frame starts where the offset table says;
/// without one each fragment is a frame if there are as many, and otherwise those that start as an
/// image does. `fragments`: all of the element, of which the first is the offset table, `table`.
/// Throws InputError unless there are as many as `object` has frames.
std::vector<FragmentRun> frames_of_fragments(std::span<const FragmentStart> fragments,
                                             std::string_view table, const DicomObject& object);

}  // namespace larch::io
