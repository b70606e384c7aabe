// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/xa/copied_elements.h"

#include <span>
#include <string_view>

namespace larch::io {
namespace {

/// With the types of PS3.6, in ascending order.
struct Row {
  DicomTag tag;
  const char* vr;
};
constexpr Row kCopied[] = {
    {{0x0008, 0x0005, "SpecificCharacterSet"}, "CS"},
    {{0x0008, 0x0020, "StudyDate"}, "DA"},
    {{0x0008, 0x0022, "AcquisitionDate"}, "DA"},
    {{0x0008, 0x0030, "StudyTime"}, "TM"},
    {{0x0008, 0x0032, "AcquisitionTime"}, "TM"},
    {{0x0008, 0x0050, "AccessionNumber"}, "SH"},
    {{0x0008, 0x0080, "InstitutionName"}, "LO"},
    {{0x0008, 0x0090, "ReferringPhysicianName"}, "PN"},
    {{0x0008, 0x0201, "TimezoneOffsetFromUTC"}, "SH"},
    {{0x0008, 0x1030, "StudyDescription"}, "LO"},
    {{0x0010, 0x0010, "PatientName"}, "PN"},
    {{0x0010, 0x0020, "PatientID"}, "LO"},
    {{0x0010, 0x0021, "IssuerOfPatientID"}, "LO"},
    {{0x0010, 0x0030, "PatientBirthDate"}, "DA"},
    {{0x0010, 0x0040, "PatientSex"}, "CS"},
    {{0x0010, 0x1010, "PatientAge"}, "AS"},
    {{0x0010, 0x1020, "PatientSize"}, "DS"},
    {{0x0010, 0x1030, "PatientWeight"}, "DS"},
    {{0x0012, 0x0062, "PatientIdentityRemoved"}, "CS"},
    {{0x0012, 0x0063, "DeidentificationMethod"}, "LO"},
    {{0x0018, 0x0010, "ContrastBolusAgent"}, "LO"},
    {{0x0018, 0x0015, "BodyPartExamined"}, "CS"},
    {{0x0018, 0x0022, "ScanOptions"}, "CS"},
    {{0x0018, 0x0060, "KVP"}, "DS"},
    {{0x0018, 0x1110, "DistanceSourceToDetector"}, "DS"},
    {{0x0018, 0x1111, "DistanceSourceToPatient"}, "DS"},
    {{0x0018, 0x1114, "EstimatedRadiographicMagnificationFactor"}, "DS"},
    {{0x0018, 0x1134, "TableMotion"}, "CS"},
    {{0x0018, 0x1147, "FieldOfViewShape"}, "CS"},
    {{0x0018, 0x1149, "FieldOfViewDimensions"}, "IS"},
    {{0x0018, 0x1150, "ExposureTime"}, "IS"},
    {{0x0018, 0x1151, "XRayTubeCurrent"}, "IS"},
    {{0x0018, 0x1152, "Exposure"}, "IS"},
    {{0x0018, 0x1154, "AveragePulseWidth"}, "DS"},
    {{0x0018, 0x1155, "RadiationSetting"}, "CS"},
    {{0x0018, 0x115a, "RadiationMode"}, "CS"},
    {{0x0018, 0x1160, "FilterType"}, "SH"},
    {{0x0018, 0x1162, "IntensifierSize"}, "DS"},
    {{0x0018, 0x1164, "ImagerPixelSpacing"}, "DS"},
    {{0x0018, 0x1166, "Grid"}, "CS"},
    {{0x0018, 0x1190, "FocalSpots"}, "DS"},
    {{0x0018, 0x1500, "PositionerMotion"}, "CS"},
    {{0x0018, 0x1508, "PositionerType"}, "CS"},
    {{0x0018, 0x1510, "PositionerPrimaryAngle"}, "DS"},
    {{0x0018, 0x1511, "PositionerSecondaryAngle"}, "DS"},
    {{0x0018, 0x1700, "CollimatorShape"}, "CS"},
    {{0x0018, 0x1702, "CollimatorLeftVerticalEdge"}, "IS"},
    {{0x0018, 0x1704, "CollimatorRightVerticalEdge"}, "IS"},
    {{0x0018, 0x1706, "CollimatorUpperHorizontalEdge"}, "IS"},
    {{0x0018, 0x1708, "CollimatorLowerHorizontalEdge"}, "IS"},
    {{0x0018, 0x1710, "CenterOfCircularCollimator"}, "IS"},
    {{0x0018, 0x1712, "RadiusOfCircularCollimator"}, "IS"},
    {{0x0018, 0x1720, "VerticesOfThePolygonalCollimator"}, "IS"},
    {{0x0020, 0x0010, "StudyID"}, "SH"},
    {{0x0020, 0x0020, "PatientOrientation"}, "CS"},
    {{0x0020, 0x0060, "Laterality"}, "CS"},
    {{0x0028, 0x0030, "PixelSpacing"}, "DS"},
    {{0x0028, 0x0034, "PixelAspectRatio"}, "IS"},
    {{0x0028, 0x0301, "BurnedInAnnotation"}, "CS"},
    {{0x0028, 0x0a02, "PixelSpacingCalibrationType"}, "CS"},
    {{0x0028, 0x0a04, "PixelSpacingCalibrationDescription"}, "LO"},
    {{0x0028, 0x2112, "LossyImageCompressionRatio"}, "DS"},
    {{0x0028, 0x2114, "LossyImageCompressionMethod"}, "CS"},
};

constexpr Row kEquipment[] = {
    {{0x0008, 0x0070, "Manufacturer"}, "LO"},
    {{0x0008, 0x0080, "InstitutionName"}, "LO"},
    {{0x0008, 0x1010, "StationName"}, "SH"},
    {{0x0008, 0x1090, "ManufacturerModelName"}, "LO"},
    {{0x0018, 0x1000, "DeviceSerialNumber"}, "LO"},
    {{0x0018, 0x1020, "SoftwareVersions"}, "LO"},
};

std::vector<CopiedElement> found_of(std::span<const Row> rows, const DicomDataset& data) {
  constexpr size_t kLongest = 65534;
  std::vector<CopiedElement> copied;
  for (const Row& row : rows) {
    const DicomElement* element = data.find(row.tag);
    if (element == nullptr || element->value.empty() || element->value.size() > kLongest) continue;
    const bool untyped = element->vr == std::array<char, 2>{} || element->has_vr("UN");
    if (!untyped && !element->has_vr(row.vr)) continue;
    copied.push_back(
        {row.tag.group, row.tag.element, {row.vr[0], row.vr[1]}, std::string(element->value)});
    if (copied.back().value.size() % 2 != 0) copied.back().value += ' ';
  }
  return copied;
}

}  // namespace

std::vector<CopiedElement> copied_elements(const DicomDataset& data) {
  return found_of(kCopied, data);
}

std::vector<CopiedElement> equipment_elements(const DicomDataset& data) {
  return found_of(kEquipment, data);
}

}  // namespace larch::io
