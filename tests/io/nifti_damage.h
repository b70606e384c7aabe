// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

namespace larch::test {

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

inline std::string reading_error(const TemporaryFolder& folder, const std::string& bytes,
                                 const std::string& name = "damaged.nii") {
  write_file(folder / name, bytes);
  std::string message = message_of<InputError>([&] { read_volume<float>(folder / name); });
  CHECK_THAT(message, Catch::Contains(name));
  return message;
}

}  // namespace larch::test
