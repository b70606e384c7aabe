// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/option_groups.h"

namespace larch::cases {

ReadOptions Reading::read_options(const Context& context) const {
  ReadOptions read;
  read.nan_value = nan_value;
  read.allow = allow;
  read.warn = [&context](const std::string& text) { context.warn(text); };
  return read;
}

ReadOptions OneImage::read_options(const Context& context) const {
  ReadOptions read = reading.read_options(context);
  read.series_uid = series;
  read.frame = frame;
  return read;
}

void ImageList::check() const {
  if (list && dataset) throw UsageError("give either --list or --dataset; see --help");
}

}  // namespace larch::cases
