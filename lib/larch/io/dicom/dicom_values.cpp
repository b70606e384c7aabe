// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_values.h"

#include <cmath>
#include <limits>

#include "larch/io/image/message.h"

namespace larch::io {
namespace {

constexpr DicomTag kIntercept{0x0028, 0x1052, "RescaleIntercept"};
constexpr DicomTag kSlope{0x0028, 0x1053, "RescaleSlope"};
constexpr DicomTag kDoseScaling{0x3004, 0x000e, "DoseGridScaling"};
constexpr DicomTag kModalityLut{0x0028, 0x3000, "ModalityLUTSequence"};
constexpr DicomTag kLutDescriptor{0x0028, 0x3002, "LUTDescriptor"};
constexpr DicomTag kLutData{0x0028, 0x3006, "LUTData"};

void check_slope(double slope, double intercept, const DicomTag& tag, const std::string& path) {
  const double largest = std::abs(slope) * 4294967296.0 + std::abs(intercept);
  if (slope != 0 && largest < static_cast<double>(std::numeric_limits<float>::max())) return;
  bad(path, std::string(tag.name) +
                (slope == 0 ? " is 0, which would make all voxels the same"
                            : " or its intercept is larger than any value") +
                "; repair the header or export the file again");
}

}  // namespace

void take_rescale(const DicomDataset& data, DicomPlane& plane, const std::string& path) {
  const auto slope = numbers_of(data, kSlope, 1, path);
  const auto intercept = numbers_of(data, kIntercept, 1, path);
  const auto dose = numbers_of(data, kDoseScaling, 1, path);
  if (slope.empty() != intercept.empty()) {
    bad(path, std::string(slope.empty() ? "RescaleIntercept is given without RescaleSlope"
                                        : "RescaleSlope is given without RescaleIntercept") +
                  "; repair the header or export the file again");
  }
  if (!slope.empty()) {
    check_slope(slope[0], intercept[0], kSlope, path);
    plane.slope = slope[0];
    plane.intercept = intercept[0];
  }
  if (dose.empty()) return;
  check_slope(dose[0], 0, kDoseScaling, path);
  if (plane.slope != 1 || plane.intercept != 0) {
    bad(path,
        "it has a DoseGridScaling and a RescaleSlope or RescaleIntercept of its own; repair "
        "the header: a dose has the first alone");
  }
  plane.slope = dose[0];
}

DicomLut read_modality_lut(const DicomDataset& data, bool is_signed, const std::string& path) {
  const std::span<const DicomItem> items = items_of(data, kModalityLut);
  if (items.empty()) return {};
  const auto bad = [&](const std::string& what) {
    io::bad(path, "its Modality LUT cannot be applied: " + what +
                      "; repair the header or export the file again");
  };
  if (items.size() != 1) bad("the sequence holds more than one table");
  const DicomDataset& item = items[0].data;
  const std::vector<uint16_t> descriptor = uint16s_of(item, kLutDescriptor);
  if (descriptor.size() != 3) bad("LUTDescriptor is not three numbers");
  const size_t entries = descriptor[0] == 0 ? 65536 : descriptor[0];  // PS3.3, C.11.1.1.1
  const int bits = descriptor[2];
  if (bits < 8 || bits > 16) bad("it has " + std::to_string(bits) + " bits an entry");
  std::vector<uint16_t> words = uint16s_of(item, kLutData);
  if (bits == 8 && words.size() == (entries + 1) / 2 && entries > 1) {  // two entries in a word
    const std::vector<uint16_t> packed = words;
    words.assign(entries, 0);
    for (size_t i = 0; i < entries; ++i) {
      words[i] = static_cast<uint16_t>(packed[i / 2] >> (8 * (i % 2)) & 255);
    }
  }
  if (words.size() != entries) {
    bad("LUTData has " + std::to_string(words.size()) + " entries instead of " +
        std::to_string(entries));
  }
  for (const uint16_t word : words) {
    if (word >> bits != 0) bad("an entry has more than its " + std::to_string(bits) + " bits");
  }
  DicomLut lut;
  lut.first = is_signed ? static_cast<int16_t>(descriptor[1]) : descriptor[1];
  lut.values.assign(words.begin(), words.end());
  return lut;
}

}  // namespace larch::io
