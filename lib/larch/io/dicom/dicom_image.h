// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "larch/io/dicom/dicom_object.h"
#include "larch/io/formats/image_file.h"

namespace larch::io {

/// True for a folder, for a file that starts as DICOM files do (with or without preamble), and for
/// one that cannot be read.
bool is_dicom(const std::string& path);

/// Returns the header of a file, which is kept as long as the file stays as it is; nothing if it
/// does not begin as DICOM files do. Throws InputError if it is damaged or cannot be read.
std::optional<DicomObject> dicom_header(const std::string& path);

/// A series: the slices of a folder that have one SeriesInstanceUID, or the frames of a file,
/// sorted by their place along the normal of the image plane; one slice has SliceThickness (or 1
/// mm) as third spacing. The third axis is the step between the places, which keeps the tilt of a
/// gantry; a step within 0.001 rad of the normal counts as not tilted. Of several frames without
/// places, or all at one (a cine), options.frame chooses one. Voxels are the stored bits with their
/// sign, rescaled; RGB pixels become luminance, MONOCHROME1 is not inverted, options.nan_value does
/// not apply. Throws InputError for what the table in apps/reading-images.md refuses.
class DicomImage : public ImageFile {
 public:
  /// Reads the headers. As a sequence (OpenOptions::is_sequence) the path is a file, whose stored
  /// numbers are given as they are and whose frames need no place.
  DicomImage(const std::string& path, const OpenOptions& options);
  void read(int64_t from, std::span<std::byte> to) override;
  std::vector<std::string> files() const override;

  /// Of a sequence.
  const DicomFile& file() const { return *file_; }
  const DicomObject& object() const { return objects_.front(); }
  const std::vector<DicomObject>& objects() const { return objects_; }
  /// In order: the slices, or the frames of a segmentation; none of a sequence.
  const std::vector<DicomPlane>& planes() const { return planes_; }

 private:
  void arrange();
  const std::byte* read_plane(const DicomPlane& plane);
  void read_segments(int slice, std::span<float> out);
  DicomPlane plane_of_frame(int64_t frame) const;
  DicomPixels& pixels_of(int object);
  void read_frames(int object, const FrameRange& frames, std::span<std::byte> to);

  ReadOptions options_;
  bool is_sequence_;
  std::optional<DicomFile> file_;
  std::vector<DicomObject> objects_;
  std::vector<DicomPlane> planes_;  ///< in order
  std::string problem_;             ///< of the geometry of a cine of which no frame is chosen
  std::unique_ptr<DicomPixels> pixels_;
  int object_of_pixels_ = 0;
  std::set<int> hashed_;           ///< the files whose digests were told
  std::vector<std::byte> stored_;  ///< of one plane
};

}  // namespace larch::io
