// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/segmentation/segmentation_file.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <limits>
#include <map>
#include <set>
#include <vector>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/io/itk/door.h"
#include "larch/io/segmentation/segmentation_header.h"

namespace larch {
namespace io {
namespace {

OpenImage opened(const std::string& image, ReadOptions read, bool is_sequence = false) {
  read.warn = nullptr;  // the reading itself says it
  return {image, {std::move(read), Palette::kExpand, is_sequence}};
}

[[noreturn]] void refuse(const std::string& path, const std::string& why) {
  throw UsageError("cannot write '" + path + "': " + why + "; write .nii.gz, .nrrd or .mha");
}

DicomSeries source_of(const std::string& path, const OpenImage& image) {
  std::optional<DicomSeries> series = describe_series(image.file());
  const std::string name = "'" + image.file().path() + "'";
  if (!series) {
    refuse(path, ".dcm is a DICOM segmentation of a DICOM series, and " + name + " is not DICOM");
  }
  if (series->slices.empty()) {
    refuse(path, "a DICOM segmentation lies in the slices of its source, and those of " + name +
                     " have no place in space, or are a segmentation");
  }
  return *std::move(series);
}

/// Returns the masks that hold a voxel, by segment and slice; the first one if none does. `content`
/// is fed with where which label begins and ends.
std::vector<SegmentFrame> frames_of(const LabelVolume& labels, const LabelTable& table,
                                    Sha256& content) {
  std::map<int32_t, size_t> segments;
  for (size_t k = 0; k < table.size(); ++k) segments.emplace(table[k].value, k);
  std::vector<std::set<int>> slices(table.size());
  const Vec3i& size = labels.size();
  const int64_t area = int64_t{size.x} * size.y;
  for (int slice = 0; slice < size.z; ++slice) {
    const int32_t* label = labels.data() + slice * area;
    for (int64_t i = 0; i < area; ++i) {
      if (i > 0 && label[i] == label[i - 1]) continue;
      const std::array<int64_t, 3> start{slice, i, label[i]};
      content.update(start.data(), sizeof start);
      const auto found = segments.find(label[i]);
      if (found != segments.end()) slices[found->second].insert(slice);
    }
  }
  std::vector<SegmentFrame> frames;
  for (size_t k = 0; k < slices.size(); ++k) {
    for (const int slice : slices[k]) frames.push_back({k, slice});
  }
  if (frames.empty()) frames.emplace_back();
  return frames;
}

/// Writes the masks, whose bits follow each other without a gap between frames, to `bytes` bytes.
void write_masks(ImageStream& out, const LabelVolume& labels, const LabelTable& table,
                 const std::vector<SegmentFrame>& frames, int64_t bytes) {
  const int64_t area = int64_t{labels.size().x} * labels.size().y;
  std::vector<uint8_t> buffer(static_cast<size_t>(area / 8 + 2));
  int64_t bit = 0;  // of the buffer
  const auto write = [&](int64_t count) {
    if (count > 0) out.write(buffer.data(), count);
    bytes -= count;
  };
  for (const SegmentFrame& frame : frames) {
    const int32_t* label = labels.data() + frame.slice * area;
    for (int64_t i = 0; i < area; ++i, ++bit) {
      if (label[i] != table[frame.segment].value) continue;
      uint8_t& byte = buffer[static_cast<size_t>(bit / 8)];
      byte = static_cast<uint8_t>(byte | 1U << bit % 8);
    }
    write(bit / 8);
    const uint8_t begun = bit % 8 > 0 ? buffer[static_cast<size_t>(bit / 8)] : 0;
    std::ranges::fill(buffer, 0);
    buffer[0] = begun;
    bit %= 8;
  }
  write(bytes);  // the byte that is begun, and padding to an even number
}

}  // namespace
}  // namespace io

std::optional<io::DicomSeries> dicom_names(const std::string& image, const ReadOptions& read,
                                           bool is_sequence) {
  return io::describe_series(io::opened(image, read, is_sequence).file());
}

void require_segmentation_source(const std::string& path, const std::string& image,
                                 const ReadOptions& read) {
  io::source_of(path, io::opened(image, read));
}

void write_segmentation(const std::string& path, const LabelVolume& labels, const LabelTable& table,
                        const std::string& image, const ReadOptions& read,
                        const SegmentationMaker& maker) {
  const io::OpenImage source = io::opened(image, read);
  const io::DicomSeries series = io::source_of(path, source);
  require_on_grid("'" + path + "'", labels.grid(), "'" + image + "'", source.header().grid);
  if (table.empty() || table.size() > std::numeric_limits<uint16_t>::max()) {
    io::refuse(path, "a DICOM segmentation has 1 to 65535 structures");
  }
  Sha256 content;
  const std::vector<io::SegmentFrame> frames = io::frames_of(labels, table, content);
  const Vec3i& size = labels.size();
  const int64_t bits = int64_t{size.x} * size.y * static_cast<int64_t>(frames.size());
  const int64_t bytes = (bits + 15) / 16 * 2;
  if (bytes > std::numeric_limits<int32_t>::max()) {
    io::refuse(path, "a DICOM segmentation of " + std::to_string(frames.size()) +
                         " frames has more than 2 GiB of pixels");
  }
  io::Pixels pixels;
  pixels.grid.size = {1, 1, static_cast<int32_t>(bytes)};
  pixels.head = io::segmentation_head({series, labels.grid(), table, maker, frames}, bytes,
                                      hex(content.digest()));
  io::ImageStream out(path, pixels);
  io::write_masks(out, labels, table, frames, bytes);
}

}  // namespace larch
