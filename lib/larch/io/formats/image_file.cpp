// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/image_file.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <new>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/core/host_memory.h"
#include "larch/core/text.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"

namespace larch {

void require_allowed(const ReadOptions& options, Allow what_for, const std::string& what,
                     const std::string& taken) {
  if (std::ranges::find(options.allow, what_for) != options.allow.end()) {
    if (options.warn) options.warn(what + "; " + taken);
    return;
  }
  for (const auto& [value, name] : enum_names(static_cast<Allow*>(nullptr))) {
    if (value != what_for) continue;
    throw InputError(what + "; repair the header, or give --allow " + name + ": then " + taken);
  }
}

}  // namespace larch

namespace larch::io {
namespace {

std::string short_number(double value) {
  return number_text(value, 9);
}

std::string in_mm(const Vec3d& v) {
  return short_number(v.x) + ", " + short_number(v.y) + ", " + short_number(v.z);
}

void check_limits(const Grid& grid, const std::string& path) {
  for (int axis = 0; axis < 3; ++axis) {
    const double spacing = grid.spacing_mm[axis];
    if (spacing >= kFinestSpacingMm && spacing <= kCoarsestSpacingMm) continue;
    bad(path, "a voxel spacing of " + short_number(spacing) + " mm along axis " +
                  std::to_string(axis + 1) + " is not to be believed (" +
                  short_number(kFinestSpacingMm) + " to " + short_number(kCoarsestSpacingMm) +
                  " mm are); repair the header");
  }
  const Vec3d last{grid.size.x - 1.0, grid.size.y - 1.0, grid.size.z - 1.0};
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3d at = world_from_index(
        grid, {corner & 1 ? last.x : 0, corner & 2 ? last.y : 0, corner & 4 ? last.z : 0});
    if (std::max({std::abs(at.x), std::abs(at.y), std::abs(at.z)}) <= kFarthestMm) continue;
    bad(path, "the header places a corner of the image at (" + in_mm(at) + ") mm, more than " +
                  short_number(kFarthestMm) +
                  " mm away, which is not to be believed; repair its origin and spacing");
  }
}

/// Puts the channels of each voxel side by side: [channel][between] of each frame becomes
/// [between][channel]. `width`: bytes of a number.
void interleave(std::span<std::byte> voxels, size_t channels, size_t between, size_t width) {
  const std::vector<std::byte> planes(voxels.begin(), voxels.end());
  const size_t block = channels * between;
  for (size_t i = 0; i * width < planes.size(); ++i) {
    const size_t place = i / block * block + i % between * channels + i % block / between;
    std::memcpy(voxels.data() + place * width, planes.data() + i * width, width);
  }
}

}  // namespace

std::string name_of(Component component) {
  constexpr const char* kNames[] = {"uint8", "int8",   "uint16", "int16",   "uint32",
                                    "int32", "uint64", "int64",  "float32", "float64"};
  return kNames[static_cast<int>(component)];
}

int bytes_of(Component component) {
  constexpr int kBytes[] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
  return kBytes[static_cast<int>(component)];
}

FrameRange chosen_frame(const std::string& path, const Header& header, const ReadOptions& options) {
  const int frames = header.frames;
  if (!options.frame && frames <= 1) return {0, 1};
  const std::string there = std::to_string(frames) + (frames == 1 ? " frame" : " frames");
  if (!options.frame) {
    const std::string choice = options.has_frame_flag ? "choose it with --frame 1 to --frame " +
                                                            std::to_string(frames) + ", or "
                                                      : "";
    bad(path, (header.no_volume.empty() ? there + " (4-D or a cine), of which one is needed here; "
                                        : header.no_volume) +
                  choice + "write it to a file of its own");
  }
  if (*options.frame < 1 || *options.frame > frames) {
    bad(path, "there is no frame " + std::to_string(*options.frame) +
                  " (they count from 1, and the image has " + there + ")");
  }
  return {*options.frame - 1, 1};
}

void require_components(const std::string& path, const Header& header) {
  if (header.channels == 1 || header.colour) return;
  bad(path, std::to_string(header.channels) +
                " components per voxel; write one of them to a file of its own");
}

int64_t checked_bytes(const Header& header, const std::string& path) {
  const Vec3i size = header.grid.size;
  const std::string shape =
      std::to_string(size.x) + "x" + std::to_string(size.y) + "x" + std::to_string(size.z);
  if (size.x <= 0 || size.y <= 0 || size.z <= 0 || header.channels <= 0) {
    bad(path, "the header gives a size of " + shape + " voxels; the file is empty or damaged");
  }
  const __int128 bytes = static_cast<__int128>(size.x) * size.y * size.z * header.channels *
                         bytes_of(header.component);
  if (bytes * header.frames > header.most_bytes) {
    bad(path, "the header promises " + shape + " voxels of " + name_of(header.component) +
                  (header.frames > 1 ? " in " + std::to_string(header.frames) + " frames" : "") +
                  ", more than the file can hold (at most " + std::to_string(header.most_bytes) +
                  " bytes); it is truncated or damaged");
  }
  return static_cast<int64_t>(bytes);
}

std::vector<std::byte> allocate_voxels(int64_t bytes, const std::string& path) {
  const auto needed = static_cast<size_t>(bytes);
  try {
    if (host_memory_allows(needed)) return std::vector<std::byte>(needed);
  } catch (const std::bad_alloc&) {
  }
  throw MemoryError("'" + path + "': " + out_of_memory_text(needed));
}

void check_geometry(const Grid& grid, const std::string& path) {
  const auto is_finite = [](const Vec3d& v) {
    return std::isfinite(v.x) && std::isfinite(v.y) && std::isfinite(v.z);
  };
  bool finite = is_finite(grid.origin_mm) && is_finite(grid.spacing_mm);
  for (int axis = 0; axis < 3; ++axis) finite = finite && is_finite(grid.direction.column(axis));
  if (!finite) bad(path, "the geometry in the header is not finite; repair the header");
  if (!(std::min({grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z}) > 0)) {
    bad(path, "a voxel spacing in the header is zero or negative (" + in_mm(grid.spacing_mm) +
                  " mm); repair the header");
  }
  if (guarded(Guard::kGeometryLimits)) check_limits(grid, path);
  for (int axis = 0; axis < 3; ++axis) {
    // The spacing alone is the size of a voxel; a longer axis would make it a lie.
    const double length = norm(grid.direction.column(axis));
    if (std::abs(length - 1) <= kRoundedAxis) continue;
    bad(path, "axis " + std::to_string(axis + 1) +
                  " of the direction matrix is not a unit vector (its length is " +
                  short_number(length) +
                  "); repair the header: the spacing says how large voxels are");
  }
  if (!(std::abs(determinant(grid.direction)) > 1e-6)) {
    bad(path,
        "two axes of the direction matrix are parallel, so that positions are not defined; repair "
        "the header");
  }
}

void bad_voxels(const VoxelPlace& place, const char* what) {
  const bool packed = place.packing != Packing::kNone;
  bad(place.path,
      std::string(packed ? "the compressed data are damaged or truncated: " : "truncated: ") +
          what + "; copy or export the file again");
}

StoredImage::StoredImage(const std::string& path, StoredHeader stored, DigestSink digest)
    : ImageFile(path),
      header_path_(std::move(stored.path)),
      place_(std::move(stored.place)),
      digest_(std::move(digest)) {
  header_ = std::move(stored.header);
  frame_bytes_ = checked_bytes(header_, path);
  all_bytes_ = frame_bytes_ * header_.frames;
  if (header_.channels == 1) place_.values_between = 1;
  if (header_.frames > 1 && place_.values_between > header_.grid.voxels()) {
    bad(path,
        "the axis of its components comes after the one of its frames; write the frames last");
  }
}

std::vector<std::string> StoredImage::files() const {
  if (header_path_ == place_.path) return {header_path_};
  return {header_path_, place_.path};
}

/// A stream has to be read from its start again for what lies before.
void StoredImage::seek(int64_t from) {
  if (!in_ || from < at_) {
    at_ = 0;
    is_hashed_ = from == 0 && digest_ != nullptr;
    in_ = std::make_unique<ZReader>(place_.path, place_.byte, place_.packing, is_hashed_);
    if (place_.stamp && settled_stamp(place_.path) != place_.stamp) {
      bad(path(), "it was changed after its header was read; is it being copied? Start again");
    }
    in_->skip(place_.skipped);
  }
  in_->skip(from - at_);
  at_ = from;
}

void StoredImage::read(int64_t from, std::span<std::byte> to) {
  const auto bytes = static_cast<int64_t>(to.size());
  if (place_.values_between > 1 && (from % frame_bytes_ != 0 || bytes % frame_bytes_ != 0)) {
    throw UsageError("'" + path() + "': frames of separate channels are read whole");
  }
  seek(from);
  if (in_->read(to.data(), bytes) < bytes) bad_voxels(place_);
  at_ += bytes;
  if (at_ == all_bytes_) finish();
  const int width = bytes_of(header_.component);
  if (place_.swapped) swap_all(to, width);
  if (place_.values_between > 1) {
    interleave(to, static_cast<size_t>(header_.channels),
               static_cast<size_t>(place_.values_between), static_cast<size_t>(width));
  }
}

void StoredImage::finish() {
  if (!in_) return;
  const int64_t rest = all_bytes_ - at_;
  const std::unique_ptr<ZReader> in = std::move(in_);
  const int64_t came = in->finish();
  const bool is_packed = place_.packing != Packing::kNone;
  if (is_packed && came < std::min(rest, int64_t{1} << 26)) bad_voxels(place_);
  if (place_.packing == Packing::kZlib && came > rest) {
    bad_voxels(place_, "they hold more than the header says");
  }
  if (!is_hashed_ || rest != 0) return;
  digest_(place_.path, in->sha256());
  digest_ = nullptr;
}

void DecodedImage::read(int64_t from, std::span<std::byte> to) {
  if (voxels_.empty()) voxels_ = decode_();
  if (from < 0 || from + static_cast<int64_t>(to.size()) > static_cast<int64_t>(voxels_.size())) {
    bad(path(), "the header contradicts itself about its size; it is damaged");
  }
  std::memcpy(to.data(), voxels_.data() + from, to.size());
  if (to.size() == voxels_.size()) voxels_ = {};
}

void require_one_slice(const std::string& path, const Vec3i& size) {
  if (size.z == 1) return;
  throw UsageError("cannot write '" + path +
                   "': this format holds 2-D pictures, and the volume has " +
                   std::to_string(size.z) + " slices; write .nii.gz instead");
}

void require_picture(const std::string& path, const Pixels& pixels,
                     std::initializer_list<Component> allowed) {
  require_one_slice(path, pixels.grid.size);
  if (pixels.channels > 1) {
    throw UsageError("cannot write '" + path +
                     "': this format does not hold vectors; write .nii.gz instead");
  }
  if (std::find(allowed.begin(), allowed.end(), pixels.component) == allowed.end()) {
    throw UsageError("cannot write '" + path + "': this format does not hold " +
                     name_of(pixels.component) + " values; write .nii.gz instead");
  }
}

}  // namespace larch::io
