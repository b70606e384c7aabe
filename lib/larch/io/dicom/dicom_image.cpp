// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_image.h"

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/kept_headers.h"
#include "larch/io/bytes/message.h"

namespace larch::io {
namespace {

std::string quoted(const DicomObject& object) {
  return "'" + std::filesystem::path(object.path).filename().string() + "'";
}

// The first bytes of a file, which tell what it is. Throws InputError if they cannot be read, as
// those of a pipe, which is not waited for.
std::string start_of(const std::string& path) {
  file_bytes(path);
  return read_file(path, kBeginning);
}

bool starts_as_dicom(std::string_view bytes) {
  if (bytes.size() >= 132 && bytes.substr(128, 4) == "DICM") return true;
  // Without a preamble the first element is of group 0002 or 0008, most often little-endian.
  if (bytes.size() < 12 || bytes[1] != 0 || bytes[3] != 0) return false;
  return (bytes[0] == 2 && bytes[2] <= 0x10) ||
         (bytes[0] == 8 && (bytes[2] == 0 || bytes[2] == 5 || bytes[2] == 8 || bytes[2] == 0x16));
}

[[noreturn]] void refuse_start(const std::string& path, std::string_view start) {
  refuse_placeholder(path, start);
  const bool is_blank = start.find_first_not_of('\0') == std::string_view::npos;
  bad(path,
      std::string("it is not DICOM: it ") +
          (is_blank ? "begins with zeros or is cut off" : "does not begin as DICOM files do") +
          "; copy it again, unpack it, or leave it out if it is no image");
}

// The ending by which slices are told from other files: without that of a packed or unfinished
// copy, and none for a number, as it stands at the end of an UID.
std::string slice_ending(std::filesystem::path name) {
  constexpr std::string_view kOfCopies = " .bz2 .xz .zst .zip .part .partial .tmp .crdownload ";
  std::string ending = file_extension(name.string());
  if (ending.ends_with(".gz") || kOfCopies.find(" " + ending + " ") != std::string_view::npos) {
    const std::string inner = file_extension(name.replace_extension().string());
    if (!inner.empty() || ending != ".zip") ending = inner;
  }
  return ending.find_first_not_of(".0123456789") == std::string::npos ? "" : ending;
}

/// Opens a file; nothing if it does not begin as DICOM files do.
std::optional<DicomBytes> opened(const std::string& path) {
  DicomBytes in(path);
  const int64_t start = std::min(in.size(), static_cast<int64_t>(kBeginning));
  if (starts_as_dicom(in.read({0, start}))) return in;
  return std::nullopt;
}

KeptHeaders<DicomObject>& kept_headers() {
  static KeptHeaders<DicomObject> kept;
  return kept;
}

}  // namespace

std::optional<DicomObject> dicom_header(const std::string& path) {
  const std::optional<FileStamp> stamp = settled_stamp(path);
  std::optional<DicomObject> object = kept_headers().find(path, stamp);
  if (object) return object;
  std::optional<DicomBytes> in = opened(path);
  if (!in) return std::nullopt;
  object = describe_dicom(read_dicom_file(path, std::move(*in)));
  object->stamp = stamp;
  if (object->problem.empty()) kept_headers().keep(path, stamp, *object);
  return object;
}

namespace {

// Tells whether a file that does not begin as DICOM may be passed over. Throws InputError if it
// seems to be a slice, since none may vanish: it is empty, or is named as those of `endings` are.
void require_no_slice(const std::string& path, const std::set<std::string>& endings) {
  const std::filesystem::path name = std::filesystem::path(path).filename();
  const std::string start = start_of(path), ending = slice_ending(name);
  if (name.string().starts_with('.') || name == "DICOMDIR") return;
  if (!start.empty() && !endings.contains(ending)) return;
  if (start.empty() || ending.empty()) refuse_placeholder(path, start);
  const auto is_of_text = [](unsigned char c) { return c > 31 || (c > 8 && c < 14); };
  if (ending.empty() && std::ranges::all_of(start, is_of_text)) return;
  refuse_start(path, start);
}

// The images of a folder; a warning counts the files that are none.
std::vector<DicomObject> images_in(const std::string& folder, std::vector<std::string>& warnings) {
  std::vector<DicomObject> images, without_pixels;
  std::vector<std::string> others;
  std::set<std::string> endings{"", ".dcm", ".dicom", ".dic", ".dc3", ".ima", ".acr"}, series;
  for (const std::string& path : files_in(folder)) {
    std::optional<DicomObject> header;
    if (std::filesystem::path(path).filename() != "DICOMDIR") header = dicom_header(path);
    if (!header) {
      others.push_back(path);
      continue;
    }
    DicomObject& object = *header;
    // A damaged file may be of any series, unless it names its own before the damage.
    if (object.series_uid.empty() && !object.problem.empty()) throw InputError(object.problem);
    if (object.has_pixels) {
      endings.insert(slice_ending(path));
      series.insert(object.series_uid);
    }
    (object.has_pixels ? images : without_pixels).push_back(std::move(object));
  }
  for (const std::string& path : others) require_no_slice(path, endings);
  if (images.empty()) {
    bad(folder, "no DICOM images in this folder (subfolders are not searched)" +
                    (without_pixels.empty() ? ""
                                            : "; " + quoted(without_pixels[0]) + " is a DICOM " +
                                                  without_pixels[0].kind + " without pixels"));
  }
  for (const DicomObject& object : without_pixels) {  // cut off between two elements
    const bool is_known = !object.kind.starts_with("object ");
    if (!is_known && (object.series_uid.empty() || series.contains(object.series_uid))) {
      bad(object.path, "it has no pixels, but may be of a series that has; copy it again");
    }
    others.push_back(object.path);
  }
  if (!others.empty()) {
    warnings.push_back("'" + folder + "': " + std::to_string(others.size()) +
                       " files that are no DICOM images are passed over, such as '" +
                       std::filesystem::path(others[0]).filename().string() + "'");
  }
  return images;
}

std::vector<DicomObject> objects_of(const std::string& path, const ReadOptions& options,
                                    std::vector<std::string>& warnings) {
  if (!is_folder(path)) {
    std::optional<DicomObject> object = dicom_header(path);
    if (!object) refuse_start(path, start_of(path));
    return {std::move(*object)};
  }
  std::vector<DicomObject> images = images_in(path, warnings);
  std::map<std::string, std::vector<const DicomObject*>> series;
  for (const DicomObject& image : images) series[image.series_uid].push_back(&image);
  std::string listing;
  for (const auto& [uid, files] : series) {
    const DicomObject& last = *files.back();
    listing += (listing.empty() ? " " : "; ") + uid + " (" + last.modality + ", " +
               std::to_string(files.size()) + " files" +
               (last.description.empty() ? "" : ", " + last.description) + ")";
  }
  const std::string& chosen = options.series_uid;
  if (chosen.empty() && series.size() > 1) {
    bad(path,
        "the folder holds " + std::to_string(series.size()) + " DICOM series; choose one " +
            (options.has_frame_flag ? "with --series, in a list in the column 'series', " : "") +
            "or move the others away:" + listing);
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
    std::optional<DicomBytes> in = opened(path);
    if (!in) refuse_start(path, start_of(path));
    file_ = read_dicom_file(path, std::move(*in));
    objects_.push_back(describe_dicom(*file_));
  } else {
    objects_ = objects_of(path, options_, header_.warnings);
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
  header_.colour = format.is_colour();
  header_.is_lossy = first.transfer_syntax == TransferSyntax::kJpegBaseline ||
                     first.transfer_syntax == TransferSyntax::kJpegExtended;
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
  if (std::ranges::any_of(objects_, &DicomObject::is_segmentation)) {
    if (objects_.size() > 1) bad(path(), "segmentations are read one by one; give one file of it");
    if (first.frames_alike) bad_header(path(), "it does not say where its frames are");
    chosen_frame(path(), header_, options_);
    planes_ = first.planes;
    header_.grid = arrange_segments(planes_, path(), options_);
    header_.labels = first.segments->table;
    return;
  }
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
    const DicomObject& of_file = objects_[static_cast<size_t>(object)];
    pixels_ = std::make_unique<DicomPixels>(of_file, options_);
    object_of_pixels_ = object;
    if (of_file.stamp && settled_stamp(of_file.path) != of_file.stamp) {
      bad(of_file.path,
          "it was changed after its header was read; is it being copied? Start again");
    }
  }
  return *pixels_;
}

void DicomImage::read_frames(int object, const FrameRange& frames, std::span<std::byte> to) {
  DicomPixels& pixels = pixels_of(object);
  pixels.read(frames, to);
  // The first frames of a sequence do not wait for the digest.
  const DicomObject& of_file = objects_[static_cast<size_t>(object)];
  const bool is_last = frames.first + frames.count == of_file.frames;
  if (!is_last || !options_.digest || !hashed_.insert(object).second) return;
  const std::string digest = pixels.sha256();
  if (!digest.empty()) options_.digest(of_file.path, digest);
}

void DicomImage::read(int64_t from, std::span<std::byte> to) {
  const Vec3i& size = header_.grid.size;
  const int64_t slice = int64_t{size.x} * size.y * header_.channels * bytes_of(header_.component);
  const FrameRange slices{from / slice, static_cast<int64_t>(to.size()) / slice};
  if (is_sequence_) return read_frames(0, slices, to);
  if (!problem_.empty()) throw InputError(problem_);
  for (int64_t i = 0; i < slices.count; ++i) {
    const int64_t number = slices.first + i;
    auto* out = reinterpret_cast<float*>(to.data() + i * slice);
    if (objects_.front().is_segmentation()) {
      read_segments(static_cast<int>(number), {out, static_cast<size_t>(slice) / sizeof(float)});
      continue;
    }
    const DicomPlane plane =
        header_.frames > 1 ? plane_of_frame(number) : planes_[static_cast<size_t>(number)];
    const DicomObject& object = objects_[static_cast<size_t>(plane.object)];
    const std::byte* stored = read_plane(plane);
    with_type(component_of(object.format),
              [&](auto type) { rescale_plane<decltype(type)>(stored, object, plane, out); });
  }
}

const std::byte* DicomImage::read_plane(const DicomPlane& plane) {
  const Component component = component_of(objects_[static_cast<size_t>(plane.object)].format);
  DicomPixels& pixels = pixels_of(plane.object);
  stored_.resize(static_cast<size_t>(pixels.samples_of_frame() * bytes_of(component)));
  read_frames(plane.object, {plane.frame, 1}, stored_);
  return stored_.data();
}

/// The labels of a slice, from all of its frames.
void DicomImage::read_segments(int slice, std::span<float> out) {
  const DicomSegments& segments = *objects_.front().segments;
  std::ranges::fill(out, 0.0F);
  const auto first = std::ranges::lower_bound(planes_, slice, {}, &DicomPlane::slice);
  for (auto at = first; at != planes_.end() && at->slice == slice; ++at) {
    const DicomPlane& plane = *at;
    const std::byte* pixels = read_plane(plane);
    int known = -1;
    with_type(component_of(objects_.front().format), [&](auto type) {
      const auto* stored = reinterpret_cast<const decltype(type)*>(pixels);
      for (size_t i = 0; i < out.size(); ++i) {
        if (stored[i] == 0) continue;
        const int label = segments.is_labelmap ? static_cast<int>(stored[i]) : plane.segment;
        if (label != std::exchange(known, label) &&
            !std::ranges::count(segments.table, label, &LabelEntry::value)) {
          bad_header(path(), "'" + plane.name + "' is of a segment " + std::to_string(label) +
                                 ", which its SegmentSequence does not have");
        }
        if (out[i] != 0) {
          bad(path(), "its segments " + std::to_string(static_cast<int>(out[i])) + " and " +
                          std::to_string(label) + " overlap ('" + plane.name +
                          "'), and a label map has one label for each voxel; write each to a file "
                          "of its own, for example with segimage2itkimage of dcmqi");
        }
        out[i] = static_cast<float>(label);
      }
    });
  }
}

bool is_dicom(const std::string& path) {
  if (is_folder(path) || kept_headers().find(path, settled_stamp(path))) return true;
  try {
    return starts_as_dicom(start_of(path));
  } catch (const InputError&) {
    return is_file(path);  // its reader says why it cannot be read
  }
}

}  // namespace larch::io
