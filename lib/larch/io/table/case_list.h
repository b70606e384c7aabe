// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

namespace larch {

/// One row of a list of images. Paths are absolute or relative to the working folder, ready to
/// open.
struct Case {
  std::string id;  ///< column `id`, else the image's file name without folder and endings
  std::string image;
  std::string label;  ///< empty if the list has no label for this image
};

/// Names of the two columns of files.
struct CaseColumns {
  std::string image = "image";
  std::string label = "label";
  bool label_required = false;
  bool files_exist = true;  ///< false: files that are missing are not looked for yet
};

/// Reads a TSV (or CSV if the path ends so) with a header line: column `image`, and optionally
/// `label` and `id`, in any order (the first two may have other names); other columns are ignored.
/// Paths are relative to the list's folder. CSV fields may stand in double quotes. A byte order
/// mark, CR LF line ends and empty lines are accepted. Throws InputError, with the line number:
/// empty list, missing column, missing image or label file (unless
/// columns.files_exist is false), ids that repeat, wrong number of
/// fields.
std::vector<Case> read_case_list(const std::string& path, const CaseColumns& columns = {});

/// Reads the training cases of a dataset.json: the Medical Segmentation Decathlon's ("training" is
/// an array of {image, label}), or nnU-Net version 2's (channel_names, file_ending; images are in
/// imagesTr/<id>_0000<file_ending>, labels in labelsTr/<id><file_ending>). More than one
/// channel is an error. Throws InputError.
std::vector<Case> read_dataset_json(const std::string& path);

}  // namespace larch
