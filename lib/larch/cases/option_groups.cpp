// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/option_groups.h"

namespace larch::cases {

ReadOptions Reading::read_options(const Context& context) const {
  ReadOptions read;
  read.nan_value = nan_value;
  read.allow = allow;
  read.has_frame_flag = false;
  read.warn = [&context](const std::string& text) { context.warn(text); };
  return read;
}

ReadOptions OneImage::read_options(const Context& context) const {
  ReadOptions read = reading.read_options(context);
  read.series_uid = series;
  read.frame = frame;
  read.has_frame_flag = true;
  return read;
}

void ImageList::check() const {
  if (list && dataset) throw UsageError("give either --list or --dataset; see --help");
  if (!dataset && !channel.empty()) throw UsageError("--channel goes with --dataset");
}

OneChannel ImageList::select(const CaseColumns& columns) const {
  if (list) return {read_case_list(list, columns), std::nullopt};
  return one_channel(read_dataset(dataset), channel);
}

std::vector<Case> select_cases(const ImageList& images, const CaseColumns& columns,
                               ReadOptions& read) {
  OneChannel selected = images.select(columns);
  if (selected.frame && read.frame) {
    throw UsageError(
        "--frame: the channels of '" + images.dataset.path +
        "' are the volumes of its files, and --channel chooses one; leave --frame out");
  }
  if (selected.frame) read.frame = selected.frame;
  return std::move(selected.cases);
}

std::vector<std::string> ImageList::notes() const {
  if (!dataset) return {};
  const Dataset data = read_dataset(dataset);
  std::vector<std::string> notes;
  if (!data.labels.empty()) {
    notes.push_back("labels of the data set: " + labels_text(data.labels));
  }
  if (data.channels.size() > 1) {
    notes.push_back("channel " + channel + " of " + std::to_string(data.channels.size()));
  }
  return notes;
}

}  // namespace larch::cases
