// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/dsa/samples.h"

// The mean of contrast frames (Contrast Frame Averaging) in the domain of the differences, as the
// mask is the mean of its frames: of linear values the mean of logarithms is another one than the
// logarithm of the mean.
namespace larch::dsa {

/// For each sample the stored value that counts and whose sample is nearest, the least of several;
/// empty if none counts. `table`: of stored values from 0 on.
std::vector<uint16_t> stored_of_samples(const SampleTable& table);

/// Frames that are added up one after the other.
struct FrameSum {
  std::vector<uint32_t> samples{};
  std::vector<int32_t> saturated{};  ///< the first stored value that does not count; -1: all do
  uint32_t frames = 0;
};
void add_frame(std::span<const uint16_t> stored, const SampleTable& table, FrameSum& sum);

/// The stored values whose samples are nearest to the mean; where a frame does not count, the mean
/// does not either. `stored_of`: stored_of_samples of the same table.
void mean_frame(const FrameSum& sum, std::span<const uint16_t> stored_of, std::span<uint16_t> mean);

}  // namespace larch::dsa
