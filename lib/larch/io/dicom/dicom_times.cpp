// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {

constexpr DicomTag kFrameTime{0x0018, 0x1063, "FrameTime"};
constexpr DicomTag kFrameTimeVector{0x0018, 0x1065, "FrameTimeVector"};
constexpr DicomTag kFrameIncrement{0x0028, 0x0009, "FrameIncrementPointer"};

/// Which of the two elements counts; null if the file has neither.
const DicomTag* times_tag(const DicomDataset& data) {
  const std::vector<uint16_t> pointer = uint16s_of(data, kFrameIncrement);
  for (const DicomTag* tag : {&kFrameTimeVector, &kFrameTime}) {
    const bool named =
        pointer.size() >= 2 && pointer[0] == tag->group && pointer[1] == tag->element;
    if (named && has_value(data, *tag)) return tag;
  }
  for (const DicomTag* tag : {&kFrameTimeVector, &kFrameTime}) {
    if (has_value(data, *tag)) return tag;
  }
  return nullptr;
}

}  // namespace

std::vector<double> frame_times_ms(const DicomDataset& data, int frames, const std::string& path) {
  const DicomTag* tag = times_tag(data);
  if (tag == nullptr) return {};
  const bool one = tag == &kFrameTime;
  const auto steps = numbers_of(data, *tag, one ? 1 : static_cast<size_t>(frames), path);
  std::vector<double> times(static_cast<size_t>(frames), 0);
  for (size_t i = 1; i < times.size(); ++i) {
    const double step = steps[one ? 0 : i];  // the first of the vector is 0 (PS3.3, C.7.6.5.1.2)
    if (step < 0) bad(path, std::string(tag->name) + " is negative; repair the header");
    times[i] = times[i - 1] + step;
  }
  return times;
}

}  // namespace larch::io
