// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_image.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>
#include <tuple>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"

namespace larch::io {
namespace {

std::string quoted(const DicomObject& object) {
  return "'" + std::filesystem::path(object.path).filename().string() + "'";
}

std::vector<DicomObject> images_in(const std::string& folder) {
  std::vector<DicomObject> images;
  std::string without_pixels;  // the first of them, for the message when there is no image
  for (const std::string& path : files_in(folder)) {
    if (!is_dicom(path)) continue;
    DicomObject object = read_dicom_object(path);
    if (object.has_pixels) {
      images.push_back(std::move(object));
    } else if (without_pixels.empty()) {
      without_pixels = "; " + quoted(object) + " is a DICOM " + object.kind + " without pixels";
    }
  }
  if (images.empty()) {
    bad(folder, "no DICOM images in this folder (subfolders are not searched)" + without_pixels);
  }
  return images;
}

std::vector<DicomObject> objects_of(const std::string& path, const ReadOptions& options) {
  if (!is_folder(path)) return {read_dicom_object(path)};
  std::vector<DicomObject> images = images_in(path);
  std::map<std::string, std::vector<const DicomObject*>> series;
  for (const DicomObject& image : images) series[image.series_uid].push_back(&image);
  std::string listing;
  for (const auto& [uid, files] : series) {
    const DicomObject& last = *files.back();
    listing += "\n  " + uid + " (" + last.modality + ", " + std::to_string(files.size()) +
               " files" + (last.description.empty() ? "" : ", " + last.description) + ")";
  }
  const std::string& chosen = options.series_uid;
  if (chosen.empty() && series.size() > 1) {
    bad(path, "the folder holds " + std::to_string(series.size()) +
                  " DICOM series; choose one by its UID or move the others away:" + listing);
  }
  if (chosen.empty()) return images;
  if (!series.contains(chosen)) {
    bad(path, "no DICOM series " + chosen + " in this folder; there are:" + listing);
  }
  std::erase_if(images, [&](const DicomObject& image) { return image.series_uid != chosen; });
  return images;
}

// Throws unless the files are of one patient, study and kind.
void check_one_series(const std::vector<DicomObject>& objects, const std::string& path,
                      const ReadOptions& options) {
  using Id = DicomIdentity;
  const DicomObject& first = objects.front();
  const std::tuple<std::string Id::*, const char*, Allow> rules[] = {
      {&Id::patient_id, "PatientID", Allow::kMixedPatients},
      {&Id::patient_name, "PatientName", Allow::kMixedPatients},
      {&Id::birth_date, "PatientBirthDate", Allow::kMixedPatients},
      {&Id::study_uid, "StudyInstanceUID", Allow::kMixedPatients},
      {&Id::reference_frame_uid, "FrameOfReferenceUID", Allow::kMixedReferenceFrames}};
  for (const auto& [member, name, allow] : rules) {
    for (const DicomObject& object : objects) {
      if (object.identity.*member == first.identity.*member) continue;
      // The values stay out of logs: they are personal.
      require_allowed(options, allow,
                      "'" + path + "': " + quoted(first) + " and " + quoted(object) +
                          " are of one series but differ in " + name,
                      "the files are taken as one series");
      break;
    }
  }
  // Grey beside colour, or MONOCHROME1 beside 2, whose numbers mean opposite things.
  for (const DicomObject& object : objects) {
    if (object.format.photometric == first.format.photometric) continue;
    bad(path, quoted(first) + " and " + quoted(object) + " differ in PhotometricInterpretation (" +
                  first.format.photometric + " against " + object.format.photometric +
                  "); move one kind to another folder");
  }
}

/// The reason why the frames of a cine make no volume, for a message.
std::string why_no_volume(const DicomObject& object) {
  const std::string frames = std::to_string(object.frames);
  const DicomPlane& plane = object.planes.front();
  const std::string why =
      plane.has_position && plane.has_orientation
          ? frames + " slices or frames stand at 1 positions along the normal, so that they"
          : "'" + plane.name +
                "' has no position or orientation in space (ImagePositionPatient, "
                "ImageOrientationPatient), so that its " +
                frames + " frames";
  return why + " (perhaps a cine) make no volume, and one is needed here; ";
}

template <class S>
void rescale_plane(const std::byte* pixels, const DicomObject& object, const DicomPlane& plane,
                   float* out) {
  const int64_t count = static_cast<int64_t>(plane.size.x) * plane.size.y;
  const S* stored = reinterpret_cast<const S*>(pixels);
  const DicomLut& lut = object.lut;
  const int channels = object.format.samples;
  if (!lut.values.empty()) {
    const auto last = static_cast<int64_t>(lut.values.size()) - 1;
    for (int64_t i = 0; i < count; ++i) {
      const int64_t entry =
          std::clamp<int64_t>(static_cast<int64_t>(stored[i]) - lut.first, 0, last);
      out[i] = lut.values[static_cast<size_t>(entry)];
    }
    return;
  }
  for (int64_t i = 0; i < count; ++i) {
    const S* pixel = stored + i * channels;
    double value = static_cast<double>(pixel[0]);
    if (channels == 3) value = 0.2126 * value + 0.7152 * pixel[1] + 0.0722 * pixel[2];
    out[i] = static_cast<float>(value * plane.slope + plane.intercept);
  }
}

}  // namespace

DicomImage::DicomImage(const std::string& path, const OpenOptions& options)
    : ImageFile(path), options_(options.read), is_sequence_(options.is_sequence) {
  if (is_sequence_) {
    file_ = read_dicom_file(path);
    objects_.push_back(describe_dicom(*file_));
  } else {
    objects_ = objects_of(path, options_);
  }
  for (const DicomObject& object : objects_) {
    if (!object.has_pixels) {
      bad(object.path, "it has no pixels, it is a DICOM " + object.kind + "; give an image");
    }
    if (!object.problem.empty()) throw InputError(object.problem);
  }
  const DicomObject& first = objects_.front();
  const DicomPixelFormat& format = first.format;
  header_.component = component_of(format);
  header_.channels = format.samples;
  header_.colour = format.samples == 3;
  header_.frames = is_sequence_ || is_cine(first) ? first.frames : 1;
  header_.grid.size = first.planes.front().size;
  if (is_sequence_) return;
  header_.stored = {header_.component, header_.channels};
  // Luminance of whole numbers is not whole; the conversion then rounds as for other pictures.
  header_.component = Component::kFloat32;
  header_.channels = 1;
  arrange();
}

// Files of one frame have no choice; of a cine the chosen frame counts.
void DicomImage::arrange() {
  const DicomObject& first = objects_.front();
  if (is_cine(first) && objects_.size() == 1) {
    header_.no_volume = why_no_volume(first);
    const int64_t frame = options_.frame ? chosen_frame(path(), header_, options_).first : 0;
    planes_ = {plane_of_frame(frame)};
    // That a frame has to be chosen is what a user has to know before all else.
    ReadOptions quiet = options_;
    if (!options_.frame) quiet.warn = nullptr;
    try {
      header_.grid = arrange_planes(planes_, path(), quiet);
    } catch (const InputError& error) {
      if (options_.frame) throw;
      problem_ = error.what();
    }
    for (const DicomPlane& plane : first.planes) {
      if (plane.spacing_x_mm == planes_[0].spacing_x_mm &&
          plane.spacing_y_mm == planes_[0].spacing_y_mm) {
        continue;
      }
      if (!options_.frame) problem_ = "'" + path() + "': its frames differ in pixel spacing";
    }
    return;
  }
  for (size_t i = 0; i < objects_.size(); ++i) {
    if (is_cine(objects_[i])) {
      header_.frames = objects_[i].frames;
      header_.no_volume = why_no_volume(objects_[i]);
      chosen_frame(path(), header_, {});
    }
    for (DicomPlane plane : objects_[i].planes) {
      plane.object = static_cast<int>(i);
      planes_.push_back(plane);
    }
  }
  chosen_frame(path(), header_, options_);
  check_one_series(objects_, path(), options_);
  header_.grid = arrange_planes(planes_, path(), options_);
}

DicomPlane DicomImage::plane_of_frame(int64_t frame) const {
  const DicomObject& object = objects_.front();
  DicomPlane plane = object.planes[object.frames_alike ? 0 : static_cast<size_t>(frame)];
  plane.frame = static_cast<int>(frame);
  return plane;
}

std::vector<std::string> DicomImage::files() const {
  std::vector<std::string> files;
  for (const DicomObject& object : objects_) files.push_back(object.path);
  return files;
}

DicomPixels& DicomImage::pixels_of(int object) {
  if (!pixels_ || object != object_of_pixels_) {
    pixels_ = std::make_unique<DicomPixels>(objects_[static_cast<size_t>(object)], options_);
    object_of_pixels_ = object;
  }
  return *pixels_;
}

void DicomImage::read(int64_t from, std::span<std::byte> to) {
  const Vec3i& size = header_.grid.size;
  const int64_t slice = int64_t{size.x} * size.y * header_.channels * bytes_of(header_.component);
  const FrameRange slices{from / slice, static_cast<int64_t>(to.size()) / slice};
  if (is_sequence_) return pixels_of(0).read(slices, to);
  if (!problem_.empty()) throw InputError(problem_);
  for (int64_t i = 0; i < slices.count; ++i) {
    const int64_t number = slices.first + i;
    const DicomPlane plane =
        header_.frames > 1 ? plane_of_frame(number) : planes_[static_cast<size_t>(number)];
    const DicomObject& object = objects_[static_cast<size_t>(plane.object)];
    const Component component = component_of(object.format);
    DicomPixels& pixels = pixels_of(plane.object);
    stored_.resize(static_cast<size_t>(pixels.samples_of_frame() * bytes_of(component)));
    pixels.read({plane.frame, 1}, stored_);
    auto* out = reinterpret_cast<float*>(to.data() + i * slice);
    with_type(component, [&](auto type) {
      rescale_plane<decltype(type)>(stored_.data(), object, plane, out);
    });
  }
}

bool is_dicom(const std::string& path) {
  if (is_folder(path)) return true;
  std::ifstream in;
  in.rdbuf()->pubsetbuf(nullptr, 0);  // no more than is looked at
  in.open(path, std::ios::binary);
  char start[132] = {};
  in.read(start, sizeof start);
  const std::string_view bytes(start, static_cast<size_t>(in.gcount()));
  if (bytes.size() == sizeof start && bytes.substr(128) == "DICM") return true;
  // Without a preamble the first element is of group 0002 or 0008, most often little-endian.
  if (bytes.size() < 12 || bytes[1] != 0 || bytes[3] != 0) return false;
  return (bytes[0] == 2 && bytes[2] <= 0x10) ||
         (bytes[0] == 8 && (bytes[2] == 0 || bytes[2] == 5 || bytes[2] == 8 || bytes[2] == 0x16));
}

}  // namespace larch::io
