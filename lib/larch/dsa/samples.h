// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/core/host_device.h"
#include "larch/data/vec.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/sampling/interpolation_math.h"

// Working samples: what mask and contrast frames are compared in. Values of the linear or the log
// domain with two fraction bits (fewer where 16 bits would not hold them), as uint16.

namespace larch::dsa {

/// A pixel that does not count: outside of the region of interest or the shutter, or saturated.
constexpr uint16_t kNoSample = 65535;
/// The largest value of a sample.
constexpr uint16_t kMaximumSample = 65534;

/// The sample of each stored value, made once on the host: no device computes a logarithm.
struct SampleTable {
  std::vector<uint16_t> of_stored{};  ///< by stored value - least_stored; kMaximumSample at most
  int32_t least_stored = 0;           ///< below 0 for signed pixels, which are stored as int16
  int32_t least_counted = 0;          ///< stored values below it or above most_counted are
  int32_t most_counted = 0;           ///< saturated and do not count
  int fraction_bits = 2;              ///< of the samples
  int bits = 12;                      ///< of the stored values
  bool is_log = false;  ///< then contrast agent raises the value, otherwise it lowers it
};

/// Holds what stored values mean.
struct StoredValues {
  int bits = 12;  ///< stored
  bool is_signed = false;
  bool is_inverted = false;      ///< contrast agent raises the stored value
  Domain holds = Domain::kAuto;  ///< Pixel Intensity Relationship LIN or LOG; kAuto: not known
  /// Says what each stored value stands for, from the least on, such as a Modality LUT says; empty:
  /// itself. Linear values alone have it.
  std::vector<double> values{};
};

/// L = S (ln P_max - ln max(p - dark, 1)) in the log domain, p itself in the linear one; values
/// that hold logarithms are taken as they are. Domain::kAuto is the log domain for values that are
/// known to be linear, and the stored one otherwise. p is what StoredValues::values says, and
/// `dark` is of that kind. The ends of the stored range, and in the log domain values without
/// radiation, do not count. Throws UsageError for more than 16 bits, and for logarithms that shall
/// be linear.
SampleTable make_sample_table(const StoredValues& stored, const DsaConfig& config);

/// The mean of some frames in samples, rounded once; kNoSample where one of them is.
std::vector<uint16_t> mean_of_samples(std::span<const std::span<const uint16_t>> frames);

/// Frames of one size on one device.
struct SampleFrames {
  Vec3i size{};  ///< of a frame
  int64_t count = 0;
  Buffer<uint16_t> values{};  ///< frame after frame, x fastest
};

/// Samples of stored pixels; kNoSample where they are saturated or, in `region` (of one frame, on
/// the same device; may be empty), 0. Stored values beyond the table are taken as its ends.
SampleFrames to_samples(const Buffer<uint16_t>& stored, const Vec3i& size, const SampleTable& table,
                        const Buffer<uint8_t>& region, const Context& context);

/// Returns the same of every pixel, saturated or not: what is subtracted in the end.
SampleFrames to_values(const Buffer<uint16_t>& stored, const Vec3i& size, const SampleTable& table,
                       const Context& context);

/// Returns what the search compares: frames filtered by the taps of gain_taps() at fraction 0, in
/// the literal method as they are. A sample without all of its neighbours becomes kNoSample; beyond
/// the image there are none. Volumes are filtered along z too, on the CPU.
SampleFrames filter_at_zero(const SampleFrames& frames, const DsaConfig& config,
                            const Context& context);

/// to_samples and to_values; pointers are of one device.
struct SampleJob {
  const uint16_t* stored = nullptr;
  const uint16_t* table = nullptr;  ///< of_stored
  int32_t entries = 0;
  int32_t least_stored = 0, least_counted = 0, most_counted = 0;
  const uint8_t* region = nullptr;  ///< of one frame; may be null
  int64_t frame_pixels = 0;
  int64_t frames = 0;
  uint16_t* samples = nullptr;
};
/// Returns the sample of a stored pixel.
LARCH_HD uint16_t sample_of(const SampleJob& job, uint16_t stored, bool is_in_region) {
  const int32_t value = job.least_stored < 0 ? static_cast<int16_t>(stored) : stored;
  if (!is_in_region || value < job.least_counted || value > job.most_counted) return kNoSample;
  const int32_t entry = value - job.least_stored;
  return job.table[entry < 0 ? 0 : entry < job.entries ? entry : job.entries - 1];
}

/// filter_at_zero; pointers are of one device and differ.
struct FilterJob {
  const uint16_t* samples = nullptr;
  Vec3i size{};
  int64_t frames = 0;
  Taps taps{};  ///< along each axis of more than one pixel: x, then y, then z
  uint16_t* filtered = nullptr;
};

namespace cuda {
void to_samples(const SampleJob& job, const Context& context);
void filter_at_zero(const FilterJob& job, const Context& context);
}  // namespace cuda

// The mean of contrast frames (Contrast Frame Averaging) in the domain of the differences, as the
// mask is the mean of its frames: of linear values the mean of logarithms is another one than the
// logarithm of the mean.

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
