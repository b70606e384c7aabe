// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Frames of MetaImage, NRRD and NIfTI files, in batches; of other formats, read whole.
#include <algorithm>
#include <cmath>
#include <cstring>
#include <fstream>

#include "larch/files/file.h"
#include "larch/io/formats/formats.h"
#include "larch/io/formats/meta.h"
#include "larch/io/formats/nifti.h"
#include "larch/io/formats/nrrd.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/zstream.h"
#include "larch/io/sequence/frame_source.h"
#include "larch/io/sequence/inflater.h"

namespace larch::io {
namespace {

/// Where the voxels of all frames stand.
struct VoxelPlace {
  enum class Coding { kRaw, kGzip, kZlib, kInMemory };
  Header header{};
  int frames = 1;  ///< of the axes beyond the third
  Coding coding = Coding::kInMemory;
  std::string path{};
  int64_t byte = 0;     ///< of the file, where voxels or their stream begin
  int64_t skipped = 0;  ///< bytes of the inflated data before them
  bool swapped = false;
  std::vector<std::byte> voxels{};  ///< kInMemory
};

/// The bytes of all frames, checked against those that the file can hold.
int64_t claimed_bytes(const VoxelPlace& place, const std::string& path) {
  return checked_bytes(place.header, path, place.frames) * place.frames;
}

VoxelPlace place_in_meta(const std::string& path) {
  MetaHeader meta = read_meta_header(path);
  VoxelPlace place;
  place.header = std::move(meta.header);
  place.frames = meta.frames;
  place.path = meta.data_path;
  place.swapped = meta.swapped;
  const int64_t size = file_bytes(meta.data_path);
  const int64_t offset = std::max<int64_t>(meta.data_offset, 0);
  if (offset > size) bad(path, "the header places the voxels behind the end of the file");
  const int64_t bytes = claimed_bytes(place, path);
  place.coding = meta.compressed ? VoxelPlace::Coding::kZlib : VoxelPlace::Coding::kRaw;
  place.byte = meta.data_offset < 0 && !meta.compressed ? size - bytes : offset;
  return place;
}

/// Whether slices stand somewhere: an array that was saved as it is has whole numbers as places,
/// from 0 on, whatever the signs of its axes.
bool has_places(const Grid& grid) {
  if (grid.spacing_mm != Vec3d{1, 1, 1} || grid.origin_mm != Vec3d{}) return true;
  for (int axis = 0; axis < 3; ++axis) {
    if (std::abs(grid.direction.m[axis][axis]) != 1) return true;
  }
  return false;
}

VoxelPlace place_in_nifti(const std::string& path) {
  NiftiHeader nifti = read_nifti_header(path);
  // Frames have an axis of their own in this format, the fourth.
  const Grid& grid = nifti.header.grid;
  if (grid.size.z > 1 && nifti.frames == 1 && has_places(grid)) {
    bad(path,
        "its slices stand at places of their own, so that they are a volume and no sequence; "
        "frames "
        "are along the fourth axis. Two volumes: give the other one with --mask-volume");
  }
  VoxelPlace place;
  place.header = std::move(nifti.header);
  place.frames = nifti.frames;
  place.path = nifti.data_path;
  place.swapped = nifti.swapped;
  const ZReader in(nifti.data_path);
  claimed_bytes(place, nifti.data_path);
  place.coding = in.compressed() ? VoxelPlace::Coding::kGzip : VoxelPlace::Coding::kRaw;
  (in.compressed() ? place.skipped : place.byte) = nifti.data_offset;
  return place;
}

/// Nothing where the voxels stand in several files, or as text.
bool place_in_nrrd(const std::string& path, VoxelPlace& place) {
  NrrdHeader nrrd = read_nrrd_header(path);
  const bool gzip = nrrd.encoding == NrrdEncoding::kGzip;
  if (nrrd.data.size() != 1 || (!gzip && nrrd.encoding != NrrdEncoding::kRaw)) return false;
  place.header = nrrd.header;
  place.frames = nrrd.frames;
  place.path = nrrd.data.front();
  place.swapped = nrrd.swapped;
  const int64_t bytes = claimed_bytes(place, path);
  const NrrdStart start = start_of_values(nrrd, bytes);
  place.coding = gzip ? VoxelPlace::Coding::kGzip : VoxelPlace::Coding::kRaw;
  place.byte = start.byte;
  place.skipped = start.skipped;
  return true;
}

VoxelPlace find_voxels(const std::string& path, const ReadOptions& options) {
  const std::string ending = file_extension(path);
  VoxelPlace place;
  const bool nrrd = ending == ".nrrd" || ending == ".nhdr";
  const bool nifti =
      ending.rfind(".nii", 0) == 0 || ending.rfind(".hdr", 0) == 0 || ending.rfind(".img", 0) == 0;
  if (is_file(path) && (ending == ".mha" || ending == ".mhd")) return place_in_meta(path);
  if (is_file(path) && nifti) return place_in_nifti(path);
  if (is_file(path) && nrrd && place_in_nrrd(path, place)) return place;
  ReadOptions quiet = options;  // the warnings are for Angiogram
  quiet.warn = nullptr;
  Selection all;
  all.all_frames = true;
  RawImage raw = read_selected(path, quiet, all);
  place.header = std::move(raw.header);
  place.voxels = std::move(raw.voxels);
  const int64_t bytes = checked_bytes(place.header, path);
  place.frames = static_cast<int>(static_cast<int64_t>(place.voxels.size()) / bytes);
  return place;
}

/// Any bytes of the voxels, in ascending order best.
class VoxelBytes {
 public:
  explicit VoxelBytes(VoxelPlace place, int64_t all_bytes)
      : place_(std::move(place)), all_bytes_(all_bytes) {}

  void read(int64_t from, std::span<std::byte> to) {
    const auto bytes = static_cast<int64_t>(to.size());
    switch (place_.coding) {
      case VoxelPlace::Coding::kInMemory:
        std::memcpy(to.data(), place_.voxels.data() + from, to.size());
        return;
      case VoxelPlace::Coding::kRaw:
        read_raw(from, to);
        break;
      default:
        inflate_to(from);
        if (zip_) zip_read(to);
        if (zlib_) zlib_->read(to.data(), bytes);
        at_ += bytes;
        if (at_ == all_bytes_) finish();
    }
    if (place_.swapped) {
      std::vector<std::byte> swapped(to.begin(), to.end());
      swap_all(swapped, bytes_of(place_.header.component));
      std::copy(swapped.begin(), swapped.end(), to.begin());
    }
  }

 private:
  [[noreturn]] void truncated() const {
    bad(place_.path, "truncated: voxels are missing at the end; copy or export the file again");
  }

  void read_raw(int64_t from, std::span<std::byte> to) {
    if (!in_.is_open()) in_.open(place_.path, std::ios::binary);
    in_.clear();
    in_.seekg(place_.byte + from);
    in_.read(reinterpret_cast<char*>(to.data()), static_cast<std::streamsize>(to.size()));
    if (in_.gcount() != static_cast<std::streamsize>(to.size())) truncated();
  }

  /// What lies before cannot be had but by beginning again.
  void inflate_to(int64_t from) {
    if ((!zip_ && !zlib_) || from < at_) {
      zip_.reset();
      zlib_.reset();
      at_ = 0;
      if (place_.coding == VoxelPlace::Coding::kGzip) {
        zip_ = std::make_unique<ZReader>(place_.path, place_.byte);
        if (!zip_->compressed()) {
          bad(place_.path, "the voxels should be compressed with gzip and are not; damaged?");
        }
        zip_->skip(place_.skipped);
      } else {
        zlib_ = std::make_unique<Inflater>(place_.path, place_.byte);
      }
    }
    if (zip_) zip_->skip(from - at_);
    if (zlib_) zlib_->read(nullptr, from - at_);
    at_ = from;
  }

  void zip_read(std::span<std::byte> to) {
    const auto bytes = static_cast<int64_t>(to.size());
    if (zip_->read(to.data(), bytes) < bytes) truncated();
  }

  /// The check sum at the end of a stream.
  void finish() {
    if (zip_) zip_->finish();
    if (zlib_) zlib_->finish(0);
    zip_.reset();
    zlib_.reset();
  }

  VoxelPlace place_;
  int64_t all_bytes_ = 0, at_ = 0;
  std::ifstream in_;
  std::unique_ptr<ZReader> zip_;
  std::unique_ptr<Inflater> zlib_;
};

/// The least and the largest of all values, which must be whole.
struct Range {
  double least = 0, most = 0;
  bool is_whole = true;
};

template <class S>
void widen(const std::vector<std::byte>& bytes, Range& range) {
  const auto* values = reinterpret_cast<const S*>(bytes.data());
  const size_t count = bytes.size() / sizeof(S);
  S least = values[0], most = values[0];
  for (size_t i = 0; i < count; ++i) {
    if constexpr (std::is_floating_point_v<S>) range.is_whole &= values[i] == std::floor(values[i]);
    least = std::min(least, values[i]);
    most = std::max(most, values[i]);
  }
  range.least = std::min(range.least, static_cast<double>(least));
  range.most = std::max(range.most, static_cast<double>(most));
}

class FileFrames : public FrameSource {
 public:
  FileFrames(const std::string& path, const ReadOptions& options) {
    VoxelPlace place = find_voxels(path, options);
    if (place.header.doubt) {
      const Doubt& doubt = *place.header.doubt;
      require_allowed(options, doubt.what_for, doubt.what, doubt.taken);
    }
    about.path = path;
    about.warnings = place.header.warnings;
    component_ = place.header.component;
    if (place.header.colour || place.header.channels != 1) {
      bad(path, place.header.colour
                    ? "its pixels are colours, and grey ones are needed here; write it as grey"
                    : std::to_string(place.header.channels) +
                          " components per pixel, and one is needed here");
    }
    describe(place);
    const int64_t all_bytes = about.grid.voxels() * about.frames * bytes_of(component_);
    const double slope = place.header.slope, intercept = place.header.intercept;
    bytes_ = std::make_unique<VoxelBytes>(std::move(place), all_bytes);
    find_bits();
    if (slope == 1 && intercept == 0) return;
    for (int32_t pixel = 0; pixel < 1 << about.bits; ++pixel) {
      about.modality.push_back(
          static_cast<float>((pixel + about.least_stored) * slope + intercept));
    }
    if (!std::isfinite(about.modality.front()) || !std::isfinite(about.modality.back())) {
      bad(path, "its scaling leads to values that are not finite; repair the header");
    }
  }

  void read(int64_t first, int64_t count, std::span<uint16_t> to) override {
    to_pixels(stored(first, count), component_, about.least_stored, to);
  }

 private:
  void describe(const VoxelPlace& place) {
    Grid grid = place.header.grid;
    if (grid.size.z > 1 && place.frames > 1) {
      bad(about.path, "its frames are volumes of " + std::to_string(grid.size.z) +
                          " slices, and pictures are needed here; write the slices of one place "
                          "to a file of their own");
    }
    about.frames = int64_t{grid.size.z} * place.frames;
    const FrameTimes& times = place.header.times;
    double step_ms = times.step * times.unit_ms;
    // ITK writes the time between the frames of a multi-frame DICOM file as their distance.
    if (step_ms <= 0 && grid.size.z > 1 && grid.spacing_mm.z != 1) step_ms = grid.spacing_mm.z;
    for (int64_t i = 0; step_ms > 0 && i < about.frames; ++i) {
      about.times_ms.push_back(times.first * times.unit_ms + static_cast<double>(i) * step_ms);
    }
    if (!about.times_ms.empty() && !std::isfinite(about.times_ms.back())) {
      bad(about.path, "the times of its frames are not finite; repair the header");
    }
    grid.size.z = 1;
    grid.spacing_mm.z = 1;
    about.grid = grid;
    about.has_spacing = about.has_world = true;
  }

  std::vector<std::byte> stored(int64_t first, int64_t count) {
    const int64_t frame_bytes = about.grid.voxels() * bytes_of(component_);
    std::vector<std::byte> bytes = allocate_voxels(count * frame_bytes, about.path);
    bytes_->read(first * frame_bytes, bytes);
    return bytes;
  }

  /// The header says how many bits are stored only where there are no more than 8.
  void find_bits() {
    constexpr int64_t kAtOnce = int64_t{1} << 24;
    Range range;
    if (component_ == Component::kUint8 || component_ == Component::kInt8) {
      about.bits = 8;
      about.least_stored = component_ == Component::kInt8 ? -128 : 0;
      return;
    }
    if (component_ == Component::kUint64 || component_ == Component::kInt64) {
      bad(about.path, "its pixels are " + name_of(component_) + "; write whole numbers of 16 bits");
    }
    const int64_t batch = std::max<int64_t>(1, kAtOnce / about.grid.voxels());
    for (int64_t first = 0; first < about.frames; first += batch) {
      const auto bytes = stored(first, std::min(batch, about.frames - first));
      with_type(component_, [&](auto type) { widen<decltype(type)>(bytes, range); });
    }
    for (const int bits : {8, 10, 12, 14, 16}) {
      const double all = std::ldexp(1.0, bits), half = all / 2;
      const bool is_signed = range.least < 0;
      if (range.least < -half || range.most >= (is_signed ? half : all)) continue;
      about.bits = bits;
      about.least_stored = is_signed ? static_cast<int32_t>(-half) : 0;
      if (range.is_whole) return;
    }
    bad(about.path, std::string("its pixels are ") +
                        (range.is_whole ? "beyond 16 bits" : "not whole numbers") +
                        ", and whole numbers of 16 bits are needed here; rescale it");
  }

  Component component_ = Component::kUint16;
  std::unique_ptr<VoxelBytes> bytes_;
};

}  // namespace

void to_pixels(const std::vector<std::byte>& stored, Component component, int32_t least,
               std::span<uint16_t> to) {
  with_type(component, [&](auto type) {
    const auto* values = reinterpret_cast<const decltype(type)*>(stored.data());
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<uint16_t>(static_cast<int32_t>(values[i]) - least);
    }
  });
}

std::unique_ptr<FrameSource> open_file_frames(const std::string& path, const ReadOptions& options) {
  return std::make_unique<FileFrames>(path, options);
}

}  // namespace larch::io
