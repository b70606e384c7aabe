// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/cases/labelmaps.h"

#include <algorithm>
#include <utility>

#include "larch/app/build_info.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

namespace larch::cases {
namespace {

bool is_segmentation(const std::string& path) {
  return file_extension(path) == ".dcm";
}

}  // namespace

LabelTable named(const CaseJob& job, LabelTable table) {
  for (LabelEntry& entry : table) {
    const auto row = std::ranges::find(job.about.labels, entry.value, &LabelEntry::value);
    if (row == job.about.labels.end()) continue;
    if (!row->name.empty()) entry.name = row->name;
    if (std::ranges::count(row->rgb, 0) < 3) std::ranges::copy(row->rgb, entry.rgb);
    entry.code = row->code;
    entry.category = row->category;
  }
  return table;
}

void require_labelmap_holds(const CaseJob& job, const std::string& flag, const Vec3i& size) {
  const std::string path = job.file(flag);
  if (path.empty()) return;
  if (!is_segmentation(path)) return require_image_holds(path, size);
  require_segmentation_source(path, job.row.image, job.read);
}

std::function<void(const std::string&, const LabelVolume&)> labelmap_writer(const CaseJob& job,
                                                                            const LabelTable& table,
                                                                            const Code& family) {
  const SegmentationMaker maker{job.about.program, version(), family};
  return [table, maker, image = job.row.image, read = job.read, threads = job.context().threads](
             const std::string& path, const LabelVolume& labels) {
    if (!is_segmentation(path)) return write_labelmap(path, labels, table, threads);
    write_segmentation(path, labels, table, image, read, maker);
  };
}

}  // namespace larch::cases
