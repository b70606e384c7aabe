// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/io/dicom/dicom_object.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"

namespace larch::test {

inline Volume<float> read_bytes(const std::string& bytes, const ReadOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", bytes);
  return read_volume<float>(folder / "x.dcm", options);
}

inline Volume<float> read_one(const MadeSlice& slice, const ReadOptions& options = {}) {
  return read_bytes(made_dicom(slice), options);
}

/// The message with which reading refuses the bytes of a file.
inline std::string error_of_bytes(const std::string& bytes) {
  std::string message = message_of<InputError>([&] { read_bytes(bytes); });
  CHECK_THAT(message, Catch::Contains("x.dcm"));
  return message;
}

/// The message with which reading refuses the file; probing refuses it too.
inline std::string error_of(const MadeSlice& slice) {
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", made_dicom(slice));
  CHECK_THROWS_AS(probe_image(folder / "x.dcm"), InputError);
  return error_of_bytes(made_dicom(slice));
}

/// A slice without rescaling whose samples are stored like this.
inline MadeSlice stored_as(uint16_t allocated, uint16_t stored, int high, uint16_t is_signed) {
  MadeSlice slice;
  slice.with_rescale = false;
  slice.bits_allocated = allocated;
  slice.bits_stored = stored;
  slice.high_bit = high;
  slice.is_signed = is_signed;
  return slice;
}

/// `n` slices like `first`, `step` mm apart, with the values 100 i and more.
inline std::vector<MadeSlice> stack(int n, const Vec3d& step, const MadeSlice& first = {}) {
  std::vector<MadeSlice> slices(static_cast<size_t>(n), first);
  for (int i = 0; i < n; ++i) {
    slices[static_cast<size_t>(i)].position = first.position + step * static_cast<double>(i);
    slices[static_cast<size_t>(i)].first_value = 100 * i;
  }
  return slices;
}

/// The order of names is not that of the slices.
inline std::string stack_name(size_t i) {
  return "slice-" + std::to_string(i * 7 % 10) + ".dcm";
}

inline void write_stack(const TemporaryFolder& folder, const std::vector<MadeSlice>& slices) {
  for (size_t i = 0; i < slices.size(); ++i) {
    write_file(folder / stack_name(i), made_dicom(slices[i]));
  }
}

/// Refused with a message that has `why` and the flag; read with it, with one warning.
inline Volume<float> read_only_allowed(const std::vector<MadeSlice>& slices, Allow allow,
                                       const std::string& flag, const std::string& why) {
  const TemporaryFolder folder;
  write_stack(folder, slices);
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder.string()); }),
             Catch::Contains(why) && Catch::Contains("--allow " + flag) &&
                 Catch::Contains(folder.string()));
  int warnings = 0;
  ReadOptions options;
  options.allow = {allow};
  options.warn = [&](const std::string& text) {
    ++warnings;
    CHECK_THAT(text, Catch::Contains(why));
  };
  auto volume = read_volume<float>(folder.string(), options);
  CHECK(warnings == 1);
  return volume;
}

}  // namespace larch::test
