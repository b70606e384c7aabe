// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/samples.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const SampleJob&, const Context&)> kToSamples{
    "dsa::to_samples", cpu::to_samples, LARCH_CUDA_FN(cuda::to_samples)};
constexpr Dispatch<void(const FilterJob&, const Context&)> kFilterAtZero{
    "dsa::filter_at_zero", cpu::filter_at_zero, LARCH_CUDA_FN(cuda::filter_at_zero)};

int64_t pixels_of(const Vec3i& size) {
  return static_cast<int64_t>(size.x) * size.y * size.z;
}

/// The log domain's value, or the linear one's, of every stored value.
struct Scale {
  std::vector<double> values{};
  std::vector<bool> has_radiation{};
  bool takes_log = false;
  bool is_log = false;
};

/// What each stored value stands for, larger for more X-rays (or as it is, of logarithms), and
/// the largest and the least of them.
struct Meanings {
  std::vector<double> values{};
  double least = 0, most = 0;
};

Meanings meanings_of(const StoredValues& stored, bool holds_log, int32_t least, int32_t most) {
  Meanings out{stored.values};
  if (out.values.empty()) {
    for (int32_t p = least; p <= most; ++p) out.values.push_back(p);
  }
  if (out.values.size() != static_cast<size_t>(most - least) + 1) {
    throw UsageError("samples: a value is needed for each stored one");
  }
  const auto [low, high] = std::minmax_element(out.values.begin(), out.values.end());
  out.least = *low;
  out.most = *high;
  // Linear values that contrast agent raises, and logarithms that it lowers, are turned over.
  const bool falls = out.values.back() < out.values.front();
  const bool is_inverted = stored.is_inverted != falls;
  if (holds_log ? !is_inverted : is_inverted) {
    for (double& value : out.values) value = out.most - value + out.least;
  }
  return out;
}

Scale scale_of(const StoredValues& stored, const DsaConfig& config, int32_t least, int32_t most) {
  const Domain holds = stored.holds == Domain::kAuto ? config.stored : stored.holds;
  const bool holds_log = holds == Domain::kLog;
  if (holds_log && config.domain == Domain::kLinear) {
    throw UsageError(
        "the frames hold logarithms; leave out --domain, or say --stored lin if they "
        "do not");
  }
  const bool takes_log =
      !holds_log && (config.domain == Domain::kLog ||
                     (config.domain == Domain::kAuto && holds == Domain::kLinear));
  const Meanings meanings = meanings_of(stored, holds_log, least, most);
  Scale scale;
  scale.takes_log = takes_log;
  scale.is_log = holds_log || takes_log;
  const double top = std::log(std::max(meanings.most, 1.0));
  for (const double value : meanings.values) {
    const double above = std::max(value - config.dark, 1.0);
    scale.values.push_back(takes_log ? config.log_scale * (top - std::log(above))
                                     : value - meanings.least);
    scale.has_radiation.push_back(value - std::floor(config.dark) >= 1);
  }
  return scale;
}

SampleFrames samples_of(const Buffer<uint16_t>& stored, const Vec3i& size, SampleJob job,
                        const SampleTable& table, const Context& context) {
  const int64_t pixels = pixels_of(size);
  const auto total = static_cast<int64_t>(stored.size());
  if (pixels < 1 || total % pixels != 0) {
    throw UsageError("samples: the number of stored pixels is no multiple of a frame's");
  }
  const Buffer<uint16_t> values(context.device, table.of_stored);
  SampleFrames frames{size, total / pixels, Buffer<uint16_t>(context.device, stored.size())};
  job.stored = stored.data();
  job.table = values.data();
  job.entries = static_cast<int32_t>(values.size());
  job.least_stored = table.least_stored;
  job.frame_pixels = pixels;
  job.frames = frames.count;
  job.samples = frames.values.data();
  kToSamples(context.device, job, context);
  return frames;
}

}  // namespace

SampleTable make_sample_table(const StoredValues& stored, const DsaConfig& config) {
  if (stored.bits < 1 || stored.bits > 16) {
    throw UsageError("frames of " + std::to_string(stored.bits) +
                     " bits per pixel: 1 to 16 are supported");
  }
  SampleTable table;
  table.bits = stored.bits;
  table.least_stored = stored.is_signed ? -(1 << (stored.bits - 1)) : 0;
  const int32_t most = table.least_stored + (1 << stored.bits) - 1;
  const Scale scale = scale_of(stored, config, table.least_stored, most);
  table.is_log = scale.is_log;
  table.least_counted = table.least_stored + 1;
  table.most_counted = most - 1;
  if (scale.takes_log) {  // without radiation there is nothing to compare
    const auto lies_dark = [&](int32_t p) {
      return !scale.has_radiation[static_cast<size_t>(p - table.least_stored)];
    };
    while (table.least_counted <= most && lies_dark(table.least_counted)) ++table.least_counted;
    while (table.most_counted >= table.least_counted && lies_dark(table.most_counted)) {
      --table.most_counted;
    }
  }
  const double top = *std::max_element(scale.values.begin(), scale.values.end());
  while (table.fraction_bits > 0 && std::ldexp(top, table.fraction_bits) > kMaximumSample) {
    --table.fraction_bits;
  }
  for (const double value : scale.values) {
    const double sample = std::floor(std::ldexp(value, table.fraction_bits) + 0.5);
    table.of_stored.push_back(
        static_cast<uint16_t>(std::clamp(sample, 0.0, static_cast<double>(kMaximumSample))));
  }
  return table;
}

std::vector<uint16_t> mean_of_samples(std::span<const std::span<const uint16_t>> frames) {
  if (frames.empty()) throw UsageError("a mask needs one frame at least");
  const size_t pixels = frames.front().size();
  for (const auto& frame : frames) {
    if (frame.size() != pixels) throw UsageError("the frames of a mask differ in size");
  }
  std::vector<uint16_t> mean(pixels);
  const auto n = static_cast<uint64_t>(frames.size());
  for (size_t i = 0; i < pixels; ++i) {
    uint64_t sum = 0;
    bool counts = true;
    for (const auto& frame : frames) {
      counts = counts && frame[i] != kNoSample;
      sum += frame[i];
    }
    mean[i] = counts ? static_cast<uint16_t>((sum + n / 2) / n) : kNoSample;
  }
  return mean;
}

SampleFrames to_samples(const Buffer<uint16_t>& stored, const Vec3i& size, const SampleTable& table,
                        const Buffer<uint8_t>& region, const Context& context) {
  if (!region.empty() && static_cast<int64_t>(region.size()) != pixels_of(size)) {
    throw UsageError("the region of interest and the frames differ in size");
  }
  SampleJob job;
  job.least_counted = table.least_counted;
  job.most_counted = table.most_counted;
  job.region = region.data();
  return samples_of(stored, size, job, table, context);
}

SampleFrames to_values(const Buffer<uint16_t>& stored, const Vec3i& size, const SampleTable& table,
                       const Context& context) {
  SampleJob job;
  job.least_counted = INT32_MIN;
  job.most_counted = INT32_MAX;
  return samples_of(stored, size, job, table, context);
}

SampleFrames filter_at_zero(const SampleFrames& frames, const DsaConfig& config,
                            const Context& context) {
  SampleFrames out{frames.size, frames.count,
                   Buffer<uint16_t>(context.device, frames.values.size())};
  if (config.literal) {
    memory::copy(context.device, out.values.data(), context.device, frames.values.data(),
                 frames.values.size() * sizeof(uint16_t));
    return out;
  }
  FilterJob job;
  job.samples = frames.values.data();
  job.size = frames.size;
  job.frames = frames.count;
  job.taps = gain_taps().at[kUnit / 2];
  job.filtered = out.values.data();
  kFilterAtZero(context.device, job, context);
  return out;
}

}  // namespace larch::dsa
