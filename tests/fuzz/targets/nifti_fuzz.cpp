// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// NIfTI-1 and -2 in one file, deflated where the first bytes say so, as the reader finds them.
#include "larch/io/formats/formats.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace larch;
  const std::string_view bytes = fuzz::text_of(data, size);
  const std::string name = bytes.substr(0, 2) == "\x1f\x8b" ? "case.nii.gz" : "case.nii";
  const std::string path = fuzz::file_of(name, bytes);
  fuzz::accepts({ExitCode::kInput}, name, [&] {
    const io::VoxelPlace place = io::read_nifti_header(path).place;
    const bool second = bytes.substr(0, 4) == std::string_view("\x1c\2\0\0", 4) ||
                        bytes.substr(0, 4) == std::string_view("\0\0\2\x1c", 4);
    fuzz::require(place.byte + place.skipped >= (second ? 540 : 348) + 4,
                  "voxels begin inside the header");
  });
  fuzz::read_image_bytes(name, bytes);
  return 0;
}
