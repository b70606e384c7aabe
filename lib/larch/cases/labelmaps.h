// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>

#include "larch/cases/case_program.h"
#include "larch/data/volume.h"
#include "larch/io/segmentation/segmentation_file.h"

// Label maps of cases: their names, colours and codes, and DICOM segmentations for .dcm.
namespace larch::cases {

/// Returns a table with what --label-table says of its labels.
LabelTable named(const CaseJob& job, LabelTable table);

/// Throws UsageError if the label map of a product is wanted and its file cannot hold the labels of
/// an image of this size. To be called before the image is worked on.
void require_labelmap_holds(const CaseJob& job, const std::string& flag, const Vec3i& size);

/// Returns what writes label maps of a case: a DICOM segmentation of the image to a path that ends
/// in .dcm, others as write_labelmap does. It may outlive the job.
std::function<void(const std::string& path, const LabelVolume& labels)> labelmap_writer(
    const CaseJob& job, const LabelTable& table, const Code& family = kLearned);

}  // namespace larch::cases
