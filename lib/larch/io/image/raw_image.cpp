// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/raw_image.h"

#include <cmath>
#include <cstring>
#include <limits>
#include <new>
#include <type_traits>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/core/host_memory.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {

std::string text(double value) {
  char buffer[32];
  std::snprintf(buffer, sizeof buffer, "%.9g", value);
  return buffer;
}

std::string text(const Vec3i& at) {
  return "(" + std::to_string(at.x) + "," + std::to_string(at.y) + "," + std::to_string(at.z) + ")";
}

// Scaling with a float32 slope leaves values such as 3.0000001, which are meant to be whole.
constexpr double kWholeTolerance = 1e-4;

template <class T>
bool fits(double value) {
  if constexpr (std::is_floating_point_v<T>) {
    return std::abs(value) <= static_cast<double>(std::numeric_limits<T>::max());
  } else {
    return value >= static_cast<double>(std::numeric_limits<T>::min()) &&
           value <= static_cast<double>(std::numeric_limits<T>::max());
  }
}

// Counts what cannot be represented, so that one message can tell all of it.
struct Problems {
  int64_t not_finite = 0, out_of_range = 0, not_whole = 0;
  int64_t first_not_finite = 0, first_out_of_range = 0, first_not_whole = 0;
  double lowest = 0, highest = 0, fraction = 0;
};

template <class T>
T checked_value(double value, int64_t at, bool round, Problems& problems) {
  if (!std::isfinite(value)) {
    if (problems.not_finite++ == 0) problems.first_not_finite = at;
    return T{};
  }
  if constexpr (!std::is_floating_point_v<T>) {
    const double whole = std::nearbyint(value);
    if (!round && std::abs(value - whole) > kWholeTolerance && problems.not_whole++ == 0) {
      problems.first_not_whole = at;
      problems.fraction = value;
    }
    value = whole;
  }
  if (!fits<T>(value)) {
    if (problems.out_of_range++ == 0) {
      problems.first_out_of_range = at;
      problems.lowest = problems.highest = value;
    }
    problems.lowest = std::min(problems.lowest, value);
    problems.highest = std::max(problems.highest, value);
    return T{};
  }
  return static_cast<T>(value);
}

template <class S, class T>
void convert_all(const RawImage& raw, const ReadOptions& options, Volume<T>& out,
                 Problems& problems) {
  const Header& header = raw.header;
  const bool scaled = header.slope != 1 || header.intercept != 0;
  const S* stored = reinterpret_cast<const S*>(raw.voxels.data());
  if (std::is_same_v<S, T> && !std::is_floating_point_v<S> && !scaled && header.channels == 1) {
    std::memcpy(out.data(), raw.voxels.data(), raw.voxels.size());
    return;
  }
  for (int64_t i = 0; i < out.voxels(); ++i) {
    double value = 0;
    if (header.colour && header.channels >= 3) {
      const S* pixel = stored + i * header.channels;
      value = 0.2126 * static_cast<double>(pixel[0]) + 0.7152 * static_cast<double>(pixel[1]) +
              0.0722 * static_cast<double>(pixel[2]);
    } else {
      value = static_cast<double>(stored[i * header.channels]);
    }
    if (scaled) value = value * header.slope + header.intercept;
    if (options.nan_value && !std::isfinite(value)) value = *options.nan_value;
    if constexpr (std::is_floating_point_v<T>) {
      if (options.keeps_not_finite && !std::isfinite(value)) {
        out[i] = static_cast<T>(value);
        continue;
      }
    }
    out[i] = checked_value<T>(value, i, header.colour, problems);
  }
}

template <class T>
void report(const Problems& problems, const Grid& grid, const std::string& path) {
  if (problems.not_finite > 0) {
    bad(path,
        std::to_string(problems.not_finite) + " voxels are NaN or infinite, the first at index " +
            text(grid.voxel(problems.first_not_finite)) +
            (std::is_floating_point_v<T> ? "; give --nan-value to replace them, or repair the image"
                                         : "; whole numbers are needed: repair the image"));
  }
  const std::string wanted = name_of(component_of<T>());
  if (problems.not_whole > 0) {
    bad(path, std::to_string(problems.not_whole) +
                  " voxels are not whole numbers, the first at index " +
                  text(grid.voxel(problems.first_not_whole)) + " (" + text(problems.fraction) +
                  "), but " + wanted +
                  " is needed here; is it a label image, and resampled with the nearest "
                  "neighbour?");
  }
  if (problems.out_of_range > 0) {
    bad(path, std::to_string(problems.out_of_range) + " voxels do not fit " + wanted +
                  " (values from " + text(problems.lowest) + " to " + text(problems.highest) +
                  "), the first at index " + text(grid.voxel(problems.first_out_of_range)) +
                  "; rescale the image");
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

std::string frame_remedy(int frames, bool has_frame_flag) {
  std::string file = "write it to a file of its own";
  if (!has_frame_flag) return file;
  return "choose it with --frame 1 to --frame " + std::to_string(frames) + ", or " + file;
}

FrameRange chosen_frames(const std::string& path, int frames, const Selection& selection) {
  if (selection.all_frames) return {0, frames};
  if (!selection.frame && frames <= 1) return {0, 1};
  const std::string there = std::to_string(frames) + (frames == 1 ? " frame" : " frames");
  if (!selection.frame) {
    bad(path, there + " (4-D or a cine), of which one is needed here; " +
                  frame_remedy(frames, selection.has_frame_flag));
  }
  if (*selection.frame < 1 || *selection.frame > frames) {
    bad(path, "there is no frame " + std::to_string(*selection.frame) +
                  " (they count from 1, and the image has " + there + ")");
  }
  return {*selection.frame - 1, 1};
}

void require_components(const std::string& path, const Header& header) {
  if (header.channels == 1 || header.colour) return;
  bad(path, std::to_string(header.channels) +
                " components per voxel; write one of them to a file of its own");
}

int64_t checked_bytes(const Header& header, const std::string& path, int frames) {
  const Vec3i size = header.grid.size;
  const std::string shape =
      std::to_string(size.x) + "x" + std::to_string(size.y) + "x" + std::to_string(size.z);
  if (size.x <= 0 || size.y <= 0 || size.z <= 0 || header.channels <= 0) {
    bad(path, "the header gives a size of " + shape + " voxels; the file is empty or damaged");
  }
  const __int128 bytes = static_cast<__int128>(size.x) * size.y * size.z * header.channels *
                         bytes_of(header.component);
  if (bytes * frames > header.most_bytes) {
    bad(path, "the header promises " + shape + " voxels of " + name_of(header.component) +
                  (frames > 1 ? " in " + std::to_string(frames) + " frames" : "") +
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

namespace {

void check_limits(const Grid& grid, const std::string& path) {
  for (int axis = 0; axis < 3; ++axis) {
    const double spacing = grid.spacing_mm[axis];
    if (spacing >= kFinestSpacingMm && spacing <= kCoarsestSpacingMm) continue;
    bad(path, "a voxel spacing of " + text(spacing) + " mm along axis " + std::to_string(axis + 1) +
                  " is not to be believed (" + text(kFinestSpacingMm) + " to " +
                  text(kCoarsestSpacingMm) + " mm are); repair the header");
  }
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3d last{grid.size.x - 1.0, grid.size.y - 1.0, grid.size.z - 1.0};
    const Vec3d at = world_from_index(
        grid, {corner & 1 ? last.x : 0, corner & 2 ? last.y : 0, corner & 4 ? last.z : 0});
    for (int axis = 0; axis < 3; ++axis) {
      if (std::abs(at[axis]) <= kFarthestMm) continue;
      bad(path, "the header places a corner of the image at (" + text(at.x) + ", " + text(at.y) +
                    ", " + text(at.z) + ") mm, more than " + text(kFarthestMm) +
                    " mm away, which is not to be believed; repair its origin and spacing");
    }
  }
}

}  // namespace

void check_geometry(const Grid& grid, const std::string& path) {
  bool finite = true, positive = true;
  for (int axis = 0; axis < 3; ++axis) {
    finite = finite && std::isfinite(grid.origin_mm[axis]) && std::isfinite(grid.spacing_mm[axis]);
    positive = positive && grid.spacing_mm[axis] > 0;
    for (int row = 0; row < 3; ++row) finite = finite && std::isfinite(grid.direction.m[row][axis]);
  }
  if (!finite) {
    bad(path, "the geometry in the header is not finite; repair the header");
  }
  if (!positive) {
    bad(path, "a voxel spacing in the header is zero or negative (" + text(grid.spacing_mm.x) +
                  ", " + text(grid.spacing_mm.y) + ", " + text(grid.spacing_mm.z) +
                  " mm); repair the header");
  }
  if (guarded(Guard::kGeometryLimits)) check_limits(grid, path);
  for (int axis = 0; axis < 3; ++axis) {
    // The spacing alone is the size of a voxel; a longer axis would make it a lie.
    const double length = norm(grid.direction.column(axis));
    if (std::abs(length - 1) <= kRoundedAxis) continue;
    bad(path, "axis " + std::to_string(axis + 1) +
                  " of the direction matrix is not a unit vector (its length is " + text(length) +
                  "); repair the header: the spacing says how large voxels are");
  }
  if (!(std::abs(determinant(grid.direction)) > 1e-6)) {
    bad(path,
        "two axes of the direction matrix are parallel, so that positions are not "
        "defined; repair the header");
  }
}

template <class T>
Volume<T> convert(const RawImage& raw, const std::string& path, const ReadOptions& options) {
  const Header& header = raw.header;
  Volume<T> out;
  try {
    out = Volume<T>(header.grid);
  } catch (const std::bad_alloc&) {
    throw MemoryError("'" + path + "': not enough host memory for " + describe(header.grid));
  }
  Problems problems;
  with_type(header.component,
            [&](auto stored) { convert_all<decltype(stored)>(raw, options, out, problems); });
  report<T>(problems, header.grid, path);
  return out;
}

template Volume<float> convert(const RawImage&, const std::string&, const ReadOptions&);
template Volume<int16_t> convert(const RawImage&, const std::string&, const ReadOptions&);
template Volume<int32_t> convert(const RawImage&, const std::string&, const ReadOptions&);
template Volume<uint8_t> convert(const RawImage&, const std::string&, const ReadOptions&);

}  // namespace larch::io
