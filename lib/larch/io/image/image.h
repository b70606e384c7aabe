// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/data/rgb_image.h"
#include "larch/data/volume.h"

namespace larch {

/// What is refused because it is most often a mistake, and may be meant after all.
enum class Allow {
  kAnalyzeOrientation,    ///< ANALYZE 7.5, which names no sides: radiological (LAS) is taken
  kMissingSpacing,        ///< DICOM without a pixel spacing: 1 mm is taken
  kMixedPatients,         ///< slices of one series with different patients or studies
  kMixedReferenceFrames,  ///< slices of one series with different FrameOfReferenceUID
  kSliceSpacing,          ///< positions that disagree with SpacingBetweenSlices: they are believed
  kUnusedBits,            ///< DICOM samples with other bits set than those that are stored: cut off
};
constexpr auto enum_names(Allow*) {
  return std::to_array<EnumName<Allow>>({{Allow::kAnalyzeOrientation, "analyze-orientation"},
                                         {Allow::kMissingSpacing, "missing-spacing"},
                                         {Allow::kMixedPatients, "mixed-patients"},
                                         {Allow::kMixedReferenceFrames, "mixed-reference-frames"},
                                         {Allow::kSliceSpacing, "slice-spacing"},
                                         {Allow::kUnusedBits, "unused-bits"}});
}

/// The flag of every executable that reads images.
inline Field<std::vector<Allow>> allow_field(std::vector<Allow>& allow) {
  return {"allow", allow, "read images that are refused for this (see reading-images.md)"};
}

/// The flag of every executable that reads images of one volume.
inline Field<std::optional<int>> frame_field(std::optional<int>& frame) {
  return {"frame", frame, "which volume of a 4-D image, or picture of a cine, is read; from 1", 1,
          1000000000};
}

/// How an image is read.
struct ReadOptions {
  /// Takes the place of NaN and infinite voxels; without it such voxels are an error.
  std::optional<double> nan_value{};
  /// SeriesInstanceUID to read from a DICOM folder that holds several series; empty = the only one.
  std::string series_uid{};
  /// What is taken all the same; `warn` is told.
  std::vector<Allow> allow{};
  /// Receives a sentence, which names the file, for each thing that was taken on trust. May be
  /// empty; called in the thread that reads.
  std::function<void(const std::string&)> warn{};
  /// Which frame is read of an image that has several, counted from 1 as in DICOM: a volume of a
  /// 4-D image, or a picture of a cine. Without it such an image is an error.
  std::optional<int> frame{};
  /// Whether messages may name --frame: the program has that flag, and it counts for this image.
  bool has_frame_flag = true;
  /// NaN and infinite voxels that nan_value does not replace are handed on as they are, to a caller
  /// that has a rule of its own for them. Only where floats are read.
  bool keeps_not_finite = false;
};

/// For the mask or label map that goes with an image: the same allowances, but no value that stands
/// for NaN, and neither series nor frame, which are the image's.
inline ReadOptions label_options(const ReadOptions& image) {
  return {{}, {}, image.allow, image.warn, {}, /*has_frame_flag=*/false};
}

/// Passes if `options` allow it, with a warning; throws InputError otherwise, naming the flag.
/// `what` names the file and says what is wrong, `taken` what is done if it is allowed.
void require_allowed(const ReadOptions& options, Allow what_for, const std::string& what,
                     const std::string& taken);

/// When the frames of a series were taken, in a unit of the file.
struct FrameTimes {
  double step = 0;     ///< from one frame to the next; 0: not known
  double first = 0;    ///< of the first frame
  double unit_ms = 0;  ///< ms in the unit; 0: the file does not say
};

/// What a header says about an image, without reading its voxels.
struct ImageInfo {
  Grid grid{};
  std::string component_type;  ///< "uint8", "int16", "float32", ...; as stored, before rescaling
  int components = 1;          ///< values per voxel; more than 1 for vectors and colour
  int frames = 1;     ///< of a 4-D image or a cine; 1 if ReadOptions::frame chooses one of them
  int64_t bytes = 0;  ///< bytes of the voxels of these frames, uncompressed
  FrameTimes times{};
};

/// Reads a scalar 3-D (or 2-D: size.z == 1) image. The path is a NIfTI (.nii, .nii.gz, .hdr/.img),
/// ANALYZE 7.5 (.hdr/.img, if it is allowed), NRRD (.nrrd, .nhdr), MetaImage (.mha, .mhd), PNG,
/// JPEG or TIFF file, a DICOM file, or a folder with the slices of a DICOM series (see dicom.h). T:
/// float, int16_t, int32_t, uint8_t.
///
/// Values: the rescale slope and intercept of NIfTI and DICOM are applied. Colour pictures (RGB or
/// RGBA) become luminance with the weights of ITU-R BT.709: 0.2126 R + 0.7152 G + 0.0722 B, alpha
/// is ignored, rounded to the nearest integer if T is one. A value that T cannot hold (out of
/// range, or not whole if T is an integer) is an error, as are NaN and infinite voxels unless
/// options.nan_value or options.keeps_not_finite says otherwise.
///
/// Geometry: LPS mm. NIfTI (RAS) is converted by negating x and y. Which of its two transforms
/// counts: sform if sform_code > 0, otherwise qform if qform_code > 0, otherwise spacing only with
/// the identity direction in RAS, which is diag(-1,-1,1) in LPS. A sheared sform keeps its shear
/// as a non-orthogonal direction. The code of what counts becomes grid.frame, kUnknown with a
/// warning if none does; another warning says that two transforms of one code disagree. A transform
/// that is not invertible is an error. Spacings come from the columns of the sform if that counts.
/// Pictures (PNG, JPEG, TIFF) have a spacing of 1 mm and the identity direction: their resolution
/// tags say how to print them.
///
/// All checks, and what happens: apps/reading-images.md.
///
/// Throws InputError: missing, unreadable, truncated or damaged file; a header that claims more
/// voxels than the file can hold (checked before memory is allocated); more than one component;
/// several frames of which options.frame chooses none; values as above. Throws MemoryError if the
/// voxels do not fit into memory: those of the one frame that is read, since the frames before it
/// are passed over (of a DICOM file, all bytes of the file are in memory as well).
template <class T>
Volume<T> read_volume(const std::string& path, const ReadOptions& options = {});

/// Reads an integer image as labels. Voxels that are not whole numbers are an error. Indexed PNG
/// pictures give their indices; other colour pictures are an error.
LabelVolume read_labels(const std::string& path, const ReadOptions& options = {});

/// Grid and type of an image file or DICOM folder. Throws InputError as read_volume does.
ImageInfo probe_image(const std::string& path, const ReadOptions& options = {});

/// Writes an image; the format goes by the ending: .nii .nii.gz .nrrd .mha for every T; for 2-D
/// volumes also .png (uint8) and .tif .tiff (all but int32), which keep no geometry.
/// T: uint8_t, uint16_t, int16_t, int32_t, float. The file appears under its name only when it is
/// complete, and the same volume gives the same bytes (no time stamps). NIfTI gets sform and, if
/// the direction is orthonormal, qform, both with the code that grid.frame says, in single
/// precision; with WorldFrame::kUnknown both codes are 0 and the spacings stand alone.
/// `threads` compress .nii.gz. `description`, one line of ASCII, goes to the header: NIfTI's
/// descrip, which is cut after 79 characters, NRRD's content, MetaImage's Comment; formats for
/// pictures have no place for it. Throws UsageError (unknown ending, type or size that the format
/// cannot hold), OutputError (not writable, disk full).
template <class T>
void write_volume(const std::string& path, const Volume<T>& volume, int threads = 1,
                  const std::string& description = "");

/// The other files that reading an image opens: the data files that the header of a .mhd or .nhdr
/// names, the other one of a NIfTI pair. None if the image cannot be read by its header.
std::vector<std::string> detached_files(const std::string& path);

/// Throws UsageError with the list of known endings unless write_volume knows the ending of `path`.
/// For use before a long computation.
void require_image_extension(const std::string& path);

/// Throws UsageError unless the name ends in .png, as pictures of write_png do. `flag`: that the
/// name was given with, for the message.
void require_png_extension(const std::string& path, const std::string& flag);

/// Throws UsageError if `path` is of a format for 2-D pictures and a volume of this size is none.
void require_image_holds(const std::string& path, const Vec3i& size);

/// Writes labels with the smallest of uint8, int16, uint16, int32 that holds all of them and all
/// values of `table`. NIfTI files get the intent code "label". Names and colours go to a file of
/// their own, see write_label_table. Throws as write_volume.
void write_labelmap(const std::string& path, const LabelVolume& labels, const LabelTable& table,
                    int threads = 1);

/// Writes the label maps of the frames of a series, of one grid, as one NIfTI file (.nii, .nii.gz)
/// of four axes, with the smallest type that holds all labels. Throws UsageError for another
/// ending, and as write_volume.
void write_labelmap_series(const std::string& path, std::span<const LabelVolume> frames,
                           const FrameTimes& times, int threads = 1);

/// Throws UsageError unless a path ends as a file of four axes does: .nii, .nii.gz.
void require_series_ending(const std::string& path);

/// Writes volumes of one grid as one NIfTI file (.nii, .nii.gz) of four axes. T: uint8_t, uint16_t,
/// float. Throws as write_labelmap_series.
template <class T>
void write_volume_series(const std::string& path, std::span<const Volume<T>> frames,
                         int threads = 1);

/// Writes a table "index<TAB>name<TAB>color" with colours as #rrggbb, as BIDS names its columns.
void write_label_table(const std::string& tsv_path, const LabelTable& table);

/// Writes an RGB picture as PNG. Throws OutputError.
void write_png(const std::string& path, const RgbImage& image);

/// Reads a PNG, JPEG or TIFF picture; grey becomes R = G = B, alpha is dropped, 16 bits are
/// reduced to 8. Throws InputError.
RgbImage read_rgb(const std::string& path);

}  // namespace larch
