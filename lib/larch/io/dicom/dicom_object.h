// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/files/file.h"
#include "larch/io/dicom/dicom_parser.h"
#include "larch/io/formats/image_file.h"

namespace larch::io {

/// One image plane: a file of a series, or a frame of a multi-frame object.
struct DicomPlane {
  std::string name;  ///< for messages: the file, or "the file, frame 3"
  int object = 0;    ///< which of the files
  int frame = 0;     ///< which frame of it
  int segment = 0;   ///< of a BINARY segmentation: whose mask it is
  int slice = 0;     ///< of a segmentation, of which several frames may make one slice
  Vec3i size{0, 0, 1};
  bool has_position = false, has_orientation = false, has_spacing = false;
  double aspect_y = 1, aspect_x = 1;  ///< PixelAspectRatio
  Vec3d position_mm{};
  Vec3d row{1, 0, 0}, column{0, 1, 0};  ///< directions of increasing column and row number
  double spacing_x_mm = 1, spacing_y_mm = 1, thickness_mm = 1;
  double between_slices_mm = 0;  ///< SpacingBetweenSlices; 0: not given
  double slope = 1, intercept = 0;
};

/// How the samples of a pixel are stored (PS3.5, 8.1.1).
struct DicomPixelFormat {
  int samples = 1, bits_allocated = 16, bits_stored = 16, high_bit = 15;
  int representation = 0;     ///< 0: unsigned, 1: signed
  uint32_t overlay_bits = 0;  ///< bits of a sample, beside the stored ones, that hold overlays
  int planar = 0;             ///< 1: all red samples of a frame, then all green, then all blue
  std::string photometric = "MONOCHROME2";

  bool is_colour() const { return samples == 3 || photometric == "PALETTE COLOR"; }
  bool is_ybr() const { return photometric.starts_with("YBR"); }
};

/// A Modality LUT, or the luminance of a palette: the value of stored number n is values[n -
/// first], with the index clamped.
struct DicomLut {
  int first = 0;
  std::vector<float> values;  ///< empty: there is none
};

/// Holds what must be the same in all files of a series.
struct DicomIdentity {
  std::string patient_id, patient_name, birth_date, study_uid, reference_frame_uid;
};

/// The segments of a segmentation (PS3.3, C.8.20), which is read as a label map.
struct DicomSegments {
  bool is_labelmap = false;  ///< pixels are numbers of segments; or else frames are masks
  LabelTable table{};
  /// The labels of segments that Larch wrote and had to number anew, by their numbers.
  std::map<int, int32_t> renumbered{};
};

/// Nothing if it is another object. Throws InputError for what is no label map.
std::optional<DicomSegments> segments_of(const DicomDataset& data, const std::string& path);

/// The header of one file.
struct DicomObject {
  std::string path, kind, class_uid, instance_uid, series_uid, modality, description;
  std::optional<FileStamp> stamp{};  ///< of a file that was known when its header was read
  int frames = 1;
  /// Several frames without positions, that were not described one by one: `planes` holds the first
  /// one, and the others are like it.
  bool frames_alike = false;
  bool has_pixels = false;  ///< it has rows and columns, or pixel data
  /// Why it cannot be read as an image, as a whole message; empty if it can. Told only if the file
  /// is chosen: a folder may hold another series that can be read.
  std::string problem;
  DicomPixelFormat format;
  TransferSyntax transfer_syntax = TransferSyntax::kUnknown;
  std::optional<PixelPlace> place{};  ///< of the pixel data in the file
  /// Of encapsulated pixel data the first fragment of each frame, and the end of the last one.
  std::vector<size_t> frame_starts{};
  DicomLut lut;
  std::optional<DicomSegments> segments{};
  bool is_segmentation() const { return segments.has_value(); }
  DicomIdentity identity;
  std::vector<DicomPlane> planes;
};

/// Returns the type of the stored numbers.
Component component_of(const DicomPixelFormat& format);

/// Returns the header of a file that was taken apart. Throws InputError if it is damaged.
DicomObject describe_dicom(const DicomFile& file);

/// Finds the frames of compressed pixel data. Throws InputError if the pixel data cannot hold the
/// frames of `object`, each a plane of `size`, or are coded in another way than the header says.
void check_pixel_claims(const DicomFile& file, DicomObject& object, const Vec3i& size);

/// Tells whether the frames of an object make no volume, but can be read one by one: they have no
/// position or orientation, or all of them have the same one.
bool is_cine(const DicomObject& object);

/// Puts the planes in order along their normal and returns the grid that they fill; throws
/// InputError as make_plan says.
Grid arrange_planes(std::vector<DicomPlane>& planes, const std::string& path,
                    const ReadOptions& options = {});

/// Arranges the frames of a segmentation as arrange_planes does slices. Frames of several segments
/// make a slice, and slices without a segment may be missing: they are slices of the grid, and so
/// are those of options.label_grid before the first and behind the last frame.
Grid arrange_segments(std::vector<DicomPlane>& planes, const std::string& path,
                      const ReadOptions& options);

/// The pixels of an object, which lives as long as this does, read when they are asked for.
class DicomPixels {
 public:
  /// Throws InputError, MemoryError for a deflated file.
  DicomPixels(const DicomObject& object, const ReadOptions& options);

  /// Pixels of a frame, samples counted one by one.
  int64_t samples_of_frame() const;
  /// Decodes some frames to whole numbers of component_of(object.format), channels side by side:
  /// the stored bits with their sign, colours as RGB. Throws InputError: damaged, compressed in a
  /// way that is not supported, or other bits set than the header says, unless `options` allow
  /// that.
  void read(const FrameRange& frames, std::span<std::byte> to);
  /// Returns the SHA-256 of the file as hexadecimal; empty of a deflated one.
  std::string sha256() { return in_.sha256(); }

 private:
  void read_native(const FrameRange& frames, std::span<std::byte> to);
  void read_compressed(int64_t frame, std::span<std::byte> to);
  void extract_bits(std::span<std::byte> to);

  const DicomObject& object_;
  ReadOptions options_;
  DicomBytes in_;
};

}  // namespace larch::io
