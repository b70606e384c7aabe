// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/phantom/angiogram.h"

namespace larch::pipeline {

/// Angiograms with known motion, before they are made.
struct AngiogramRequest {
  std::string folder;
  int cases = 1;
  std::string format;  ///< ending of the sequences, without the dot: dcm, mha, nrrd, ...
  std::string
      picture{};  ///< an X-ray picture or sequence whose (first) body is taken; may be empty
  bool has_truth = true;  ///< true motion and vessels are written too
  phantom::AngiogramConfig config;
};

/// Throws UsageError if there are no such sequences, or the format cannot hold them.
void check(const AngiogramRequest& request);

/// Makes the folders and returns all files: images/ (sequences), and with the truth fields/ (true
/// motion of every frame in mm, ITK vector images of two components over the frames), labels/
/// (vessels of every frame), truth/ (JSON: the motion in formulas) and cases.tsv. Frames are made
/// when they are written, so that memory holds one of them (and the vessels of all). A DICOM file
/// is a multi-frame X-ray angiogram whose Mask Subtraction Sequence names the mask frames. Folders
/// that are still empty when the outputs go are taken away again. Throws OutputError.
Outputs make_angiograms(const AngiogramRequest& request, const Context& context);

}  // namespace larch::pipeline
