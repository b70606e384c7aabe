// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/data/vec.h"
#include "larch/image/channel_math.h"

// The features of experts, the nodes in the frame of a structure, and what experts say of a voxel.
namespace larch::experts {

/// A constant, 5^3 intensities, and gradients and Laplacians in 3^3.
constexpr int kFeatures = 1 + 125 + 27 + 27;
constexpr int32_t kConstant = 256;        ///< the first feature
constexpr int32_t kLimit = 2047;          ///< of the absolute value of a feature
constexpr int32_t kFullIntensity = 1023;  ///< the high end of the range of intensities
constexpr int kMaximumParts = 4;          ///< structures that experts tell apart
constexpr int kBetaBits = 26;             ///< a coefficient counts 2^-26
constexpr int32_t kLargestBeta = 1 << 27;
constexpr int32_t kOne = 1 << 16;  ///< probability 1, and the sum of the weights of nodes
constexpr int kFractionBits = 10;  ///< of the place between two nodes

/// The nodes along the axes of a frame, in units of the spread of the structure along each.
LARCH_HD int32_t nodes_along(int axis) {
  return axis == 0 ? 25 : axis == 1 ? 15 : 10;
}
constexpr double kNodeStep[3] = {0.25, 0.5, 1};
constexpr int32_t kNodeCount = 25 * 15 * 10;

/// Holds the eight nodes around a place, with their weights.
struct Corners {
  int32_t node = 0;  ///< the lowest of them
  int32_t fraction[3] = {};

  LARCH_HD int32_t node_of(int corner) const {
    return node + (corner & 1) +
           nodes_along(0) * (((corner >> 1) & 1) + nodes_along(1) * (corner >> 2));
  }
  LARCH_HD int32_t weight_of(int corner) const {
    int32_t product = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const bool is_high = (corner >> axis & 1) != 0;
      product *= is_high ? fraction[axis] : (1 << kFractionBits) - fraction[axis];
    }
    return product >> (3 * kFractionBits - 16);
  }
};

/// Leads from the index of a voxel to its place among the nodes: matrix * index + offset.
struct Placement {
  Mat3 matrix{};
  Vec3d offset{};

  /// Beyond the outermost nodes those count.
  LARCH_HD Corners corners(const Vec3i& at) const {
    const Vec3d place = matrix * Vec3d{double(at.x), double(at.y), double(at.z)} + offset;
    Corners corners;
    int32_t stride = 1;
    for (int axis = 0; axis < 3; ++axis) {
      const double last = nodes_along(axis) - 1;
      const double t = place[axis] > 0 ? place[axis] < last ? place[axis] : last : 0;
      int32_t low = static_cast<int32_t>(t);
      if (low > nodes_along(axis) - 2) low = nodes_along(axis) - 2;
      corners.fraction[axis] = static_cast<int32_t>(floor((t - low) * (1 << kFractionBits) + 0.5));
      corners.node += stride * low;
      stride *= nodes_along(axis);
    }
    return corners;
  }
};

/// Refers to a piece of an image with its filters, on a device.
struct Channels {
  const int16_t* image = nullptr;
  const int32_t* filtered = nullptr;  ///< gradients, then Laplacians
  Vec3i size{};

  LARCH_HD int64_t voxels() const { return int64_t{size.x} * size.y * size.z; }
  static LARCH_HD int32_t limited(int32_t value) {
    return value > kLimit ? kLimit : value < -kLimit ? -kLimit : value;
  }
  /// Calls use(number, value) with each feature of a voxel. Beyond the border the nearest voxel
  /// counts.
  template <class Use>
  LARCH_HD void for_features(const Vec3i& at, const Use& use) const {
    use(0, kConstant);
    int32_t number = 1;
    for (int z = -2; z <= 2; ++z) {
      for (int y = -2; y <= 2; ++y) {
        const int64_t row = this->row(at.y + y, at.z + z);
        for (int x = -2; x <= 2; ++x) {
          const int32_t value = image[row + image::clamp_index(at.x + x, size.x)];
          use(number++, limited(value - (kFullIntensity + 1) / 2));
        }
      }
    }
    for (int z = -1; z <= 1; ++z) {
      for (int y = -1; y <= 1; ++y) {
        const int64_t row = this->row(at.y + y, at.z + z);
        for (int x = -1; x <= 1; ++x) {
          const int64_t i = row + image::clamp_index(at.x + x, size.x);
          use(number, limited(filtered[i] * 5 / 4));
          use(number++ + 27, limited(filtered[i + voxels()] * 3 / 2));
        }
      }
    }
  }

 private:
  LARCH_HD int64_t row(int y, int z) const {
    return (int64_t{image::clamp_index(z, size.z)} * size.y + image::clamp_index(y, size.y)) *
           size.x;
  }
};

/// On the CPU a coefficient is high * 2^13 + low, -2^12 <= low < 2^12, so that products with
/// features are those of 16 bits, and the sum of kExact of them fits 32. Rows are filled up by 0.
constexpr int kLowBits = 13, kExact = 64;
constexpr int kPadded = (kFeatures + kExact - 1) / kExact * kExact;
static_assert(int64_t{kExact} * kLimit * (kLargestBeta >> kLowBits) <= INT32_MAX);

/// Computes what experts say of the voxels of a band, before it is smoothed.
struct ReadJob {
  Channels channels{};
  Placement placement{};
  Vec3i origin{};                    ///< of the channels, in the voxels of the placement
  const uint8_t* band = nullptr;     ///< 0 where nothing is computed
  const int32_t* entries = nullptr;  ///< by node: its place in `beta`
  const int32_t* beta = nullptr;     ///< [entry][part][feature], on a GPU
  const int16_t* halves = nullptr;   ///< [entry][part][half][kPadded], on the CPU
  int32_t parts = 0;
  int32_t* out = nullptr;  ///< [part][voxel], of kOne; as it was outside of the band

  LARCH_HD void store(int64_t i) const {
    store(i, [&](const int64_t(&rows)[8], int64_t(&says)[8]) {
      channels.for_features(voxel_of(i, channels.size), [&](int32_t k, int32_t value) {
        for (int c = 0; c < 8; ++c) says[c] += int64_t{beta[rows[c] * kFeatures + k]} * value;
      });
    });
  }
  /// `ask(rows, says)` adds what these rows of coefficients say of the voxel.
  template <class Ask>
  LARCH_HD void store(int64_t i, const Ask& ask) const {
    if (band[i] == 0) return;
    const Corners corners = placement.corners(voxel_of(i, channels.size) + origin);
    int32_t p[kMaximumParts] = {};
    int32_t sum = 0;
    for (int part = 0; part < parts; ++part) sum += p[part] = probability(corners, part, ask);
    for (int part = 0; part < parts; ++part) {
      const int64_t scaled = sum > kOne ? int64_t{p[part]} * kOne / sum : p[part];
      out[part * channels.voxels() + i] = static_cast<int32_t>(scaled);
    }
  }

 private:
  /// Returns the sum over nodes of w beta f, between 0 and 1.
  template <class Ask>
  LARCH_HD int32_t probability(const Corners& corners, int part, const Ask& ask) const {
    constexpr int kKept = 4;  // bits that are dropped before the weights, so that all fits
    int64_t sum = 0;
    int64_t rows[8], says[8] = {};
    for (int c = 0; c < 8; ++c) rows[c] = int64_t{entries[corners.node_of(c)]} * parts + part;
    ask(rows, says);
    for (int c = 0; c < 8; ++c) sum += (says[c] >> kKept) * corners.weight_of(c);
    sum >>= kBetaBits - kKept;
    return static_cast<int32_t>(sum < 0 ? 0 : sum > kOne ? kOne : sum);
  }
};

/// Smooths by a Gaussian of 0.45 voxels: 0.072, 0.855, 0.072 along each axis.
struct SmoothJob {
  Vec3i size{};
  const int32_t* in = nullptr;  ///< [part][voxel]
  float* out = nullptr;         ///< the same

  LARCH_HD int64_t voxels() const { return int64_t{size.x} * size.y * size.z; }
  LARCH_HD void store(int64_t i, int part) const {
    constexpr int64_t kWeight[3] = {74, 876, 74};  // of 1024
    const Vec3i at = voxel_of(i, size);
    int64_t sum = 0;
    for (int z = 0; z < 3; ++z) {
      const int64_t plane = int64_t{image::clamp_index(at.z + z - 1, size.z)} * size.y;
      for (int y = 0; y < 3; ++y) {
        const int64_t row = (plane + image::clamp_index(at.y + y - 1, size.y)) * size.x;
        for (int x = 0; x < 3; ++x) {
          const int64_t j = part * voxels() + row + image::clamp_index(at.x + x - 1, size.x);
          sum += kWeight[x] * kWeight[y] * kWeight[z] * in[j];
        }
      }
    }
    out[part * voxels() + i] =
        static_cast<float>(static_cast<double>(sum) / (double(kOne) * (int64_t{1} << 30)));
  }
};

/// Refers to a voxel from which experts learn.
struct Sample {
  uint32_t of_slab = 0;
  int32_t voxel = 0;  ///< linear index in the channels of the slab
  int32_t part = 0;   ///< -1: none
};
/// Says how much a sample counts at a node.
struct Share {
  uint32_t sample = 0;
  int32_t weight = 0;
};

/// Returns how many sums a bin of samples has: w f f' (the lower triangle, row by row), then w f of
/// each part.
constexpr int kTriangle = kFeatures * (kFeatures + 1) / 2;
LARCH_HD int sums_of(int parts) {
  return kTriangle + parts * kFeatures;
}
/// So many samples may be added in doubles without rounding: each term is less than 2^38.
constexpr int64_t kExactSamples = 1 << 14;

}  // namespace larch::experts
