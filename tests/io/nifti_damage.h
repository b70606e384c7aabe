// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <numeric>
#include <string>

#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

namespace larch::test {

/// The bytes 0, 1, 2 and so on.
inline std::string counted(size_t bytes) {
  std::string out(bytes, '\0');
  std::iota(out.begin(), out.end(), '\0');
  return out;
}

/// An NRRD file of bytes: the words of its sizes, further lines, what stands behind the header.
inline std::string nrrd_of(const std::string& sizes, const std::string& lines,
                           const std::string& data, const std::string& encoding = "raw") {
  const auto spaces = std::count(sizes.begin(), sizes.end(), ' ');
  return "NRRD0004\ntype: uint8\ndimension: " + std::to_string(spaces + 1) + "\nsizes: " + sizes +
         "\nencoding: " + encoding + "\n" + lines + "\n" + data;
}

/// The same as a MetaImage.
inline std::string mha_of(const std::string& sizes, const std::string& lines,
                          const std::string& data, const std::string& file = "LOCAL") {
  const auto spaces = std::count(sizes.begin(), sizes.end(), ' ');
  return "ObjectType = Image\nNDims = " + std::to_string(spaces + 1) + "\nDimSize = " + sizes +
         "\nElementType = MET_UCHAR\n" + lines + "ElementDataFile = " + file + "\n" + data;
}

// The bytes of a small uncompressed NIfTI file, to be damaged.
inline std::string sound_nifti(const TemporaryFolder& folder) {
  const std::string path = folder / "sound.nii";
  write_volume(path, random_volume<int16_t>(oblique_grid({4, 3, 2}), -100, 100));
  return read_file(path);
}

template <class T>
inline std::string with(std::string bytes, size_t offset, T value) {
  bytes.replace(offset, sizeof value, reinterpret_cast<const char*>(&value), sizeof value);
  return bytes;
}

/// Numbers of 16 bits at their bytes.
inline std::string with_shorts(std::string bytes,
                               std::initializer_list<std::pair<size_t, int>> numbers) {
  for (const auto& [at, number] : numbers) bytes = with(bytes, at, static_cast<int16_t>(number));
  return bytes;
}

/// The header of a pair, whose voxels stand in a file of their own from its start on.
inline std::string pair_header(const std::string& nifti) {
  return with(with(nifti.substr(0, 348), 345, 'i'), 108, 0.0F);
}

// The bytes of a NIfTI-2 file of 4x3x2 voxels with the values 0 to 23.
inline std::string sound_nifti2() {
  std::string bytes(544 + 48, '\0');
  bytes = with(bytes, 0, int32_t{540});
  bytes.replace(4, 8, std::string("n+2\0\r\n\x1a\n", 8));
  bytes = with(with(bytes, 12, int16_t{4}), 14, int16_t{16});
  const int64_t size[] = {3, 4, 3, 2, 1, 1, 1, 1};
  for (size_t i = 0; i < 8; ++i) bytes = with(with(bytes, 16 + 8 * i, size[i]), 104 + 8 * i, 1.0);
  bytes = with(bytes, 168, int64_t{544});
  bytes = with(bytes, 348, int32_t{1});  // sform: 2x2x3 mm along the axes
  bytes = with(with(with(bytes, 400, 2.0), 440, 2.0), 480, 3.0);
  for (size_t i = 0; i < 24; ++i) bytes = with(bytes, 544 + 2 * i, static_cast<int16_t>(i));
  return bytes;
}

/// Why a file is not read.
inline std::string refusal(const std::string& path, const ReadOptions& options = {}) {
  return message_of<InputError>([&] { read_volume<float>(path, options); });
}

inline std::string reading_error(const TemporaryFolder& folder, const std::string& bytes,
                                 const std::string& name = "damaged.nii") {
  write_file(folder / name, bytes);
  std::string message = refusal(folder / name);
  CHECK_THAT(message, Catch::Contains(name));
  return message;
}

/// A file that is refused, and a part of the message.
struct BadFile {
  std::string name, bytes, message;
};

inline void check_refused(const TemporaryFolder& folder, const std::vector<BadFile>& files) {
  for (const auto& [name, bytes, message] : files) {
    CHECK_THAT(reading_error(folder, bytes, name), Catch::Contains(message));
  }
}

}  // namespace larch::test
