// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/io/image/image.h"
#include "larch/io/image/raw_image.h"

namespace larch::io {

struct DicomDataset;
struct DicomElement;
struct DicomFile;

/// One image plane: a file of a series, or a frame of a multi-frame object.
struct DicomPlane {
  std::string name;  ///< for messages: the file, or "the file, frame 3"
  int object = 0;    ///< which of the files
  int frame = 0;     ///< which frame of it
  Vec3i size{0, 0, 1};
  bool has_position = false, has_orientation = false, has_spacing = false;
  bool is_square = true;  ///< PixelAspectRatio, if given, is 1
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
};

/// A Modality LUT: the value of stored number n is values[n - first], with the index clamped.
struct DicomLut {
  int first = 0;
  std::vector<float> values;  ///< empty: there is none
};

/// What must be the same in all files of a series.
struct DicomIdentity {
  std::string patient_id, patient_name, birth_date, study_uid, reference_frame_uid;
};

/// The header of one file.
struct DicomObject {
  std::string path, kind, series_uid, modality, description;
  int frames = 1;
  /// Several frames without positions, that were not described one by one: `planes` holds the first
  /// one, and the others are like it.
  bool frames_alike = false;
  bool has_pixels = false;  ///< it has rows and columns, or pixel data
  /// Why it cannot be read as an image, as a whole message; empty if it can. Told only if the file
  /// is chosen: a folder may hold another series that can be read.
  std::string problem;
  DicomPixelFormat format;
  DicomLut lut;
  DicomIdentity identity;
  std::vector<DicomPlane> planes;
};

/// The voxels of one file.
struct DicomPixels {
  Component component = Component::kUint16;
  int channels = 1;
  std::vector<std::byte> bytes;  ///< frame after frame, channels interleaved
  int64_t first_frame = 0;       ///< which one the first of them is
};

/// The type of the stored numbers.
Component component_of(const DicomPixelFormat& format);

/// Reads the header. Throws InputError if it is not DICOM or damaged.
DicomObject read_dicom_object(const std::string& path);

/// The same of a file that was taken apart, with or without its pixel data.
DicomObject describe_dicom(const DicomFile& file);

/// Throws InputError unless the format is one that read_dicom_pixels reads: 1, 8, 16 or 32 bits
/// allocated, of which all that are stored lie below the high bit, one grey sample or three of red,
/// green and blue.
void check_pixel_format(const DicomPixelFormat& format, const std::string& path);

/// Throws InputError, as read_dicom_pixels would, if the pixel data of the file cannot hold the
/// frames of `object`, each a plane of `size`: before anything of that number or size is allocated.
void check_pixel_claims(const DicomFile& file, const DicomObject& object, const Vec3i& size);

/// Decodes the pixels of some frames of `object` to whole numbers: shifted so that the lowest
/// stored bit is the lowest of the number, with its sign, and without the overlays in other bits.
/// Throws InputError: no pixels (the message says what the file is), truncated, compressed in a way
/// that is not supported, or other bits set than the header says, unless `options` allow that.
DicomPixels read_dicom_pixels(const DicomObject& object, const FrameRange& frames,
                              const ReadOptions& options);

/// The same from the element itself, which holds the pixel data of all frames of `object`.
DicomPixels decode_dicom_pixels(const DicomElement& element, const std::string& transfer_syntax,
                                const DicomObject& object, const FrameRange& frames,
                                const ReadOptions& options);

/// Whether the frames of an object make no volume, but can be read one by one: they have no
/// position or orientation, or all of them have the same one.
bool is_cine(const DicomObject& object);

/// Puts the planes in order along their normal and returns the grid that they fill; throws
/// InputError as read_dicom_raw says.
Grid arrange_planes(std::vector<DicomPlane>& planes, const std::string& path,
                    const ReadOptions& options = {});

/// When each of `frames` frames was taken, in ms from the first one, by FrameTimeVector or
/// FrameTime; empty if the file has neither. Throws InputError for numbers that are broken or
/// negative.
std::vector<double> frame_times_ms(const DicomDataset& data, int frames, const std::string& path);

/// True if `path` is a folder or a file that starts as DICOM files do (with or without preamble).
bool is_dicom(const std::string& path);

/// Voxels after rescaling, in the geometry of the series. options.nan_value does not apply. The
/// whole list of what is checked is the table in apps/reading-images.md.
///
/// A folder: its images are grouped by SeriesInstanceUID; more than one series is an error that
/// lists them, unless options.series_uid chooses. Slices are sorted by their position along the
/// normal of the image plane. Errors that name the files: two slices at one position, positions
/// that are off the regular line by more than 5 % of the slice distance (and 0.01 mm), that are a
/// multiple of SpacingBetweenSlices apart or, for two slices, anything but that (Allow),
/// orientations, matrix sizes or pixel spacings that differ, two patients, studies or frames of
/// reference (Allow). The third axis is the step between slice positions, so that the tilt of a
/// gantry is kept as a non-orthogonal direction; a step within 0.001 rad of the normal counts as
/// not tilted. Files without pixels (reports, structure sets, DICOMDIR) are passed over in a folder
/// when images are there too; a damaged DICOM file is an error, because a slice could be missing
/// otherwise.
///
/// A file: one slice, or a multi-frame or enhanced object with the positions, spacings and
/// rescaling of its functional groups. Several frames at one position (stacks, time points,
/// echoes) are an error that says how many. A single slice has SliceThickness (or 1 mm) as third
/// spacing and, without a position, the identity geometry. Of several frames without positions, or
/// all at one (a cine), options.frame chooses the picture that is read; without it they are an
/// error, as are a Siemens mosaic, and an image without PixelSpacing or ImagerPixelSpacing (Allow).
///
/// Values: the stored bits with their sign, then RescaleSlope and RescaleIntercept, the Modality
/// LUT, or the scaling of a dose grid; a number among these, or of the geometry, that is present
/// and broken is an error. RGB pixels become luminance as in read_volume; palette and YBR pixels
/// are an error. MONOCHROME1 is not inverted. Transfer syntaxes: native, big endian, deflated, RLE,
/// JPEG baseline, extended and lossless, JPEG-LS, JPEG 2000. Throws InputError; a file without
/// pixels is named for what it is.
RawImage read_dicom_raw(const std::string& path, const ReadOptions& options);
Header probe_dicom(const std::string& path, const ReadOptions& options);

}  // namespace larch::io
