// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// NIfTI in two files, a header and the voxels beside it. The first byte says which of the two are
// compressed, which is given as the image and whether the header is named .nii, the next two how
// many bytes belong to the header.
#include <algorithm>
#include <cstdio>
#include <vector>

#include "larch/io/formats/formats.h"
#include "larch/io/image/image.h"
#include "tests/fuzz/fuzz.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  using namespace larch;
  fuzz::Source in(data, size);
  const auto choice = in.take<uint8_t>();
  const auto header_bytes = in.take<uint16_t>();
  const bool nii = (choice & 8) != 0;  // a header of a pair in a file named .nii
  const std::string header_name =
      std::string(nii ? "case.nii" : "case.hdr") + ((choice & 1) != 0 ? ".gz" : "");
  const std::string voxels_name = (choice & 2) != 0 ? "case.img.gz" : "case.img";
  // Those of the input before would be found first.
  for (const char* name :
       {"case.hdr", "case.hdr.gz", "case.img", "case.img.gz", "case.nii", "case.nii.gz"}) {
    std::remove((fuzz::folder() + "/" + name).c_str());
  }
  fuzz::file_of(header_name, in.bytes(header_bytes));
  const std::string voxels = fuzz::file_of(voxels_name, in.bytes(size));
  const std::string given = (choice & 4) != 0 && !nii ? voxels_name : header_name;
  const std::string path = fuzz::folder() + "/" + given;
  fuzz::accepts({ExitCode::kInput}, "case.", [&] {
    const std::string data_path = io::read_nifti_header(path).place.path;
    if (data_path == fuzz::folder() + "/" + header_name) return;  // a single file's mark
    fuzz::require(data_path == voxels, "voxels of another file");
    probe_image(path);  // nothing of a refused image is read
    const std::vector<std::string> files = detached_files(path);
    // What is read has to be in the records of a run.
    const std::string other =
        fuzz::folder() + "/" + (given == header_name ? voxels_name : header_name);
    fuzz::require(std::find(files.begin(), files.end(), other) != files.end(),
                  "the other file of a pair is not among its inputs");
  });
  fuzz::read_image_file(given, "case.");
  return 0;
}
