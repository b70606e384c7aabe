// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/core/buffer.h"
#include "larch/learning/boost.h"

namespace larch::learning::cuda {

constexpr int kColumns = 128;  ///< features of a block of the matrix
constexpr uint32_t kNoFeature = UINT32_MAX;

/// A column of the bin matrix: a feature, or filling (feature == kNoFeature).
struct Column {
  uint32_t feature = kNoFeature;  ///< index in the list the plan was made for
  uint32_t n_tap = 0;
  uint32_t cost_units = 0;
  CodeMap codes;
};

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

/// The features of a pool, or of a part of it, ordered for the kernels: by channel, then by number
/// of taps, so that a warp's features are alike. Which column a feature stands in changes nothing
/// in the result: candidates are compared by the feature's index.
struct ColumnPlan {
  Buffer<Column> columns;
  Buffer<ColumnGroup> groups;
  Buffer<features::LinearTap> staged_taps;  ///< offsets in a copy of the part
  Buffer<features::LinearTap> direct_taps;  ///< offsets in the integral volume
  std::vector<ChannelColumns> channels;
  int64_t block_count = 0;  ///< of kColumns columns
};
ColumnPlan make_column_plan(const FeaturePool& pool, std::span<const uint32_t> features,
                            const Device& device);

/// Where the samples of a call lie, on the device.
struct Places {
  const uint32_t* integral;
  const int64_t* bases;
  int64_t sample_count;
  const uint32_t* index;
  int64_t selected;
};

/// Fills the matrix [block of 128 columns][sample][128] with codes.
void fill_codes(const ColumnPlan& plan, const Places& places, uint8_t* matrix,
                const Device& device);

/// A node: the rows [first, first + count) of the matrix, and of everything else that is by row.
struct NodeRows {
  int64_t first = 0, count = 0;
  int rounds = 0;
};

/// Zooms the codes of each column onto 64 bins, node by node, in place; `nodes` on the device,
/// `maps` [node][column].
void zoom_codes(const ColumnPlan& plan, const Buffer<NodeRows>& nodes, int64_t row_count,
                uint8_t* matrix, BinMap* maps);

}  // namespace larch::learning::cuda
