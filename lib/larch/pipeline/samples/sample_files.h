// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <vector>

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

/// "case_007".
std::string sample_case_name(int number);

/// A name below a folder: "samples" and "samples/" give the same.
std::string in_folder(const std::string& folder, const std::string& name);

/// Makes folders; when the last owner goes, those that are still empty are taken away again, the
/// last of them first. Throws OutputError.
std::shared_ptr<void> make_folders(const std::vector<std::string>& folders);

}  // namespace larch::pipeline
