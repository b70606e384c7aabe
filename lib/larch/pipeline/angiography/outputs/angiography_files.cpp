// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/angiography/outputs/angiography_files.h"

#include <algorithm>

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

CaseFiles AngiographyFiles::names() const {
  CaseFiles names;
  for (const CaseOutput& output :
       {CaseOutput{difference, "output"}, CaseOutput{field, "field"},
        CaseOutput{validity, "validity"}, CaseOutput{grid, "grid"}, CaseOutput{preview, "preview"},
        CaseOutput{animation, "animation"}, CaseOutput{native, "native"}}) {
    if (!output.path.empty()) names.outputs.push_back(output);
  }
  return names;
}

Grid field_grid(const Grid& grid, FieldUnits units) {
  if (units == FieldUnits::kMm) return grid;
  Grid pixels;
  pixels.size = grid.size;
  return pixels;
}

void check_angiography_files(const AngiographyFiles& files, bool is_volume) {
  if (files.are_none()) {
    throw UsageError(
        "nothing to write: give --output, --field, --validity, --grid, --preview, --animation or "
        "--native");
  }
  Grid smallest;
  smallest.size = {1, 1, 1};
  require_ending(files.grid, "--grid", ".csv");
  require_ending(files.preview, "--preview", ".png");
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

AngiographyFiles angiography_files_of_case(const std::string& folder, const std::string& id,
                                           const std::vector<AngiographyProduct>& products,
                                           const std::string& ending) {
  const std::string stem = folder + (folder.ends_with('/') ? "" : "/") + id;
  const auto name = [&](AngiographyProduct product, const std::string& end) {
    const bool has = std::find(products.begin(), products.end(), product) != products.end();
    return has ? stem + end : std::string();
  };
  using enum AngiographyProduct;
  return {name(kDifference, ending),   name(kField, ".field.mha"), name(kValidity, ".validity.mha"),
          name(kGrid, ".csv"),         name(kPreview, ".png"),     name(kAnimation, ".gif"),
          name(kNative, ".native.dcm")};
}

}  // namespace larch::pipeline
