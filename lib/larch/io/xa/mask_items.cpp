// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/mask_items.h"

#include <cmath>

#include "larch/core/error.h"
#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {

constexpr DicomTag kMaskSubtraction{0x0028, 0x6100, "MaskSubtractionSequence"};
constexpr DicomTag kOperation{0x0028, 0x6101, "MaskOperation"};
constexpr DicomTag kFrameRange{0x0028, 0x6102, "ApplicableFrameRange"};
constexpr DicomTag kMaskFrames{0x0028, 0x6110, "MaskFrameNumbers"};
constexpr DicomTag kAveraging{0x0028, 0x6112, "ContrastFrameAveraging"};
constexpr DicomTag kShift{0x0028, 0x6114, "MaskSubPixelShift"};
constexpr DicomTag kTidOffset{0x0028, 0x6120, "TIDOffset"};
constexpr DicomTag kExplanation{0x0028, 0x6190, "MaskOperationExplanation"};
/// No mask is moved further than the largest picture.
constexpr double kFarthestShift = 65535;

[[noreturn]] void contradicts(const std::string& what) {
  throw InputError(what);
}

std::string of_frames(int64_t frames) {
  return " of a file of " + std::to_string(frames) + (frames == 1 ? " frame" : " frames");
}

/// Numbers of 16 bits; an element of another type is damage.
std::vector<uint16_t> words_of(const DicomDataset& item, const DicomTag& tag) {
  const DicomElement* element = item.find(tag);
  if (element == nullptr) return {};
  const bool untyped = element->vr == std::array<char, 2>{} || element->has_vr("UN");
  if (!untyped && !element->has_vr("US") && !element->has_vr("SS")) {
    contradicts(std::string(tag.name) + " is not of 16-bit numbers");
  }
  return uint16s_of(item, tag);
}

/// A frame that the file counts from 1.
int frame_of(int number, int64_t frames, const DicomTag& tag) {
  if (number < 1 || number > frames) {
    contradicts(std::string(tag.name) + " names frame " + std::to_string(number) +
                of_frames(frames));
  }
  return number - 1;
}

MaskOperation operation_of(const DicomDataset& item) {
  const std::string word = text_of(item, kOperation);
  if (word == "NONE") return MaskOperation::kNone;
  if (word == "AVG_SUB") return MaskOperation::kAverage;
  if (word == "TID") return MaskOperation::kTid;
  if (word == "REV_TID") return MaskOperation::kReverseTid;
  contradicts("MaskOperation is " + (word.empty() ? "missing" : shown(word)) +
              ", which is none of NONE, AVG_SUB, TID and REV_TID");
}

void take_ranges(const DicomDataset& item, int64_t frames, MaskItem& out) {
  const std::vector<uint16_t> ends = words_of(item, kFrameRange);
  if (ends.size() % 2 != 0) contradicts("ApplicableFrameRange is not of pairs");
  for (size_t i = 0; i < ends.size(); i += 2) {
    const FrameSpan span{frame_of(ends[i], frames, kFrameRange),
                         frame_of(ends[i + 1], frames, kFrameRange)};
    if (span.first > span.last) contradicts("ApplicableFrameRange runs backwards");
    out.ranges.push_back(span);
  }
}

/// Two numbers of 4 bytes, the row first: by how much the mask is moved down, and to the left.
void take_shift(const DicomDataset& item, MaskItem& out) {
  const DicomElement* element = item.find(kShift);
  if (element == nullptr || element->value.empty()) return;
  const bool typed = element->vr != std::array<char, 2>{} && !element->has_vr("UN");
  if ((typed && !element->has_vr("FL")) || element->value.size() != 8) {
    contradicts("MaskSubPixelShift is not of two numbers");
  }
  const FieldReader in{element->value.data(), item.is_big_endian};
  out.shift_px = {-double{in.get<float>(4)}, in.get<float>(0), 0};
  if (!(std::abs(out.shift_px.x) <= kFarthestShift && std::abs(out.shift_px.y) <= kFarthestShift)) {
    contradicts("MaskSubPixelShift is no shift of a picture");
  }
}

void take_average(const DicomDataset& item, int64_t frames, MaskItem& out) {
  for (const uint16_t number : words_of(item, kMaskFrames)) {
    out.mask_frames.push_back(frame_of(number, frames, kMaskFrames));
  }
  if (out.mask_frames.empty()) contradicts("AVG_SUB without MaskFrameNumbers");
  const std::vector<uint16_t> averaging = words_of(item, kAveraging);
  if (averaging.empty()) return;
  if (averaging.size() != 1 || averaging[0] < 1 || averaging[0] > frames) {
    contradicts("ContrastFrameAveraging is " + std::to_string(averaging[0]) + of_frames(frames));
  }
  out.contrast_averaging = averaging[0];
}

void take_offset(const DicomDataset& item, int64_t frames, MaskItem& out) {
  if (const std::vector<uint16_t> offset = words_of(item, kTidOffset); !offset.empty()) {
    out.tid_offset = static_cast<int16_t>(offset[0]);
  }
  if (out.tid_offset == 0) contradicts("TIDOffset is 0: each frame would be its own mask");
  if (std::abs(out.tid_offset) >= frames) {
    contradicts("TIDOffset is " + std::to_string(out.tid_offset) + of_frames(frames));
  }
}

MaskItem read_item(const DicomDataset& item, int64_t frames) {
  MaskItem out;
  out.operation = operation_of(item);
  out.explanation = text_of(item, kExplanation);
  if (out.operation == MaskOperation::kNone) return out;
  take_ranges(item, frames, out);
  take_shift(item, out);
  if (out.operation == MaskOperation::kAverage) {
    take_average(item, frames, out);
    return out;
  }
  take_offset(item, frames, out);
  if (out.operation == MaskOperation::kReverseTid && out.ranges.empty()) {
    contradicts("REV_TID without ApplicableFrameRange");
  }
  return out;
}

}  // namespace

void read_mask_items(const DicomDataset& data, Angiogram& about) {
  size_t number = 0;
  try {
    for (const DicomItem& item : items_of(data, kMaskSubtraction)) {
      ++number;
      about.masks.push_back(read_item(item.data, about.frames));
    }
  } catch (const InputError& error) {
    about.masks.clear();
    about.mask_problem = "'" + about.path + "': item " + std::to_string(number) +
                         " of its MaskSubtractionSequence contradicts the file: " + error.what() +
                         "; repair the header, or name the mask frames with --mask-frames";
  }
}

}  // namespace larch::io
