// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "larch/cases/case_list.h"

namespace larch {

/// Returns the images of a folder (find_images) as a list would have them; without a column
/// `series`, each DICOM file is one.
///
/// The id is the path below the folder without the ending, "a__b__ct" of a/b/ct.nii.gz, and behind
/// it the UID of a series. An id that another image has too, that holds what file names do not or
/// is too long for one, ends with a digest of the path and the UID. So the id of an image does not
/// depend on the others, unless one has the same.
///
/// `with_labels`: the labels of X/c.nii.gz are a label map or a surface c in the folder labels of
/// the folder X or of the one around it, or else the folder X/segmentations. `warn` is told of
/// files that are passed over; may be empty. Throws InputError: no image, which says what is looked
/// for; no labels where columns.label_required, or several; a folder that cannot be read.
std::vector<Case> read_case_folder(const std::string& folder, const CaseColumns& columns,
                                   bool with_labels,
                                   const std::function<void(const std::string&)>& warn);

}  // namespace larch
