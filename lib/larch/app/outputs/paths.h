// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>

namespace larch {

enum class PathRole : int {
  kInputImage,  ///< an image file or a DICOM folder
  kInputMesh,
  kInputPoints,  ///< points of 3D Slicer
  kInputFile,
  kInputList,  ///< a file that names inputs, or a folder with them
  kOutputImage,
  kOutputLabelmap,
  kOutputMesh,
  kOutputPicture,
  kOutputColours,  ///< a table of labels
  kOutputFile,
  kOutputDir,   ///< made if it is missing
  kOutputPage,  ///< the same, with a page and what it shows, beside other outputs
};

constexpr bool is_output(PathRole role) {
  return role >= PathRole::kOutputImage;
}

/// A file or folder name whose type says what it is for: from it come the check that inputs exist
/// and outputs do not, the hash in the record and the channel in 3D Slicer. Empty = not given.
template <PathRole role>
struct Path {
  static constexpr PathRole kPathRole = role;
  std::string path;

  Path() = default;
  Path(std::string text) : path(std::move(text)) {}  // NOLINT: a name is a path
  Path(const char* text) : path(text) {}             // NOLINT: a name is a path
  operator const std::string&() const { return path; }
  explicit operator bool() const { return !path.empty(); }
};

using InputImage = Path<PathRole::kInputImage>;
using InputMesh = Path<PathRole::kInputMesh>;
using InputPoints = Path<PathRole::kInputPoints>;
using InputFile = Path<PathRole::kInputFile>;
using InputList = Path<PathRole::kInputList>;
using OutputPicture = Path<PathRole::kOutputPicture>;
using OutputFile = Path<PathRole::kOutputFile>;
using OutputDir = Path<PathRole::kOutputDir>;
using OutputPage = Path<PathRole::kOutputPage>;

}  // namespace larch
