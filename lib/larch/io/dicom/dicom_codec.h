// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "larch/io/dicom/dicom_object.h"

namespace larch::io {

/// Holds what the header of a JPEG, JPEG-LS or JPEG 2000 codestream says.
struct Codestream {
  enum class Kind { kJpeg, kJpegLs, kJpeg2000 };
  Kind kind = Kind::kJpeg;
  int64_t columns = 0, rows = 0;
  int samples = 0, precision = 0;
  bool is_signed = false;   ///< JPEG 2000 alone says it
  bool subsampled = false;  ///< JPEG 2000 with components of fewer samples than pixels
  int process = 0;          ///< of JPEG: 0 baseline, 1 extended, 3 lossless (the number of its SOF)
  /// JPEG says that its colours are not RGB, by a marker or, if it is lossy, by its components.
  bool is_ycc = false;
  bool is_rgb = false;  ///< or that they are
};

/// Reads the header of a codestream (ITU-T T.81, T.87, T.800). Nothing if it is none, or damaged.
std::optional<Codestream> read_codestream_header(std::string_view data);

/// True if `data` starts as such a codestream does, sound or not.
bool starts_codestream(std::string_view data);

/// Throws InputError unless a codestream is what the transfer syntax and the header of `object`, a
/// plane of `size`, say: kind, size, samples, colours, bits and signs. Returns its header.
Codestream check_codestream(std::string_view data, TransferSyntax syntax, const DicomObject& object,
                            const Vec3i& size);

/// Samples of one frame as a decoder gives them.
struct DecodedFrame {
  std::vector<std::byte> bytes;  ///< channels interleaved
  int container_bits = 16;       ///< of each sample: 8, 16 or 32
  int precision = 16;            ///< of which these are used
  bool extended = false;         ///< negative samples fill the container with their sign
};

/// Decodes one frame of encapsulated pixel data (PS3.5, annexes A.4 and G): all but RLE only if its
/// structure is whole. Throws InputError and MemoryError.
DecodedFrame decode_frame(std::string_view data, TransferSyntax syntax, const DicomObject& object);

/// Decodes a codestream with this header to frame.bytes, which have 16 bits for each sample. False
/// if it is damaged. Throws MemoryError for the file `path`.
bool decode_jpeg2000(std::string_view data, const Codestream& stream, const std::string& path,
                     DecodedFrame& frame);

/// Puts samples that stand in three planes of `pixels` samples for each frame pixel after pixel;
/// `width` bytes each.
void interleave_planes(std::span<std::byte> bytes, size_t pixels, size_t width);

}  // namespace larch::io
