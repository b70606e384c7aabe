// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_object.h"

namespace larch::io {
namespace {

constexpr DicomTag kStorageClass{0x0008, 0x0016, "SOPClassUID"};
constexpr DicomTag kSegmentationType{0x0062, 0x0001, "SegmentationType"};
constexpr DicomTag kSegments{0x0062, 0x0002, "SegmentSequence"};
constexpr DicomTag kSegmentNumber{0x0062, 0x0004, "SegmentNumber"};
constexpr DicomTag kSegmentLabel{0x0062, 0x0005, "SegmentLabel"};

}  // namespace

std::optional<DicomSegments> segments_of(const DicomDataset& data, const std::string& path) {
  const std::string storage = text_of(data, kStorageClass);
  const std::string type = text_of(data, kSegmentationType);
  DicomSegments found;
  found.is_labelmap = storage == "1.2.840.10008.5.1.4.1.1.66.7" || type == "LABELMAP";
  if (!found.is_labelmap && storage != "1.2.840.10008.5.1.4.1.1.66.4") return std::nullopt;
  if (!found.is_labelmap && type != "BINARY") {
    bad(path, "a segmentation of the type " + shown(type) +
                  ", whose pixels are shares or probabilities of a segment and no labels; write "
                  "it by a threshold as BINARY or LABELMAP");
  }
  for (const DicomItem& item : items_of(data, kSegments)) {
    found.table.push_back(
        {uint16_of(item.data, kSegmentNumber, 0, path), text_of(item.data, kSegmentLabel)});
  }
  return found;
}

}  // namespace larch::io
