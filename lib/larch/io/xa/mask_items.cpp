// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>

#include "larch/core/error.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/xa/angiogram_dicom.h"

namespace larch::io {
namespace {

constexpr DicomTag kFrameRange{0x0028, 0x6102, "ApplicableFrameRange"};
constexpr DicomTag kMaskFrames{0x0028, 0x6110, "MaskFrameNumbers"};
/// No mask is moved further than the largest picture.
constexpr double kFarthestShift = 65535;

std::string of_frames(int64_t frames) {
  return " of a file of " + std::to_string(frames) + (frames == 1 ? " frame" : " frames");
}

/// Numbers of 16 bits; an element of another type is damage.
std::vector<uint16_t> words_of(const DicomDataset& item, const DicomTag& tag) {
  const DicomElement* element = item.find(tag);
  if (element == nullptr) return {};
  if (!may_have_vr(*element, {"US", "SS"})) {
    throw InputError(std::string(tag.name) + " is not of 16-bit numbers");
  }
  return uint16s_of(item, tag);
}

/// Returns a frame that the file counts from 1.
int frame_of(int number, int64_t frames, const DicomTag& tag) {
  if (number < 1 || number > frames) {
    throw InputError(std::string(tag.name) + " names frame " + std::to_string(number) +
                     of_frames(frames));
  }
  return number - 1;
}

MaskOperation operation_of(const DicomDataset& item) {
  const std::string word = text_of(item, {0x0028, 0x6101, "MaskOperation"});
  for (size_t i = 0; i < kMaskOperations.size(); ++i) {
    if (word == kMaskOperations[i]) return static_cast<MaskOperation>(i);
  }
  throw InputError("MaskOperation is " + (word.empty() ? "missing" : shown(word)) +
                   ", which is none of NONE, AVG_SUB, TID and REV_TID");
}

void take_ranges(const DicomDataset& item, int64_t frames, MaskItem& out) {
  const std::vector<uint16_t> ends = words_of(item, kFrameRange);
  if (ends.size() % 2 != 0) throw InputError("ApplicableFrameRange is not of pairs");
  for (size_t i = 0; i < ends.size(); i += 2) {
    const FrameSpan span{frame_of(ends[i], frames, kFrameRange),
                         frame_of(ends[i + 1], frames, kFrameRange)};
    if (span.first > span.last) throw InputError("ApplicableFrameRange runs backwards");
    out.ranges.push_back(span);
  }
}

/// Two numbers of 4 bytes, the row first: by how much the mask is moved down, and to the left.
void take_shift(const DicomDataset& item, MaskItem& out) {
  const DicomElement* element = item.find({0x0028, 0x6114, "MaskSubPixelShift"});
  if (element == nullptr || element->value.empty()) return;
  if (!may_have_vr(*element, {"FL"}) || element->value.size() != 8) {
    throw InputError("MaskSubPixelShift is not of two numbers");
  }
  const FieldReader in{element->value.data(), item.is_big_endian};
  out.shift_px = {-double{in.get<float>(4)}, in.get<float>(0), 0};
  if (!(std::abs(out.shift_px.x) <= kFarthestShift && std::abs(out.shift_px.y) <= kFarthestShift)) {
    throw InputError("MaskSubPixelShift is no shift of a picture");
  }
}

void take_average(const DicomDataset& item, int64_t frames, MaskItem& out) {
  for (const uint16_t number : words_of(item, kMaskFrames)) {
    out.mask_frames.push_back(frame_of(number, frames, kMaskFrames));
  }
  if (out.mask_frames.empty()) throw InputError("AVG_SUB without MaskFrameNumbers");
  const std::vector<uint16_t> averaging =
      words_of(item, {0x0028, 0x6112, "ContrastFrameAveraging"});
  if (averaging.empty()) return;
  if (averaging.size() != 1 || averaging[0] < 1 || averaging[0] > frames) {
    throw InputError("ContrastFrameAveraging is " + std::to_string(averaging[0]) +
                     of_frames(frames));
  }
  out.contrast_averaging = averaging[0];
}

void take_offset(const DicomDataset& item, int64_t frames, MaskItem& out) {
  if (const std::vector<uint16_t> offset = words_of(item, {0x0028, 0x6120, "TIDOffset"});
      !offset.empty()) {
    out.tid_offset = static_cast<int16_t>(offset[0]);
  }
  if (out.tid_offset == 0) throw InputError("TIDOffset is 0: each frame would be its own mask");
  if (std::abs(out.tid_offset) >= frames) {
    throw InputError("TIDOffset is " + std::to_string(out.tid_offset) + of_frames(frames));
  }
}

MaskItem read_item(const DicomDataset& item, int64_t frames) {
  MaskItem out;
  out.operation = operation_of(item);
  out.explanation = text_of(item, {0x0028, 0x6190, "MaskOperationExplanation"});
  if (out.operation == MaskOperation::kNone) return out;
  take_ranges(item, frames, out);
  take_shift(item, out);
  if (out.operation == MaskOperation::kAverage) {
    take_average(item, frames, out);
    return out;
  }
  take_offset(item, frames, out);
  if (out.operation == MaskOperation::kReverseTid && out.ranges.empty()) {
    throw InputError("REV_TID without ApplicableFrameRange");
  }
  return out;
}

}  // namespace

void read_mask_items(const DicomDataset& data, Angiogram& about) {
  size_t number = 0;
  try {
    for (const DicomItem& item : items_of(data, {0x0028, 0x6100, "MaskSubtractionSequence"})) {
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
