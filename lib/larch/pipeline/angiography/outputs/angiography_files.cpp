// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/angiography_files.h"

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "larch/io/image/vector_image.h"
#include "larch/io/sequence/sequence_writer.h"

namespace larch::pipeline {
namespace {

void require_ending(const std::string& path, const char* flag, const char* ending) {
  if (path.empty() || file_extension(path) == ending) return;
  throw UsageError("cannot write '" + path + "': " + flag + " writes a file that ends in " +
                   ending);
}

}  // namespace

Grid field_grid(const Grid& grid, FieldUnits units) {
  if (units == FieldUnits::kMm) return grid;
  Grid pixels;
  pixels.size = grid.size;
  return pixels;
}

void check_angiography_files(const AngiographyFiles& files, bool is_volume) {
  Grid smallest;
  smallest.size = {1, 1, 1};
  require_ending(files.grid, "--grid", ".csv");
  require_ending(files.animation, "--animation", ".gif");
  require_ending(files.native, "--native", ".dcm");
  if (!files.validity.empty() && file_extension(files.validity) == ".dcm") {
    throw UsageError("cannot write '" + files.validity +
                     "': --validity writes labels: .mha .nrrd .nii.gz");
  }
  if (!is_volume) return check_angiography_files_hold(files, smallest, 1);
  if (!files.animation.empty()) throw UsageError("--animation is for sequences, not for volumes");
  if (!files.native.empty()) throw UsageError("--native is for sequences, not for volumes");
  for (const std::string& path : {files.difference, files.validity}) {
    if (!path.empty()) require_image_extension(path);
  }
  if (!files.field.empty()) require_sequence_path(files.field, smallest, 1, /*vectors=*/true);
}

void check_angiography_files_hold(const AngiographyFiles& files, const Grid& grid, int64_t frames) {
  for (const std::string& path : {files.difference, files.validity}) {
    if (!path.empty()) require_sequence_path(path, grid, frames);
  }
  if (!files.field.empty()) require_sequence_path(files.field, grid, frames, /*vectors=*/true);
}

}  // namespace larch::pipeline
