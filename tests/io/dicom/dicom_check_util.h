// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/io/dicom/dicom_file.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"

namespace larch::test {

/// The message with which reading and probing refuse the file.
inline std::string error_of(const MadeSlice& slice) {
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", made_dicom(slice));
  std::string message = message_of<InputError>([&] { read_volume<float>(folder / "x.dcm"); });
  CHECK_THAT(message, Catch::Contains("x.dcm"));
  CHECK_THROWS_AS(probe_image(folder / "x.dcm"), InputError);
  return message;
}

inline Volume<float> read_one(const MadeSlice& slice, const ReadOptions& options = {}) {
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", made_dicom(slice));
  return read_volume<float>(folder / "x.dcm", options);
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

/// `n` slices, `step` mm apart.
inline std::vector<MadeSlice> stack(int n, double step) {
  std::vector<MadeSlice> slices(static_cast<size_t>(n));
  for (int i = 0; i < n; ++i) {
    slices[static_cast<size_t>(i)].position.z = step * i;
    slices[static_cast<size_t>(i)].first_value = 100 * i;
  }
  return slices;
}

inline void write_stack(const TemporaryFolder& folder, const std::vector<MadeSlice>& slices) {
  for (size_t i = 0; i < slices.size(); ++i) {
    write_file(folder / (std::to_string(i) + ".dcm"), made_dicom(slices[i]));
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
