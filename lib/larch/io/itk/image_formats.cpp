// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <filesystem>

#include "larch/files/file.h"
#include "larch/io/bytes/kept_headers.h"
#include "larch/io/dicom/dicom_image.h"
#include "larch/io/formats/formats.h"
#include "larch/io/formats/segments.h"
#include "larch/io/itk/image_io.h"

namespace larch::io {
namespace {

template <StoredHeader (*kReadHeader)(const std::string&)>
std::unique_ptr<ImageFile> open_stored(const std::string& path, const OpenOptions& options) {
  static KeptHeaders<StoredHeader> kept;
  const std::optional<FileStamp> stamp = settled_stamp(path);
  std::optional<StoredHeader> stored = kept.find(path, stamp);
  if (!stored) {
    stored = kReadHeader(path);
    // Of two files one can change without the other.
    if (stored->path == path && stored->place.path == path) {
      stored->place.stamp = stamp;
      kept.keep(path, stamp, *stored);
    }
  }
  const bool is_layered = !stored->segments.empty() && stored->header.channels > 1;
  if (is_layered) return open_layers(path, *stored, options.read.digest);
  return std::make_unique<StoredImage>(path, std::move(*stored), options.read.digest);
}

std::unique_ptr<ImageFile> open_dicom(const std::string& path, const OpenOptions& options) {
  return std::make_unique<DicomImage>(path, options);
}

std::string dicom_head(const std::string&, const Pixels& pixels) {
  return pixels.head;
}

constexpr auto kNifti = open_stored<read_nifti_header>;
constexpr auto kNrrd = open_stored<read_nrrd_header>;
constexpr auto kMeta = open_stored<read_meta_header>;

constexpr Format kFormats[] = {
    {".nii", kNifti, write_nifti, nifti_header},
    {".nii.gz", kNifti, write_nifti, nifti_header},
    {".hdr", kNifti, nullptr, nullptr},
    {".img", kNifti, nullptr, nullptr},
    {".img.gz", kNifti, nullptr, nullptr},
    {".hdr.gz", kNifti, nullptr, nullptr},
    {".nrrd", kNrrd, write_nrrd, nrrd_header},
    {".seg.nrrd", kNrrd, write_nrrd, nullptr},
    {".nhdr", kNrrd, nullptr, nullptr},
    {".mha", kMeta, write_meta, meta_header},
    {".mhd", kMeta, nullptr, nullptr},
    {".png", open_png, write_png, nullptr, true},
    {".tif", open_tiff, write_tiff, nullptr, true},
    {".tiff", open_tiff, write_tiff, nullptr, true},
    {".jpg", open_jpeg, nullptr, nullptr},
    {".jpeg", open_jpeg, nullptr, nullptr},
};

/// Of DICOM what counts is the content of a file.
constexpr Format kDicom{".dcm", open_dicom, nullptr, dicom_head};

}  // namespace

std::span<const Format> formats() {
  return kFormats;
}

const Format* find_format(const std::string& path) {
  const std::string ending = file_extension(path);
  for (const Format& format : kFormats) {
    if (ending == format.ending) return &format;
  }
  return ending == kDicom.ending ? &kDicom : nullptr;
}

const Format* format_for_reading(const std::string& path) {
  if (is_folder(path)) return &kDicom;
  if (const Format* format = find_format(path)) return format;
  return is_dicom(path) ? &kDicom : nullptr;
}

std::string why_refused(const std::string& path) {
  struct Row {
    const char *endings, *why;
  };
  constexpr Row kRows[] = {
      {" .stl .ply .obj .gii .vtp ",
       "a surface, not an image; give it where a mesh is taken, or a label map of it"},
      {" .fcsv ", "points of 3D Slicer, not an image"},
      {" .vtk .vti ", "images of VTK are not read; convert it with 3D Slicer to NRRD"},
      {" .gipl .gipl.gz ", "GIPL is not read; convert it with c3d (Convert3D) to NIfTI"},
      {" .mrc .rec ", "MRC is not read; convert it with mrc2tif of IMOD to TIFF"},
      {" .pic ", "BioRad is not read; convert it with bfconvert of Bio-Formats to TIFF"},
      {" .mnc .mnc2 ", "MINC is not read; convert it with mnc2nii to NIfTI"},
      {" .h5 .hdf5 .he5 ", "HDF5 is not read; convert it with h5py and nibabel to NIfTI"},
      {" .lsm ", "LSM is not read; convert it with bfconvert of Bio-Formats to TIFF"},
      {" .bmp ", "BMP is not read; convert it with ImageMagick to PNG"},
      {" .jp2 .j2k .jpx ",
       "JPEG 2000 is not read outside DICOM; convert it with opj_decompress to PNG"},
      {" .mgz .mgh ", "FreeSurfer's MGH is not read; convert it with mri_convert to NIfTI"}};
  const bool is_surface = file_extension(path) == ".vtk" &&
                          read_file(path, kBeginning).find("POLYDATA") != std::string::npos;
  for (const Row& row : kRows) {
    const std::string ending = is_surface ? ".vtp" : file_extension(path);
    if (std::string(row.endings).find(" " + ending + " ") != std::string::npos) {
      return row.why;
    }
  }
  if (std::filesystem::path(path).filename() != "2dseq") return "";
  return "Bruker's files are not read; convert it with bruker2nifti to NIfTI";
}

}  // namespace larch::io
