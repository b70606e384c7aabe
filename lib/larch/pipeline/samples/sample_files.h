// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/phantom/organs.h"

namespace larch::pipeline {

/// Sample volumes with known truth, before they are made.
struct SampleRequest {
  std::string folder;
  int training = 0;    ///< cases in train.tsv
  int test = 0;        ///< cases in test.tsv
  std::string format;  ///< ending of the image files, without the dot, or "dicom"
  phantom::OrgansConfig config;

  int cases() const { return training + test; }
  bool is_dicom() const { return format == "dicom"; }
};

/// Throws UsageError if there are no such bodies, or the format cannot hold them.
void check(const SampleRequest& request);

/// Makes the folders for images and labels and returns all files of the samples: images/, labels/,
/// train.tsv, test.tsv, dataset.json and labels.tsv. A DICOM series is a folder in images/ with a
/// file per slice, and its label map is NIfTI. A case is made when its files are written, so that
/// memory holds only one. Folders that are still empty when the outputs go are taken away again.
/// Throws OutputError.
Outputs make_samples(const SampleRequest& request, const Context& context);

}  // namespace larch::pipeline
