// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/cases/case_list.h"
#include "larch/config/fields.h"
#include "larch/data/volume.h"

namespace larch {

/// A part of a data set.
enum class DatasetPart { kTest, kTraining };
constexpr auto enum_names(DatasetPart*) {
  return std::to_array<EnumName<DatasetPart>>(
      {{DatasetPart::kTest, "test"}, {DatasetPart::kTraining, "training"}});
}

/// A case of a data set.
struct DatasetCase {
  std::string id;
  std::string label{};  ///< of a training case
  /// One file per channel; or one for all channels, which are the volumes of a 4-D image then.
  std::vector<std::string> images;
};

/// A part of a data set.
struct Dataset {
  std::string path;                   ///< of its dataset.json
  std::vector<std::string> channels;  ///< names by number; empty: one channel without a name
  std::vector<DatasetLabel> labels;   ///< in the order of their values; empty: not told
  std::vector<DatasetCase> cases;     ///< at least one, in the order of the file or of their ids
  std::vector<std::string> warnings;  ///< sentences for the user
};

/// Reads a dataset.json, or that of a folder. "training": [{image, label}] is that of the Medical
/// Segmentation Decathlon and of nnU-Net version 1; several modalities are the volumes of one 4-D
/// file per case or, as nnU-Net stores them, files <image>_0000, <image>_0001, ... "file_ending" is
/// that of nnU-Net version 2: files imagesTr/<id>_0000<ending>, ... and labelsTr/<id><ending>, or
/// those that "dataset": {<id>: {images, label}} names. The test part is the list "test" of images,
/// or the files of the folder imagesTs; it has no labels. Channels are named by "channel_names" or
/// "modality"; labels by {"liver": 1, "both": [1, 2]} or {"1": "liver"}. Files "._*", in which
/// macOS keeps what other file systems do not hold, are no cases. Throws InputError; also for a
/// file that is missing.
Dataset read_dataset(const std::string& path, DatasetPart part = DatasetPart::kTraining);

/// The name that the dataset.json of a folder has.
std::string dataset_file_of(const std::string& folder);

/// The cases of a data set for a program that takes one channel.
struct OneChannel {
  std::vector<Case> cases;
  std::optional<int> frame;  ///< for ReadOptions, if the channels are volumes of one file
};

/// `channel`: a name, or a number counted from 0 as in the files' names; "" if there is but one.
/// Throws UsageError that tells the channels, if none is chosen of several or it is not among them.
OneChannel one_channel(const Dataset& dataset, const std::string& channel);

/// The cases with all channels, as Case::channels says. Throws InputError.
std::vector<Case> all_channels(const Dataset& dataset);

/// "0 background, 1 liver, 1+2 both": for people.
std::string labels_text(const std::vector<DatasetLabel>& labels);

}  // namespace larch
