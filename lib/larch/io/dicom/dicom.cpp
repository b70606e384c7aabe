// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <filesystem>
#include <fstream>
#include <map>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_dataset.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {
namespace fs = std::filesystem;

struct Folder {
  std::vector<DicomObject> images;
  std::string without_pixels;  // what else is there, for the message when no image is
};

Folder scan_folder(const std::string& folder) {
  Folder found;
  for (const std::string& path : files_in(folder)) {
    if (!is_dicom(path)) continue;
    DicomObject object = read_dicom_object(path);
    if (object.has_pixels) {
      found.images.push_back(std::move(object));
    } else if (found.without_pixels.empty()) {
      found.without_pixels = "; '" + fs::path(path).filename().string() + "' is a DICOM " +
                             object.kind + " without pixels";
    }
  }
  return found;
}

/// One series of a folder.
struct DicomSeries {
  std::string uid;          ///< SeriesInstanceUID
  std::string modality;     ///< "CT", "MR", ...
  std::string description;  ///< SeriesDescription, may be empty
  int files = 0;
};

std::vector<DicomSeries> series_of(const std::vector<DicomObject>& images) {
  std::map<std::string, DicomSeries> by_uid;
  for (const DicomObject& image : images) {
    DicomSeries& series = by_uid[image.series_uid];
    series.uid = image.series_uid;
    series.modality = image.modality;
    series.description = image.description;
    ++series.files;
  }
  std::vector<DicomSeries> all;
  all.reserve(by_uid.size());
  for (auto& [uid, series] : by_uid) all.push_back(series);
  return all;
}

std::string listing(const std::vector<DicomSeries>& all) {
  std::string text;
  for (const DicomSeries& series : all) {
    text += "\n  " + series.uid + " (" + series.modality + ", " + std::to_string(series.files) +
            " files" + (series.description.empty() ? "" : ", " + series.description) + ")";
  }
  return text;
}

std::vector<DicomObject> objects_of(const std::string& path, const ReadOptions& options) {
  if (!is_folder(path)) return {read_dicom_object(path)};
  Folder folder = scan_folder(path);
  if (folder.images.empty()) {
    bad(path,
        "no DICOM images in this folder (subfolders are not searched)" + folder.without_pixels);
  }
  const std::vector<DicomSeries> all = series_of(folder.images);
  if (options.series_uid.empty()) {
    if (all.size() > 1) {
      bad(path, "the folder holds " + std::to_string(all.size()) +
                    " DICOM series; choose one by its UID or move the others away:" + listing(all));
    }
    return std::move(folder.images);
  }
  std::erase_if(folder.images,
                [&](const DicomObject& image) { return image.series_uid != options.series_uid; });
  if (folder.images.empty()) {
    bad(path,
        "no DICOM series " + options.series_uid + " in this folder; there are:" + listing(all));
  }
  return std::move(folder.images);
}

struct Plan {
  std::vector<DicomObject> objects;
  std::vector<DicomPlane> planes;  // in order
  Grid grid;
};

// The first file that differs from the first of all in one of the values.
void require_same(const std::vector<DicomObject>& objects, std::string DicomIdentity::*member,
                  const char* name, Allow allow, const std::string& path,
                  const ReadOptions& options) {
  const DicomObject& first = objects.front();
  for (const DicomObject& object : objects) {
    if (object.identity.*member == first.identity.*member) continue;
    // The values stay out of logs: they are personal.
    require_allowed(options, allow,
                    "'" + path + "': '" + fs::path(first.path).filename().string() + "' and '" +
                        fs::path(object.path).filename().string() +
                        "' are of one series but differ in " + name,
                    "the files are taken as one series");
    return;
  }
}

void check_identity(const std::vector<DicomObject>& objects, const std::string& path,
                    const ReadOptions& options) {
  using Id = DicomIdentity;
  for (const auto& [member, name] :
       {std::pair{&Id::patient_id, "PatientID"}, std::pair{&Id::patient_name, "PatientName"},
        std::pair{&Id::birth_date, "PatientBirthDate"},
        std::pair{&Id::study_uid, "StudyInstanceUID"}}) {
    require_same(objects, member, name, Allow::kMixedPatients, path, options);
  }
  require_same(objects, &Id::reference_frame_uid, "FrameOfReferenceUID",
               Allow::kMixedReferenceFrames, path, options);
}

// Grey beside colour, or MONOCHROME1 beside 2, whose numbers mean opposite things.
void check_formats(const std::vector<DicomObject>& objects, const std::string& path) {
  const DicomObject& first = objects.front();
  for (const DicomObject& object : objects) {
    if (object.format.photometric == first.format.photometric) continue;
    bad(path, "'" + fs::path(first.path).filename().string() + "' and '" +
                  fs::path(object.path).filename().string() +
                  "' differ in PhotometricInterpretation (" + first.format.photometric +
                  " against " + object.format.photometric + "); move one kind to another folder");
  }
}

void require_usable(const DicomObject& object) {
  if (!object.has_pixels) {
    bad(object.path, "it has no pixels, it is a DICOM " + object.kind + "; give an image");
  }
  if (!object.problem.empty()) throw InputError(object.problem);
}

DicomPlane plane_of_frame(const DicomObject& object, int64_t frame) {
  if (!object.frames_alike) return object.planes[static_cast<size_t>(frame)];
  DicomPlane plane = object.planes.front();
  plane.frame = static_cast<int>(frame);
  return plane;
}

// The planes of a file of several frames: all of them if they make a volume, the chosen one of a
// cine. Files of one frame have no choice.
void take_planes(const DicomObject& object, const std::string& path, const ReadOptions& options,
                 std::vector<DicomPlane>& planes) {
  if (!is_cine(object)) {
    planes.insert(planes.end(), object.planes.begin(), object.planes.end());
    return;
  }
  if (!options.frame) {
    const std::string frames = std::to_string(object.frames);
    const DicomPlane& plane = object.planes.front();
    const std::string why =
        plane.has_position && plane.has_orientation
            ? frames + " slices or frames stand at 1 positions along the normal, so that they"
            : "'" + plane.name +
                  "' has no position or orientation in space (ImagePositionPatient, "
                  "ImageOrientationPatient), so that its " +
                  frames + " frames";
    bad(path, why + " (perhaps a cine) make no volume, and one is needed here; " +
                  frame_remedy(object.frames, options.has_frame_flag));
  }
  planes.push_back(
      plane_of_frame(object, chosen_frames(path, object.frames, selected_frame(options)).first));
}

Plan make_plan(const std::string& path, const ReadOptions& options) {
  Plan plan{objects_of(path, options), {}, {}};
  for (size_t i = 0; i < plan.objects.size(); ++i) {
    const DicomObject& object = plan.objects[i];
    require_usable(object);
    const size_t before = plan.planes.size();
    take_planes(object, path, options, plan.planes);
    for (size_t k = before; k < plan.planes.size(); ++k) {
      plan.planes[k].object = static_cast<int>(i);
    }
  }
  const DicomObject& first = plan.objects.front();
  if (plan.objects.size() > 1 || !is_cine(first)) chosen_frames(path, 1, selected_frame(options));
  check_identity(plan.objects, path, options);
  check_formats(plan.objects, path);
  plan.grid = arrange_planes(plan.planes, path, options);
  return plan;
}

template <class S>
void rescale(const DicomPixels& pixels, const DicomPlane& plane, const DicomLut& lut, float* out) {
  const int64_t count = static_cast<int64_t>(plane.size.x) * plane.size.y;
  const S* stored = reinterpret_cast<const S*>(pixels.bytes.data()) +
                    count * pixels.channels * (plane.frame - pixels.first_frame);
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
    const S* pixel = stored + i * pixels.channels;
    double value = static_cast<double>(pixel[0]);
    if (pixels.channels == 3) value = 0.2126 * value + 0.7152 * pixel[1] + 0.0722 * pixel[2];
    out[i] = static_cast<float>(value * plane.slope + plane.intercept);
  }
}

void rescale_any(const DicomPixels& pixels, const DicomPlane& plane, const DicomLut& lut,
                 float* out) {
  with_type(pixels.component,
            [&](auto stored) { rescale<decltype(stored)>(pixels, plane, lut, out); });
}

// The frames of an object from the first to the last that a plane of the plan needs.
FrameRange frames_needed(const Plan& plan, int object) {
  int first = plan.objects[static_cast<size_t>(object)].frames, last = -1;
  for (const DicomPlane& plane : plan.planes) {
    if (plane.object != object) continue;
    first = std::min(first, plane.frame);
    last = std::max(last, plane.frame);
  }
  return {first, last - first + 1};
}

}  // namespace

RawImage read_dicom_raw(const std::string& path, const ReadOptions& options) {
  const Plan plan = make_plan(path, options);
  RawImage raw;
  raw.header.grid = plan.grid;
  raw.header.component = Component::kFloat32;
  // Luminance of whole numbers is not whole; the conversion then rounds as for other pictures.
  raw.header.colour = plan.objects[0].format.samples == 3;
  raw.voxels = allocate_voxels(plan.grid.voxels() * 4, path);
  auto* out = reinterpret_cast<float*>(raw.voxels.data());
  const int64_t slice = static_cast<int64_t>(plan.grid.size.x) * plan.grid.size.y;
  for (size_t object = 0; object < plan.objects.size(); ++object) {
    const FrameRange frames = frames_needed(plan, static_cast<int>(object));
    const DicomPixels pixels = read_dicom_pixels(plan.objects[object], frames, options);
    for (size_t k = 0; k < plan.planes.size(); ++k) {
      if (plan.planes[k].object != static_cast<int>(object)) continue;
      rescale_any(pixels, plan.planes[k], plan.objects[object].lut,
                  out + slice * static_cast<int64_t>(k));
    }
  }
  return raw;
}

Header probe_dicom(const std::string& path, const ReadOptions& options) {
  const Plan plan = make_plan(path, options);
  Header header;
  header.grid = plan.grid;
  header.component = component_of(plan.objects[0].format);
  header.channels = plan.objects[0].format.samples;
  header.colour = header.channels == 3;
  return header;
}

bool is_dicom(const std::string& path) {
  std::error_code error;
  if (std::filesystem::is_directory(path, error)) return true;
  std::ifstream in(path, std::ios::binary);
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
