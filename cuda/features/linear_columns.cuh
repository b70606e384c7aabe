// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/core/buffer.h"
#include "larch/features/linear/linear_source.h"

namespace larch::features::cuda {

constexpr int kColumns = static_cast<int>(learning::kCudaWidth);  ///< of a block of the matrix

/// 32 neighbouring columns of one channel: the lanes of a warp.
struct ColumnGroup {
  int32_t first_tap = 0;  ///< of lane 0; tap k of lane l is element first_tap + 32 k + l
  int32_t n_tap = 0;      ///< of the longest; shorter ones are filled up with weight 0
};

/// Columns of one channel, and the part of its integral volume that they read around a sample.
struct ChannelColumns {
  int32_t channel = 0;
  int32_t first_group = 0, end_group = 0;
  int64_t first_element = 0;  ///< of the part, relative to the sample's element
  Vec3i extent{};
  int64_t row_stride = 0, plane_stride = 0;  ///< of the integral volume
};

/// Columns ordered for the kernels: by channel, then by number of taps, so that a warp's features
/// are alike.
struct WarpColumns : learning::PreparedColumns {
  using PreparedColumns::PreparedColumns;

  Buffer<ColumnGroup> groups;
  Buffer<LinearTap> staged_taps;  ///< offsets in a copy of the part
  Buffer<LinearTap> direct_taps;  ///< offsets in the integral volume
  std::vector<ChannelColumns> channels;
};

/// Where the samples of a call lie, on the device.
struct Places {
  const uint32_t* integral;
  const int64_t* bases;
  int64_t sample_count;
  const uint32_t* index;  ///< null: sample k is number k
  int64_t selected;
  const uint32_t* rows = nullptr;  ///< of a matrix; null: row k is of sample k

  __device__ int64_t sample(int64_t k) const { return index != nullptr ? index[k] : k; }
  __device__ int64_t row(int64_t k) const { return rows != nullptr ? rows[k] : k; }
};
inline Places on_device(const SamplePlaces& places, const Buffer<uint32_t>& index) {
  return {places.integral, places.bases, static_cast<int64_t>(places.count), index.data(),
          static_cast<int64_t>(index.size())};
}

/// The value of a linear feature, of any channels, at the sample number k of a call.
struct LinearValue {
  const LinearFeature* features;
  const LinearTap* taps;
  Places places;

  __device__ int32_t operator()(uint32_t column, int64_t k) const {
    const LinearFeature feature = features[column];
    const int64_t at = places.sample(k);
    return response_of_channels(taps + feature.first_tap, feature.n_tap, [&](uint32_t channel) {
      return places.integral + places.bases[channel * places.sample_count + at];
    });
  }
};

/// Columns in their order: features of several channels, or so few that a thread computes them at
/// its sample straight from the integral volumes.
struct DirectColumns : learning::PreparedColumns {
  DirectColumns(const LinearPrepareJob& job)
      : PreparedColumns(learning::slots_in_order(job.source, job.request), job.source.device()),
        columns(job.columns) {}
  const LinearColumns& columns;
};

}  // namespace larch::features::cuda
