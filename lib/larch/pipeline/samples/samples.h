// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/phantom/angiogram.h"
#include "larch/phantom/head.h"
#include "larch/phantom/organs.h"

// Samples with known truth. Names of outputs are below the folder of the samples; what they hold is
// made when they are written, one case at a time, so that memory holds only one.
namespace larch::pipeline {

/// Volumes to train on, before they are made.
struct OrgansRequest {
  int training = 0;    ///< cases in train.tsv
  int test = 0;        ///< cases in test.tsv
  std::string format;  ///< ending of the image files, without the dot, or "dicom"
  phantom::OrgansConfig config;

  bool is_dicom() const { return format == "dicom"; }
};

/// Head phantoms with known tissues, before they are made.
struct HeadsRequest {
  int cases = 1;
  std::string format;  ///< ending of the image files, without the dot
  phantom::HeadConfig config;
};

/// Angiograms with known motion, before they are made.
struct AngiogramsRequest {
  int cases = 1;
  std::string format;     ///< ending of the sequences, without the dot: dcm, mha, nrrd, ...
  std::string picture{};  ///< X-ray picture or sequence whose (first) body is taken; may be empty
  bool has_truth = true;  ///< true motion and vessels are written too
  phantom::AngiogramConfig config;
};

/// Throws UsageError if there are no such samples, or the format cannot hold them.
void check(const OrgansRequest& request);
void check(const HeadsRequest& request);
void check(const AngiogramsRequest& request);

/// images/, labels/, train.tsv, test.tsv, dataset.json and labels.tsv. A DICOM series is a folder
/// in images/ with a file per slice, and its label map is NIfTI.
Outputs make_samples(const OrgansRequest& request, const Context& context);

/// images/, labels/, cases.tsv and labels.tsv.
Outputs make_samples(const HeadsRequest& request, const Context& context);

/// images/ (sequences), and with the truth fields/ (true motion of every frame in mm, ITK vector
/// images of two components over the frames), labels/ (vessels of every frame), truth/ (JSON: the
/// motion in formulas) and cases.tsv. Frames are made when they are written, so that memory holds
/// one of them (and the vessels of all). A DICOM file is a multi-frame X-ray angiogram whose Mask
/// Subtraction Sequence names the mask frames.
Outputs make_samples(const AngiogramsRequest& request, const Context& context);

/// "case_007".
std::string sample_case_name(int number);

}  // namespace larch::pipeline
