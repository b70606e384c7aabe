// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "io_test_util.h"

#include "larch/io/image.h"

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

inline std::string reading_error(const TemporaryFolder& folder, const std::string& bytes,
                                 const std::string& name = "damaged.nii") {
  write_file(folder / name, bytes);
  const std::string message = message_of<InputError>([&] { read_volume<float>(folder / name); });
  CHECK_THAT(message, Catch::Contains(name));
  return message;
}

}  // namespace larch::test
