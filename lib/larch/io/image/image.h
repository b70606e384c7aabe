// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/data/rgb_image.h"
#include "larch/data/volume.h"
#include "larch/io/formats/read_options.h"

namespace larch {

/// Returns the flag of every executable that reads images.
inline Field<std::vector<Allow>> allow_field(std::vector<Allow>& allow) {
  return {"allow", allow, "read images that are refused for this (see reading-images.md)"};
}

/// Returns the flag of every executable that reads images of one volume.
inline Field<std::optional<int>> frame_field(std::optional<int>& frame) {
  return {"frame", frame, "which volume of a 4-D image, or picture of a cine, is read; from 1", 1,
          1000000000};
}

/// For the mask or label map that goes with an image, on its grid: the same allowances, but no
/// value that stands for NaN, and neither series nor frame, which are the image's.
inline ReadOptions label_options(const ReadOptions& image, const std::optional<Grid>& grid = {}) {
  return {{}, {}, image.allow, image.warn, {}, /*has_frame_flag=*/false, false, grid, image.digest};
}

/// Holds what a header says about an image, without reading its voxels.
struct ImageInfo {
  Grid grid{};
  std::string component_type;  ///< "uint8", "int16", "float32", ...; as stored, before rescaling
  int components = 1;          ///< values per voxel; more than 1 for vectors and colour
  int frames = 1;     ///< of a 4-D image or a cine; 1 if ReadOptions::frame chooses one of them
  int64_t bytes = 0;  ///< bytes of the voxels of these frames, uncompressed
  FrameTimes times{};
  LabelTable labels{};  ///< the segments of DICOM, without colours, or of 3D Slicer
};

/// Reads a scalar 3-D (or 2-D: size.z == 1) image. The path is a NIfTI (.nii, .nii.gz, .hdr/.img),
/// NRRD (.nrrd, .nhdr), MetaImage (.mha, .mhd), PNG, JPEG or TIFF file, a DICOM file, or a folder
/// with the slices of a DICOM series (see dicom_image.h). T: float, int16_t, int32_t, uint8_t.
///
/// Values: the rescale slope and intercept of NIfTI and DICOM are applied. Colours become luminance
/// with the weights of ITU-R BT.709 (0.2126 R + 0.7152 G + 0.0722 B, without alpha), rounded to the
/// nearest integer if T is one. A value that T cannot hold (out of range, or not whole if T is an
/// integer) is an error, as are NaN and infinite voxels unless options.nan_value or
/// options.keeps_not_finite says otherwise.
///
/// Geometry: LPS mm, with shear as a non-orthogonal direction; pictures have a spacing of 1 mm and
/// the identity direction. Of the transforms of NIfTI (RAS, of which x and y are negated) the sform
/// counts if it has a code, or else the qform, or else the spacing alone; the code becomes
/// grid.frame. apps/reading-images.md tells all checks, and what happens.
///
/// Throws InputError: missing, unreadable, truncated or damaged file; a header that claims more
/// voxels than the file can hold (checked before memory is allocated); more than one component;
/// several frames of which options.frame chooses none; values as above. Throws MemoryError if the
/// voxels of the one frame that is read do not fit into memory.
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
/// complete, and the same volume gives the same bytes. NIfTI gets sform and, if the direction is
/// orthonormal, qform, both with the code that grid.frame says; with WorldFrame::kUnknown both
/// codes are 0 and the spacings stand alone. `threads` compress .nii.gz. `description`, one line of
/// ASCII, goes to the header: NIfTI's descrip, which is cut after 79 characters, NRRD's content,
/// MetaImage's Comment; formats for pictures have no place for it. Throws UsageError (unknown
/// ending, type or size that the format cannot hold), OutputError (not writable, disk full).
template <class T>
void write_volume(const std::string& path, const Volume<T>& volume, int threads = 1,
                  const std::string& description = "");

/// Returns the other files that reading an image opens: the data files that the header of a .mhd or
/// .nhdr names, the other one of a NIfTI pair. None if the image cannot be read by its header.
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
/// values of `table`. NIfTI files get the intent code "label". Names and colours go into .seg.nrrd,
/// and else to a file of their own, see write_label_table. Throws as write_volume.
void write_labelmap(const std::string& path, const LabelVolume& labels, const LabelTable& table,
                    int threads = 1);

/// Returns an entry with a colour as PASCAL VOC has it, whose neighbours are far apart.
LabelEntry coloured_label(int32_t value, const std::string& name);

/// Writes label maps of one grid that may overlap as the layers of a segmentation of 3D Slicer
/// (.seg.nrrd); a value is in one of them alone. Those that the table lacks get a name and a
/// colour. Throws as write_volume.
void write_segmentation(const std::string& path, std::span<const LabelVolume> layers,
                        const LabelTable& table, int threads = 1);

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

/// Writes a table "index<TAB>name<TAB>color" with colours as #rrggbb, as BIDS names its columns,
/// or, to a path that ends in .ctbl, a table of colours of 3D Slicer: "index name red green blue
/// alpha", with underscores for blanks. That has no place for values below 0 and above 32768
/// (UsageError).
void write_label_table(const std::string& path, const LabelTable& table);

/// Writes float32 vectors as ITK's vector image; the format goes by the ending: .nii .nii.gz .nrrd
/// .mha. `threads` compress .nii.gz. Throws UsageError for other endings, and OutputError.
void write_vector_field(const std::string& path, const VectorField& field, int threads = 1);

/// Writes an RGB picture as PNG. Throws OutputError.
void write_png(const std::string& path, const RgbImage& image);

/// Reads a PNG, JPEG or TIFF picture; grey becomes R = G = B, alpha is dropped, 16 bits are
/// reduced to 8. Throws InputError.
RgbImage read_rgb(const std::string& path);

/// Holds what the files of a series have in common.
struct DicomSeriesNames {
  std::string patient_name, patient_id;  ///< patient_name: "Family^Given"
  std::string description;               ///< SeriesDescription
  std::string study_uid, series_uid;
  std::string reference_frame_uid;  ///< FrameOfReferenceUID
};

/// Writes slice `slice` (the index along z) of `volume` as one file of an MR series: MR Image
/// Storage, explicit little endian, 16 bits with sign, without rescaling. The positions keep the
/// geometry of the grid to 1e-8 mm. The same slice gives the same bytes: dates and times are empty.
///
/// A reader sorts slices along the normal of the image plane; a series therefore holds a grid with
/// a right-handed direction. Throws UsageError for a left-handed or sheared one and for more than
/// 65535 rows or columns, OutputError if the file cannot be written.
void write_dicom_slice(const std::string& path, const Volume<int16_t>& volume, int slice,
                       const DicomSeriesNames& names);

}  // namespace larch
