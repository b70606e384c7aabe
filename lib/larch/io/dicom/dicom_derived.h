// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/io/dicom/dicom_object.h"
#include "larch/io/dicom/dicom_parser.h"
#include "larch/io/dicom/dicom_writer.h"
#include "larch/io/formats/image_file.h"

// A derived file takes these elements over from its sources.
namespace larch::io {

/// An element with its type of PS3.6, and what every file has to have there at the least: nothing
/// (type 2 of PS3.3), a value, or not even the element (null).
struct CopiedRow {
  DicomTag tag;
  const char* vr;
  const char* least = nullptr;
};

/// Patient and study, and what was done to the pixels: texts alone. Series, instance, frames and
/// pixels are the derived file's own.
inline constexpr CopiedRow kStudyRows[] = {
    {{0x0008, 0x0005, "SpecificCharacterSet"}, "CS"},
    {{0x0008, 0x0020, "StudyDate"}, "DA", ""},
    {{0x0008, 0x0030, "StudyTime"}, "TM", ""},
    {{0x0008, 0x0050, "AccessionNumber"}, "SH", ""},
    {{0x0008, 0x0090, "ReferringPhysicianName"}, "PN", ""},
    {{0x0008, 0x0201, "TimezoneOffsetFromUTC"}, "SH"},
    {{0x0008, 0x1030, "StudyDescription"}, "LO"},
    {{0x0010, 0x0010, "PatientName"}, "PN", ""},
    {{0x0010, 0x0020, "PatientID"}, "LO", ""},
    {{0x0010, 0x0021, "IssuerOfPatientID"}, "LO"},
    {{0x0010, 0x0030, "PatientBirthDate"}, "DA", ""},
    {{0x0010, 0x0040, "PatientSex"}, "CS", ""},
    {{0x0010, 0x1010, "PatientAge"}, "AS"},
    {{0x0010, 0x1020, "PatientSize"}, "DS"},
    {{0x0010, 0x1030, "PatientWeight"}, "DS"},
    {{0x0012, 0x0062, "PatientIdentityRemoved"}, "CS"},
    {{0x0012, 0x0063, "DeidentificationMethod"}, "LO"},
    {{0x0018, 0x0015, "BodyPartExamined"}, "CS"},
    {{0x0020, 0x0010, "StudyID"}, "SH", ""},
    {{0x0020, 0x0060, "Laterality"}, "CS"},
    {{0x0028, 0x2112, "LossyImageCompressionRatio"}, "DS"},
    {{0x0028, 0x2114, "LossyImageCompressionMethod"}, "CS"},
};

/// Tells whether an element is of one of some types, as far as the file says it.
bool may_have_vr(const DicomElement& element, std::initializer_list<const char*> types);

/// Returns the elements of the rows. What is empty, of another type than PS3.6 says or longer than
/// an element with a short length stays behind.
std::vector<CopiedElement> copies_of(std::span<const CopiedRow> rows, const DicomDataset& data);

/// Puts the least of the rows where nothing stands yet.
void put_least(DicomWriter& out, std::span<const CopiedRow> rows);

/// Returns what says which device made a file, Manufacturer first.
std::vector<CopiedElement> equipment_elements(const DicomDataset& data);

/// Puts that device as contributing equipment, if its manufacturer is known, without which there is
/// no item.
void put_source_equipment(DicomWriter& out, const std::vector<CopiedElement>& equipment);

/// Returns SeriesNumber; 0: none that can be read.
int series_number_of(const DicomDataset& data);

/// Returns that of a derived series: the next one, or 1 if there is none.
int series_after(int source);

/// An image as its DICOM files name it.
struct DicomSeries {
  struct Instance {
    std::string class_uid, instance_uid;
    bool has_frames = false;  ///< more than one
  };
  struct Slice {
    size_t instance = 0;
    int frame = 0;  ///< of the instance, from 0
    Vec3d position_mm{};
  };
  std::string path;  ///< of the first file
  std::string series_uid;
  DicomIdentity identity;
  std::vector<Instance> instances{};
  /// In the order of the third axis of the grid; none of a segmentation, of frames that are opened
  /// as a sequence, and where one has no place in space.
  std::vector<Slice> slices{};
};

/// Returns the names of an image that is open; nothing if it is not DICOM.
std::optional<DicomSeries> describe_series(const ImageFile& image);

}  // namespace larch::io
