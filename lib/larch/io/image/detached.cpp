// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <exception>

#include "larch/files/file.h"
#include "larch/io/formats/meta.h"
#include "larch/io/formats/nifti.h"
#include "larch/io/formats/nrrd.h"
#include "larch/io/image/image.h"

namespace larch {
namespace {

/// All files that the reader of `path` opens.
std::vector<std::string> files_read(const std::string& path) {
  const std::string ending = file_extension(path);
  // A .nii may be the header of a pair, too: its mark says so, not its name.
  if (ending == ".hdr" || ending == ".hdr.gz" || ending == ".img" || ending == ".img.gz" ||
      ending == ".nii" || ending == ".nii.gz") {
    const io::NiftiHeader nifti = io::read_nifti_header(path);
    if (nifti.header_path == nifti.data_path) return {nifti.data_path};
    return {nifti.header_path, nifti.data_path};
  }
  if (ending == ".nhdr" || ending == ".nrrd") return io::read_nrrd_header(path).data;
  if (ending == ".mhd" || ending == ".mha") return {io::read_meta_header(path).data_path};
  return {};
}

}  // namespace

std::vector<std::string> detached_files(const std::string& path) {
  std::vector<std::string> files;
  try {
    files = files_read(path);
  } catch (const std::exception&) {  // reading the image says what is wrong
  }
  files.erase(std::remove(files.begin(), files.end(), path), files.end());
  return files;
}

}  // namespace larch
