// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <gdcmTransferSyntax.h>

#include "larch/io/dicom_file.h"

namespace larch::io {

/// What the header of a JPEG, JPEG-LS or JPEG 2000 codestream says.
struct Codestream {
  enum class Kind { kJpeg, kJpegLs, kJpeg2000 };
  Kind kind = Kind::kJpeg;
  int64_t columns = 0, rows = 0;
  int samples = 0, precision = 0;
  bool is_signed = false;   ///< JPEG 2000 alone says it
  bool subsampled = false;  ///< JPEG 2000 with components of fewer samples than pixels
  bool is_ycc = false;      ///< a JFIF or Adobe marker says that the colours are not RGB
};

/// Reads the header of a codestream (ITU-T T.81, T.87, T.800). Nothing if it is none, or damaged.
std::optional<Codestream> read_codestream_header(std::string_view data);

/// True if `data` starts as such a codestream does, sound or not.
bool starts_codestream(std::string_view data);

/// Throws InputError unless a codestream is what the transfer syntax and the header of `object`, a
/// plane of `size`, say: kind, size, samples, bits and signs.
void check_codestream(std::string_view data, const gdcm::TransferSyntax& syntax,
                      const DicomObject& object, const Vec3i& size);

/// Samples of one frame as a decoder gives them.
struct DecodedFrame {
  std::vector<std::byte> bytes;  ///< channels interleaved
  int container_bits = 16;       ///< of each sample: 8, 16 or 32
  int precision = 16;            ///< of which these are used
  bool extended = false;         ///< negative samples fill the container with their sign
};

/// Decodes one frame of encapsulated pixel data (PS3.5, annexes A.4 and G). RLE by itself, the
/// others through GDCM, which asserts on much that this checks before. Throws InputError.
DecodedFrame decode_frame(std::string_view data, const gdcm::TransferSyntax& syntax,
                          const DicomObject& object);

}  // namespace larch::io
