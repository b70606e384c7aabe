// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/vec.h"
#include "larch/dsa/dsa_config.h"

// Working samples: what mask and contrast frames are compared in. Values of the linear or the log
// domain with two fraction bits (fewer where 16 bits would not hold them), as uint16.
namespace larch::dsa {

/// A pixel that does not count: outside of the region of interest or the shutter, or saturated.
constexpr uint16_t kNoSample = 65535;
/// The largest value of a sample.
constexpr uint16_t kMostSample = 65534;

/// The sample of each stored value, made once on the host: no device computes a logarithm.
struct SampleTable {
  std::vector<uint16_t> of_stored{};  ///< by stored value - least_stored
  int32_t least_stored = 0;           ///< below 0 for signed pixels
  int fraction_bits = 2;              ///< of the samples
  int bits = 12;                      ///< of the stored values
  bool is_log = false;  ///< then contrast agent raises the value, otherwise it lowers it
};

/// What stored values mean.
struct StoredValues {
  int bits = 12;  ///< stored
  bool is_signed = false;
  bool is_inverted = false;  ///< MONOCHROME1 of a linear scale: contrast agent raises the value
  bool is_log = false;       ///< Pixel Intensity Relationship LOG
};

/// L = S (ln P_max - ln max(p - dark, 1)) in the log domain, p itself in the linear one. The ends
/// of the range, which are saturated, become kNoSample. Throws UsageError for more than 16 bits.
SampleTable make_sample_table(const StoredValues& stored, const DsaConfig& config);

/// The mean of some frames in samples, rounded once; kNoSample where one of them is.
std::vector<uint16_t> mean_of_samples(std::span<const std::span<const uint16_t>> frames);

/// Frames of one size on one device.
struct SampleFrames {
  Vec3i size{};  ///< of a frame
  int64_t count = 0;
  Buffer<uint16_t> values{};  ///< frame after frame, x fastest
};

/// Samples of stored pixels. `region` (of one frame, on the same device; may be empty): 0 where
/// pixels do not count. Stored values beyond the table are taken as its ends.
SampleFrames to_samples(const Buffer<uint16_t>& stored, const Vec3i& size, const SampleTable& table,
                        const Buffer<uint8_t>& region, const Context& context);

/// What the search compares: frames filtered by the kernel at fraction 0 (SubPixel::kGain and
/// kParabola), or as they are. A sample without all of its neighbours becomes kNoSample; beyond the
/// image there are none, or (Border::kClamp) those of the edge. Volumes are filtered along z too.
SampleFrames filter_at_zero(const SampleFrames& frames, const DsaConfig& config,
                            const Context& context);

}  // namespace larch::dsa
