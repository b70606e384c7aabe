// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/experts/experts_math.h"

// Atlases are registered to an image and vote in integers.
namespace larch::experts {

constexpr int kMaximumAtlases = 120;
constexpr int kPlaceBits = 8;    ///< of a voxel, in places and displacements
constexpr int kMatrixBits = 16;  ///< of the way from an image to an atlas
constexpr int32_t kLargestScale = 64 << kMatrixBits;
constexpr int64_t kLargestOffset = int64_t{1} << 40;  ///< in 2^-24 voxels
constexpr int kRounds = 16;                           ///< of a registration
constexpr int kShifts = 27;                           ///< places around a voxel that are compared
constexpr int32_t kMostWeight = 32767;
constexpr int kFullShare = 255;     ///< of a part in a voxel
constexpr int32_t kWeights = 1424;  ///< entries of the table of weights; the last one is 0

/// Blurs by a Gaussian of about 0.84: five values along an axis.
LARCH_HD int32_t blurred(int32_t a, int32_t b, int32_t c, int32_t d, int32_t e) {
  return (7 * (a + e) + 62 * (b + d) + 118 * c + 128) >> 8;
}
/// Blurs the element i of a volume along an axis.
template <class T>
LARCH_HD int32_t blurred_along(const T* values, int64_t i, const Vec3i& size, int axis) {
  const int32_t at = voxel_of(i, size)[axis];
  const int64_t stride = axis == 0 ? 1 : axis == 1 ? size.x : int64_t{size.x} * size.y;
  const auto value = [&](int32_t step) {
    return int32_t{values[i + stride * (image::clamp_index(at + step, size[axis]) - at)]};
  };
  return blurred(value(-2), value(-1), value(0), value(1), value(2));
}

/// Refers to an atlas on a device, and holds the way to it from the voxels of an image.
struct AtlasView {
  const int16_t* image = nullptr;
  int16_t* smooth = nullptr;  ///< the image, blurred
  int16_t* spare = nullptr;   ///< as large
  const int8_t* part = nullptr;
  Vec3i size{};
  int32_t matrix[3][3] = {};  ///< in 2^-16
  int64_t offset[3] = {};     ///< in 2^-24 voxels of the atlas

  /// Leads to the atlas; both places are in 2^-8 voxels.
  LARCH_HD Vec3i place_of(const Vec3i& at) const {
    Vec3i place;
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t sum = int64_t{matrix[axis][0]} * at.x + int64_t{matrix[axis][1]} * at.y +
                          int64_t{matrix[axis][2]} * at.z + offset[axis];
      const int64_t last = int64_t{size[axis] - 1} << kPlaceBits;
      const int64_t p = (sum + (1 << (kMatrixBits - 1))) >> kMatrixBits;
      place[axis] = static_cast<int32_t>(p < 0 ? 0 : p > last ? last : p);
    }
    return place;
  }
  /// Calls use(index, weight) for the eight voxels around a place; the weights sum to 2^24.
  template <class Use>
  LARCH_HD void for_corners(const Vec3i& place, const Use& use) const {
    constexpr int32_t kFull = 1 << kPlaceBits;
    const Vec3i high{place.x & (kFull - 1), place.y & (kFull - 1), place.z & (kFull - 1)};
    const int64_t step[3] = {high.x > 0 ? 1 : 0, high.y > 0 ? size.x : 0,
                             high.z > 0 ? int64_t{size.x} * size.y : 0};
    const int64_t first =
        (int64_t{place.z >> kPlaceBits} * size.y + (place.y >> kPlaceBits)) * size.x +
        (place.x >> kPlaceBits);
    for (int c = 0; c < 8; ++c) {
      const int x = c & 1, y = c >> 1 & 1, z = c >> 2;
      use(first + x * step[0] + y * step[1] + z * step[2], (x != 0 ? high.x : kFull - high.x) *
                                                               (y != 0 ? high.y : kFull - high.y) *
                                                               (z != 0 ? high.z : kFull - high.z));
    }
  }
  LARCH_HD int32_t sample(const int16_t* values, const Vec3i& place) const {
    int64_t sum = 1 << 23;
    for_corners(place, [&](int64_t i, int32_t weight) { sum += int64_t{weight} * values[i]; });
    return static_cast<int32_t>(sum >> 24);
  }
};

/// Holds the fusion of atlases in a piece of an image whose outermost voxels are not asked for.
struct FuseJob {
  Vec3i size{};                      ///< of the piece
  Vec3i nodes{};                     ///< of displacements, on every second voxel
  int32_t atlases = 0, parts = 0;    ///< their numbers
  int64_t memory_bytes = 0;          ///< that may be taken beside what stands here
  const AtlasView* views = nullptr;  ///< of the atlases, then of the piece
  const int16_t* image = nullptr;    ///< the piece
  const int16_t* smooth = nullptr;   ///< the piece, blurred
  const uint8_t* band = nullptr;     ///< 2: asked for, 1: beside such a voxel
  const uint16_t* table = nullptr;   ///< [kWeights]
  int32_t* moved = nullptr;          ///< [atlas][axis][node], in 2^-8 voxels
  int32_t* spare = nullptr;          ///< as large
  int16_t* warped = nullptr;         ///< [atlas][voxel]
  uint8_t* share = nullptr;          ///< [atlas][part][voxel], of kFullShare
  int32_t* least = nullptr;          ///< [voxel]: the least difference of patches
  uint64_t* votes = nullptr;         ///< [1 + parts][voxel]; the first is the sum of weights

  LARCH_HD int64_t voxels() const { return int64_t{size.x} * size.y * size.z; }
  LARCH_HD int64_t node_count() const { return int64_t{nodes.x} * nodes.y * nodes.z; }
  LARCH_HD int64_t step(int x, int y, int z) const {
    return (int64_t{z} * size.y + y) * size.x + x;
  }
  /// Returns the way to one of 3^3 neighbours.
  LARCH_HD int64_t shift(int number) const {
    return step(number % 3 - 1, number / 3 % 3 - 1, number / 9 - 1);
  }

  /// Moves a node of an atlas by the force of demons that is bounded to half a voxel.
  LARCH_HD void move(int a, int64_t node) const {
    const Vec3i at = 2 * voxel_of(node, nodes);
    const int64_t i = step(at.x, at.y, at.z);
    int32_t gradient[3];
    int64_t squares = 0;
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t stride = step(axis == 0, axis == 1, axis == 2);
      gradient[axis] = smooth[at[axis] + 1 < size[axis] ? i + stride : i] -
                       smooth[at[axis] > 0 ? i - stride : i];
      squares += gradient[axis] * gradient[axis];
    }
    int32_t* u = moved + int64_t{a} * 3 * node_count() + node;
    const int64_t n = node_count();
    const Vec3i place{(at.x << kPlaceBits) + u[0], (at.y << kPlaceBits) + u[n],
                      (at.z << kPlaceBits) + u[2 * n]};
    const AtlasView& view = views[a];
    const int64_t e = smooth[i] - view.sample(view.smooth, view.place_of(place));
    const int64_t quotient = e * (1 << 24) / (squares + 4 * (e * e + 401));
    for (int axis = 0; axis < 3; ++axis) {
      u[axis * n] += static_cast<int32_t>((quotient * gradient[axis] + (1 << 14)) >> 15);
    }
  }

  /// Brings a voxel of an atlas to the piece.
  LARCH_HD void warp(int a, int64_t i) const {
    const Vec3i at = voxel_of(i, size);
    Vec3i place;
    for (int axis = 0; axis < 3; ++axis) {
      const int32_t* u = moved + (int64_t{a} * 3 + axis) * node_count();
      int32_t sum = 0;
      for (int corner = 0; corner < 8; ++corner) {
        const Vec3i node{(at.x + (corner & 1)) / 2, (at.y + (corner >> 1 & 1)) / 2,
                         (at.z + (corner >> 2)) / 2};
        sum += u[(int64_t{node.z} * nodes.y + node.y) * nodes.x + node.x];
      }
      place[axis] = (at[axis] << kPlaceBits) + ((sum + 4) >> 3);
    }
    const AtlasView& view = views[a];
    const Vec3i there = view.place_of(place);
    warped[a * voxels() + i] = static_cast<int16_t>(view.sample(view.image, there));
    int32_t of_part[kMaximumParts] = {};
    view.for_corners(there, [&](int64_t k, int32_t weight) {
      if (view.part[k] >= 0) of_part[view.part[k]] += weight;
    });
    for (int k = 0; k < parts; ++k) {
      share[(int64_t{a} * parts + k) * voxels() + i] =
          static_cast<uint8_t>((int64_t{of_part[k]} * kFullShare + (1 << 23)) >> 24);
    }
  }

  LARCH_HD int32_t squared_difference(int a, int64_t i, int64_t shift) const {
    const int32_t d = image[i] - warped[a * voxels() + i + shift];
    return d * d;
  }
  /// Returns 32767 exp(-16 (d - m) / (m + 1) - 0.3 |o|^2), m the least difference, o the shift.
  LARCH_HD uint16_t weight(int64_t i, int32_t difference, int number) const {
    const int x = number % 3 - 1, y = number / 3 % 3 - 1, z = number / 9 - 1;
    const int square = x * x + y * y + z * z;
    const double ratio = double(difference - least[i]) / (double(least[i]) + 1);
    const double k = 2048 * ratio + 38 * square;
    return table[k < kWeights ? static_cast<int32_t>(k) : kWeights - 1];
  }
};

}  // namespace larch::experts
