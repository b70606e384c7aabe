// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/learning/weak_math.h"

namespace larch::learning {

/// The column of a slot that fills up a block.
constexpr uint32_t kFilling = UINT32_MAX;

/// Where a column stands in the matrix, with all that boosting needs to know of it. Which slot a
/// column stands in changes nothing in the result: candidates are compared by the column.
struct Slot {
  uint32_t column = kFilling;  ///< of the source
  uint32_t complexity = 0;     ///< as Price
  uint32_t cost_units = 0;
  CodeMap codes;
};

/// Columns of a block of the matrix on either kind of device: so many histograms of 64 bins stay in
/// the nearest cache of a processor, or in the shared memory of a multiprocessor.
constexpr size_t kCpuWidth = 16;
constexpr size_t kCudaWidth = 128;
inline size_t block_width(const Device& device) {
  return device.is_cuda() ? kCudaWidth : kCpuWidth;
}

/// Columns as a source fills them on one device. Sources derive from it what else they keep.
struct PreparedColumns {
  PreparedColumns(std::vector<Slot> all, const Device& device)
      : slots(std::move(all)), on_device(device, std::span<const Slot>(slots)) {}
  PreparedColumns(const PreparedColumns&) = delete;
  PreparedColumns& operator=(const PreparedColumns&) = delete;
  virtual ~PreparedColumns() = default;

  size_t blocks() const { return slots.size() / block_width(on_device.device()); }

  const std::vector<Slot> slots;  ///< whole blocks
  const Buffer<Slot> on_device;   ///< the same
};

/// The feature matrix (US 2012/0069003 A1): the codes of columns at samples, later their bins.
struct FeatureMatrix {
  size_t rows = 0, blocks = 0, width = 0;
  Buffer<uint8_t> codes;  ///< [block][row][width]

  /// An uninitialised matrix for all slots of `columns`.
  FeatureMatrix(const PreparedColumns& columns, size_t row_count)
      : rows(row_count),
        blocks(columns.blocks()),
        width(block_width(columns.on_device.device())),
        codes(columns.on_device.device(), blocks * row_count * width) {}

  uint8_t* row(size_t block, size_t sample) {
    return codes.data() + (block * rows + sample) * width;
  }
  const uint8_t* row(size_t block, size_t sample) const {
    return codes.data() + (block * rows + sample) * width;
  }
  /// On the host.
  uint8_t at(size_t slot, size_t sample) const { return row(slot / width, sample)[slot % width]; }
};

}  // namespace larch::learning
