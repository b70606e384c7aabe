// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstring>
#include <string>
#include <vector>

#include "larch/io/image/image.h"
#include "larch/io/sequence/sequence_reader.h"
#include "larch/io/sequence/sequence_writer.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"

namespace larch::test {

inline std::string us(std::initializer_list<int> values) {
  std::string out;
  for (const int value : values) out += dicom_number(static_cast<uint32_t>(value), 2);
  return out;
}

inline std::string fl(std::initializer_list<float> values) {
  std::string out;
  for (const float value : values) {
    uint32_t bits = 0;
    std::memcpy(&bits, &value, 4);
    out += dicom_number(bits, 4);
  }
  return out;
}

/// A cine of 5 frames of 4 x 3 pixels, 12 bits of 16: 0, 1, 2, ... `more`: elements from group 0028
/// on that come after the rescaling, or before the pixels.
inline MadeSlice made_cine(const std::string& more = "", int frames = 5) {
  MadeSlice made;
  made.modality = "XA";
  made.sop_class = "1.2.840.10008.5.1.4.1.1.12.1";
  made.with_geometry = false;
  made.with_rescale = false;
  made.bits_stored = 12;
  made.is_signed = 0;
  made.frames = frames;
  made.groups = more;
  return made;
}

/// An item of a Mask Subtraction Sequence: elements (0028,`number`).
inline std::string mask_sequence(const std::vector<std::string>& items) {
  return dicom_sequence(0x28, 0x6100, items);
}

/// A MetaImage; `more`: lines of its header.
inline std::string mha(const std::string& type, const std::string& sizes, const std::string& voxels,
                       const std::string& more = "") {
  const auto axes = std::count(sizes.begin(), sizes.end(), ' ') + 1;
  return "ObjectType = Image\nNDims = " + std::to_string(axes) + "\nDimSize = " + sizes +
         "\nElementType = " + type + "\n" + more + "ElementDataFile = LOCAL\n" + voxels;
}

inline std::string save(const TemporaryFolder& folder, const MadeSlice& made,
                        const std::string& name = "cine.dcm") {
  write_file(folder / name, made_dicom(made));
  return folder / name;
}

/// All pixels, in batches.
inline std::vector<uint16_t> pixels_of(SequenceReader& reader, int64_t batch = 1000) {
  std::vector<uint16_t> all(static_cast<size_t>(reader.about().frames * reader.frame_pixels()));
  for (int64_t first = 0; first < reader.about().frames; first += batch) {
    const int64_t count = std::min(batch, reader.about().frames - first);
    reader.read(first, count,
                std::span(all).subspan(static_cast<size_t>(first * reader.frame_pixels()),
                                       static_cast<size_t>(count * reader.frame_pixels())));
  }
  return all;
}

inline std::vector<uint16_t> counted(size_t count, int first = 0) {
  std::vector<uint16_t> out(count);
  for (size_t i = 0; i < count; ++i) out[i] = static_cast<uint16_t>(first + static_cast<int>(i));
  return out;
}

}  // namespace larch::test
