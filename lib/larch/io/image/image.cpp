// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/image.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/formats/formats.h"
#include "larch/io/formats/jpeg_read.h"
#include "larch/io/formats/meta.h"
#include "larch/io/formats/nifti.h"
#include "larch/io/formats/nrrd.h"
#include "larch/io/image/message.h"
#include "larch/io/itk/itk_image.h"
#include "larch/io/itk/raw_check.h"

namespace larch {
namespace io {
namespace {

/// Reading a format whose files hold one picture, so that no other can be chosen.
template <RawImage (*kRead)(const std::string&)>
RawImage read_one_picture(const std::string& path, const Selection& selection) {
  chosen_frames(path, 1, selection);
  return kRead(path);
}

RawImage read_by_png(const std::string& path, const Selection& selection) {
  chosen_frames(path, 1, selection);
  return read_png(path, selection.palette);
}

template <Header (*kProbe)(const std::string&)>
Header probe_one_picture(const std::string& path, int& /*frames*/) {
  return kProbe(path);
}

/// Probing a format whose header tells the number of its frames.
template <auto kReadHeader>
Header probe_frames(const std::string& path, int& frames) {
  auto all = kReadHeader(path);
  frames = all.frames;
  return std::move(all.header);
}

void write_by_nifti(const std::string& path, const Pixels& pixels) {
  write_atomically(path, [&](const std::string& temporary) { write_nifti(temporary, pixels); });
}

void write_by_tiff(const std::string& path, const Pixels& pixels) {
  require_picture(path, pixels,
                  {Component::kUint8, Component::kUint16, Component::kInt16, Component::kFloat32});
  write_atomically(path, [&](const std::string& temporary) {
    write_tiff(temporary, pixels.grid, pixels.component, pixels.voxels);
  });
}

// One row per format. A new format needs nothing else.
struct Format {
  const char* extension;
  RawImage (*read)(const std::string& path, const Selection& selection);
  Header (*probe)(const std::string& path, int& frames);
  void (*write)(const std::string& path, const Pixels& pixels);  // null: reading only
  bool pictures = false;                                         // 2-D only
};

constexpr Format kFormats[] = {
    {".nii", read_nifti, probe_frames<read_nifti_header>, write_by_nifti},
    {".nii.gz", read_nifti, probe_frames<read_nifti_header>, write_by_nifti},
    {".hdr", read_nifti, probe_frames<read_nifti_header>, nullptr},
    {".img", read_nifti, probe_frames<read_nifti_header>, nullptr},
    {".img.gz", read_nifti, probe_frames<read_nifti_header>, nullptr},
    {".hdr.gz", read_nifti, probe_frames<read_nifti_header>, nullptr},
    {".nrrd", read_nrrd, probe_frames<read_nrrd_header>, write_nrrd},
    {".nhdr", read_nrrd, probe_frames<read_nrrd_header>, nullptr},
    {".mha", read_meta, probe_frames<read_meta_header>, write_meta},
    {".mhd", read_meta, probe_frames<read_meta_header>, nullptr},
    {".png", read_by_png, probe_one_picture<probe_png>, write_grey_png, true},
    {".tif", read_one_picture<read_tiff>, probe_one_picture<probe_tiff>, write_by_tiff, true},
    {".tiff", read_one_picture<read_tiff>, probe_one_picture<probe_tiff>, write_by_tiff, true},
    {".jpg", read_one_picture<read_jpeg>, probe_one_picture<probe_jpeg>, nullptr},
    {".jpeg", read_one_picture<read_jpeg>, probe_one_picture<probe_jpeg>, nullptr},
    {".vtk", read_by_itk, probe_by_itk, nullptr},
    {".gipl", read_by_itk, probe_by_itk, nullptr},
    {".gipl.gz", read_by_itk, probe_by_itk, nullptr},
    {".mrc", read_by_itk, probe_by_itk, nullptr},
    {".rec", read_by_itk, probe_by_itk, nullptr},
    {".pic", read_by_itk, probe_by_itk, nullptr},
};

std::string known_extensions(bool for_writing) {
  std::string all;
  for (const Format& format : kFormats) {
    if (for_writing && format.write == nullptr) continue;
    all += (all.empty() ? "" : " ") + std::string(format.extension);
  }
  return all;
}

const Format* find_format(const std::string& path) {
  std::string extension = file_extension(path);
  for (const Format& format : kFormats)
    if (extension == format.extension) return &format;
  return nullptr;
}

const Format& format_for_reading(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error)) {
    throw InputError("cannot read '" + path + "': no such file or folder; check the path");
  }
  const Format* format = find_format(path);
  if (format != nullptr) return *format;
  const std::string why = why_refused(path);
  if (!why.empty()) throw InputError("cannot read '" + path + "': " + why);
  throw InputError("cannot read '" + path + "': neither DICOM nor a known ending (" +
                   known_extensions(false) + ")");
}

const Format& format_for_writing(const std::string& path) {
  const Format* format = find_format(path);
  if (format != nullptr && format->write != nullptr) return *format;
  throw UsageError("cannot write '" + path +
                   "': the ending is none of those that can be written: " + known_extensions(true));
}

void require_no_doubt(const Header& header, const ReadOptions& options) {
  if (!header.doubt) return;
  require_allowed(options, header.doubt->what_for, header.doubt->what, header.doubt->taken);
}

RawImage read_raw(const std::string& path, const ReadOptions& options, Palette palette) {
  if (goes_to_dicom(path)) return read_dicom_raw(path, options);
  return read_selected(path, options, selected_frame(options, palette));
}

}  // namespace

bool goes_to_dicom(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  return find_format(path) == nullptr && is_dicom(path);
}

RawImage read_selected(const std::string& path, const ReadOptions& options,
                       const Selection& selection) {
  RawImage raw = format_for_reading(path).read(path, selection);
  require_no_doubt(raw.header, options);
  if (options.warn) {
    for (const std::string& warning : raw.header.warnings) options.warn(warning);
  }
  return raw;
}

}  // namespace io

template <class T>
Volume<T> read_volume(const std::string& path, const ReadOptions& options) {
  return io::convert<T>(io::read_raw(path, options, io::Palette::kExpand), path, options);
}
template Volume<float> read_volume(const std::string&, const ReadOptions&);
template Volume<int16_t> read_volume(const std::string&, const ReadOptions&);
template Volume<int32_t> read_volume(const std::string&, const ReadOptions&);
template Volume<uint8_t> read_volume(const std::string&, const ReadOptions&);

LabelVolume read_labels(const std::string& path, const ReadOptions& options) {
  const io::RawImage raw = io::read_raw(path, options, io::Palette::kKeepIndices);
  if (raw.header.colour) {
    io::bad(path, "a colour picture cannot be read as labels; save it as grey or indexed");
  }
  return io::convert<int32_t>(raw, path, {});
}

void require_allowed(const ReadOptions& options, Allow what_for, const std::string& what,
                     const std::string& taken) {
  const auto& allow = options.allow;
  if (std::find(allow.begin(), allow.end(), what_for) != allow.end()) {
    if (options.warn) options.warn(what + "; " + taken);
    return;
  }
  // A header of ANALYZE cannot be repaired: it has no place for what is missing.
  const char* remedy =
      what_for == Allow::kAnalyzeOrientation ? "convert it to NIfTI" : "repair the header";
  for (const auto& [value, name] : enum_names(static_cast<Allow*>(nullptr))) {
    if (value != what_for) continue;
    throw InputError(what + "; " + remedy + ", or give --allow " + name + ": then " + taken);
  }
}

ImageInfo probe_image(const std::string& path, const ReadOptions& options) {
  ImageInfo info;
  const bool dicom = io::goes_to_dicom(path);
  const io::Header header = dicom ? io::probe_dicom(path, options)
                                  : io::format_for_reading(path).probe(path, info.frames);
  io::require_no_doubt(header, options);
  info.grid = header.grid;
  info.component_type = io::name_of(header.component);
  info.components = header.channels;
  info.times = header.times;
  const int64_t frame_bytes = io::checked_bytes(header, path, std::max(info.frames, 1));
  // An image of several frames is told of, and refused only when it is read.
  if (options.frame && !dicom)
    info.frames =
        static_cast<int>(io::chosen_frames(path, info.frames, io::selected_frame(options)).count);
  info.frames = std::max(info.frames, 1);
  info.bytes = info.frames * frame_bytes;
  return info;
}

template <class T>
void write_volume(const std::string& path, const Volume<T>& volume, int threads,
                  const std::string& description) {
  io::format_for_writing(path).write(
      path, {volume.grid(), io::component_of<T>(), volume.data(), false, threads, 1, description});
}
template void write_volume(const std::string&, const Volume<uint8_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<uint16_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<int16_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<int32_t>&, int, const std::string&);
template void write_volume(const std::string&, const Volume<float>&, int, const std::string&);

void require_png_extension(const std::string& path, const std::string& flag) {
  if (file_extension(path) == ".png") return;
  throw UsageError("cannot write '" + path + "': " + flag + " writes a picture that ends in .png");
}

void require_image_extension(const std::string& path) {
  io::format_for_writing(path);
}

void require_image_holds(const std::string& path, const Vec3i& size) {
  if (io::format_for_writing(path).pictures) io::require_one_slice(path, size);
}

namespace io {
void write_pixels(const std::string& path, const Pixels& pixels) {
  format_for_writing(path).write(path, pixels);
}
}  // namespace io

RgbImage read_rgb(const std::string& path) {
  using io::Component;
  const io::RawImage raw = io::read_selected(path, {}, {});
  const io::Header& header = raw.header;
  const bool wide = header.component == Component::kUint16;
  if (header.grid.size.z != 1 || (!wide && header.component != Component::kUint8)) {
    io::bad(path, "not a picture of 8 or 16 bits, so it has no colours to read");
  }
  RgbImage image{header.grid.size.x, header.grid.size.y, {}};
  image.rgb.resize(static_cast<size_t>(header.grid.voxels()) * 3);
  const auto* bytes = reinterpret_cast<const uint8_t*>(raw.voxels.data());
  const size_t channels = static_cast<size_t>(header.channels);
  for (size_t i = 0; i < image.rgb.size(); ++i) {
    const size_t component = i / 3 * channels + (channels >= 3 ? i % 3 : 0);
    image.rgb[i] = wide ? bytes[2 * component + 1] : bytes[component];  // the high byte
  }
  return image;
}

}  // namespace larch
