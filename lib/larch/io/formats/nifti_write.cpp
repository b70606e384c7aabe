// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cmath>
#include <cstring>

#include "larch/core/error.h"
#include "larch/data/pose.h"
#include "larch/files/file.h"
#include "larch/io/formats/formats.h"

namespace larch::io {
namespace {

/// By the order of Component, in colours 128; and what the values are.
constexpr int16_t kTypeCodes[] = {2, 256, 512, 4, 768, 8, 1280, 1024, 16, 64};
constexpr int16_t kRgb = 128, kLabels = 1002, kVectors = 1007;

using HeaderBytes = std::array<char, 352>;  // header and the four bytes that say "no extension"

template <class T>
void put(HeaderBytes& header, int offset, T value) {
  std::memcpy(header.data() + offset, &value, sizeof(T));
}

bool orthonormal(const Mat3& m) {
  for (int i = 0; i < 3; ++i)
    for (int j = 0; j < 3; ++j)
      if (std::abs(dot(m.column(i), m.column(j)) - (i == j ? 1 : 0)) > 1e-5) return false;
  return true;
}

void put_geometry(HeaderBytes& header, const Grid& lps) {
  for (int i = 0; i < 3; ++i) put(header, 80 + 4 * i, static_cast<float>(lps.spacing_mm[i]));
  put(header, 76, 1.0F);
  if (lps.frame == WorldFrame::kUnknown) return;  // spacings alone, as in the input
  const auto code = static_cast<int16_t>(lps.frame);
  Mat3 direction = lps.direction;  // RAS from here on
  for (int column = 0; column < 3; ++column)
    for (int row = 0; row < 2; ++row) direction.m[row][column] *= -1;
  const Vec3d origin{-lps.origin_mm.x, -lps.origin_mm.y, lps.origin_mm.z};

  put<int16_t>(header, 254, code);  // sform_code
  for (int row = 0; row < 3; ++row) {
    for (int column = 0; column < 3; ++column) {
      const double value = direction.m[row][column] * lps.spacing_mm[column];
      put(header, 280 + 16 * row + 4 * column, static_cast<float>(value + 0.0));
    }
    put(header, 280 + 16 * row + 12, static_cast<float>(origin[row] + 0.0));
  }
  if (!orthonormal(direction)) return;
  if (determinant(direction) < 0) {
    put(header, 76, -1.0F);
    for (auto& row : direction.m) row[2] = -row[2];
  }
  put<int16_t>(header, 252, code);  // qform_code
  const Quaternion q = quaternion_of(direction);
  const Vec3d stored{q.x, q.y, q.z};  // w >= 0 is what the other three leave
  for (int i = 0; i < 3; ++i) {
    put(header, 256 + 4 * i, static_cast<float>(stored[i] + 0.0));
    put(header, 268 + 4 * i, static_cast<float>(origin[i] + 0.0));
  }
}

/// The one kind of colours that the format has.
bool is_rgb(const Pixels& pixels) {
  return pixels.colour && pixels.channels == 3 && pixels.component == Component::kUint8;
}

/// Vectors: first the first component of all voxels, then the second, ...
void write_planes(const Pixels& pixels, ZWriter& out) {
  const int width = bytes_of(pixels.component);
  const auto* voxels = static_cast<const char*>(pixels.voxels);
  std::string block;
  for (int c = 0; c < pixels.channels; ++c) {
    for (int64_t i = 0; i < pixels.grid.voxels(); ++i) {
      block.append(voxels + (i * pixels.channels + c) * width, static_cast<size_t>(width));
      if (block.size() < (1 << 20) && i + 1 < pixels.grid.voxels()) continue;
      out.write(block.data(), static_cast<int64_t>(block.size()));
      block.clear();
    }
  }
}

}  // namespace

std::string nifti_header(const std::string& path, const Pixels& pixels) {
  const Grid& grid = pixels.grid;
  const FrameTimes& times = pixels.times;
  const bool vectors = pixels.channels > 1 && !is_rgb(pixels);
  if (vectors && pixels.frames > 1) {
    throw UsageError("cannot write '" + path +
                     "': NIfTI holds vectors of one frame here; write .mha or .nrrd");
  }
  HeaderBytes header{};
  put<int32_t>(header, 0, 348);
  header[38] = 'r';  // "regular", which old readers want
  put<int16_t>(header, 40, vectors ? 5 : pixels.frames > 1 ? 4 : 3);
  for (int i = 0; i < 7; ++i) {
    const int64_t size = i < 3               ? grid.size[i]
                         : i == 3            ? pixels.frames
                         : i == 4 && vectors ? pixels.channels
                                             : 1;
    if (size > INT16_MAX) {
      throw UsageError("cannot write '" + path +
                       "': NIfTI holds at most 32767 voxels per axis and here are " +
                       std::to_string(size) + "; write .nrrd or .mha instead");
    }
    put(header, 42 + 2 * i, static_cast<int16_t>(size));
  }
  const int bits = 8 * bytes_of(pixels.component) * (vectors ? 1 : pixels.channels);
  put<int16_t>(header, 68, vectors ? kVectors : pixels.labels ? kLabels : 0);
  put(header, 70, is_rgb(pixels) ? kRgb : kTypeCodes[static_cast<int>(pixels.component)]);
  put(header, 72, static_cast<int16_t>(bits));
  put(header, 108, 352.0F);
  put(header, 112, 1.0F);
  header[123] = 2;  // mm
  if (times.step > 0) {
    const double ms = times.unit_ms;
    const int unit = ms == 1e3 ? 8 : ms == 1 ? 16 : ms == 1e-3 ? 24 : 0;
    put(header, 123, static_cast<uint8_t>(2 + unit));
    put(header, 92, static_cast<float>(times.step));
    put(header, 136, static_cast<float>(times.first));
  }
  const std::string description =
      pixels.description.empty() ? "Larch" : pixels.description.substr(0, 79);
  std::memcpy(header.data() + 148, description.data(), description.size());
  put_geometry(header, grid);
  std::memcpy(header.data() + 344, "n+1", 4);
  return {header.data(), header.size()};
}

void write_nifti(const std::string& path, const Pixels& pixels) {
  const std::string header = nifti_header(path, pixels);
  ZWriter out(path, file_extension(path) == ".nii.gz", pixels.threads);
  out.write(header.data(), static_cast<int64_t>(header.size()));
  if (pixels.channels > 1 && !is_rgb(pixels)) {
    write_planes(pixels, out);
  } else {
    out.write(pixels.voxels, pixels.bytes());
  }
  out.close();
}

}  // namespace larch::io
