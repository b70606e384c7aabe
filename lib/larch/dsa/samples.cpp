// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/samples.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/dsa/sampling/block_samples.h"

namespace larch::dsa {

std::vector<uint16_t> stored_of_samples(const SampleTable& table) {
  std::vector<std::pair<int32_t, int32_t>> known;  // sample, stored value
  for (int32_t p = std::max(table.least_counted, 0); p <= table.most_counted; ++p) {
    known.emplace_back(table.of_stored[static_cast<size_t>(p)], p);
  }
  if (known.empty()) return {};
  std::sort(known.begin(), known.end());
  std::vector<uint16_t> stored;
  size_t at = 0;
  for (int32_t sample = 0; sample <= kNoSample; ++sample) {
    while (at + 1 < known.size() &&
           known[at + 1].first - sample < std::abs(sample - known[at].first)) {
      ++at;
    }
    stored.push_back(static_cast<uint16_t>(known[at].second));
  }
  return stored;
}

void add_frame(std::span<const uint16_t> stored, const SampleTable& table, FrameSum& sum) {
  sum.samples.resize(stored.size());
  sum.saturated.resize(stored.size(), -1);
  const size_t entries = table.of_stored.size();
  for (size_t i = 0; i < stored.size(); ++i) {
    const int32_t p = stored[i];
    if ((p < table.least_counted || p > table.most_counted) && sum.saturated[i] < 0) {
      sum.saturated[i] = p;
    }
    sum.samples[i] += table.of_stored[std::min<size_t>(stored[i], entries - 1)];
  }
  ++sum.frames;
}

void mean_frame(const FrameSum& sum, std::span<const uint16_t> stored_of,
                std::span<uint16_t> mean) {
  for (size_t i = 0; i < mean.size(); ++i) {
    const int32_t saturated = sum.saturated[i];
    mean[i] = saturated >= 0 ? static_cast<uint16_t>(saturated)
                             : stored_of[(sum.samples[i] + sum.frames / 2) / sum.frames];
  }
}

}  // namespace larch::dsa

namespace larch::dsa::cpu {
namespace {

/// One plane filtered along x and y.
void filter_plane(const FilterJob& job, const uint16_t* plane, uint16_t* out) {
  DisplacedRows rows(job.size);
  for (int32_t y = 0; y < job.size.y; ++y) {
    std::copy_n(rows.filtered(plane, 0, y, job.taps, job.taps), job.size.x,
                out + static_cast<int64_t>(y) * job.size.x);
  }
}

}  // namespace

void to_samples(const SampleJob& job, const Context& context) {
  const int64_t total = job.frame_pixels * job.frames;
  parallel_for_each(context.threads, total, int64_t{1} << 16, [&](int64_t i) {
    const bool is_in = job.region == nullptr || job.region[i % job.frame_pixels] != 0;
    job.samples[i] = sample_of(job, job.stored[i], is_in);
  });
}

void filter_at_zero(const FilterJob& job, const Context& context) {
  const Vec3i& size = job.size;
  const TapTable taps = gain_taps();
  const int64_t plane = static_cast<int64_t>(size.x) * size.y;
  parallel_for_each(context.threads, job.frames * size.z, 1, [&](int64_t p) {
    uint16_t* out = job.filtered + p * plane;
    if (size.z == 1) return filter_plane(job, job.samples + p * plane, out);
    const MaskView volume{job.samples + p / size.z * size.z * plane, size, &taps};
    Vec3i at{0, 0, static_cast<int32_t>(p % size.z)};
    for (at.y = 0; at.y < size.y; ++at.y) {
      for (at.x = 0; at.x < size.x; ++at.x, ++out) *out = volume_sample(volume, at * kUnit);
    }
  });
}

}  // namespace larch::dsa::cpu

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const SampleJob&, const Context&)> kToSamples{
    "dsa::to_samples", cpu::to_samples, LARCH_CUDA_FN(cuda::to_samples)};
constexpr Dispatch<void(const FilterJob&, const Context&)> kFilterAtZero{
    "dsa::filter_at_zero", cpu::filter_at_zero, LARCH_CUDA_FN(cuda::filter_at_zero)};

/// The log domain's value, or the linear one's, of every stored value.
struct Scale {
  std::vector<double> values{};
  std::vector<bool> has_radiation{};
  bool takes_log = false;
  bool is_log = false;
};

/// Holds what each stored value stands for, larger for more X-rays (or as it is, of logarithms),
/// and the largest and the least of them.
struct Meanings {
  std::vector<double> values{};
  double least = 0, most = 0;
};

Meanings meanings_of(const StoredValues& stored, bool holds_log, int32_t least, int32_t most) {
  Meanings out{stored.values};
  if (out.values.empty()) {
    for (int32_t p = least; p <= most; ++p) out.values.push_back(p);
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
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y * size.z;
  const auto total = static_cast<int64_t>(stored.size());
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
  const size_t pixels = frames.front().size();
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
