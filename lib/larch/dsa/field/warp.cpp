// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/warp.h"

#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/field/warp_math.h"

namespace larch::dsa::cpu {
namespace {

/// Differences, validity and field of a row, counted over all frames.
void subtract_row(const SubtractJob& job, int64_t row) {
  const Vec3i& size = job.size;
  const int64_t rows = static_cast<int64_t>(size.y) * size.z;
  const int64_t frame = row / rows;
  Vec3i at{0, static_cast<int32_t>(row % size.y), static_cast<int32_t>(row % rows / size.y)};
  std::vector<Vec3i> field;
  find_field_in_box(view_of(job, frame), at, {size.x, 1, 1}, field);
  for (at.x = 0; at.x < size.x; ++at.x) {
    const Vec3i& d = field[static_cast<size_t>(at.x)];
    const DifferenceAt difference = difference_at(job, frame, at, d);
    const int64_t i = row * size.x + at.x;
    job.differences[i] = difference.value;
    job.validity[i] = static_cast<uint8_t>(difference.validity);
    if (job.field_px != nullptr) job.field_px[i] = field_in_pixels(d);
  }
}

/// Returns what is taken from the differences of a frame.
int32_t mode_of_frame(const int32_t* differences, const uint8_t* validity, int64_t pixels,
                      std::vector<uint32_t>& counts) {
  counts.assign(kModeBins, 0);
  for (int64_t i = 0; i < pixels; ++i) {
    if (validity[i] == 0) ++counts[static_cast<size_t>(mode_bin(differences[i]))];
  }
  return mode_of(counts.data());
}

void finish_frame(const SubtractJob& job, int64_t frame, std::vector<uint32_t>& counts) {
  const Vec3i& size = job.size;
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y * size.z;
  const int32_t* differences = job.differences + frame * pixels;
  const uint8_t* validity = job.validity + frame * pixels;
  SubtractFigures figures;
  if (job.takes_mode) figures.mode = mode_of_frame(differences, validity, pixels, counts);
  for (int64_t i = 0; i < pixels; ++i) {
    const GreyValue grey = grey_value(differences[i], figures.mode, job.sign, job.shift);
    job.out[frame * pixels + i] = grey.value;
    figures.clipped += grey.is_clipped ? 1 : 0;
    ++figures.pixels[validity[i]];
  }
  job.figures[frame] = figures;
}

}  // namespace

void subtract(const SubtractJob& job, const Context& context) {
  const int64_t rows = job.frames * job.size.y * job.size.z;
  parallel_for_each(context.threads, rows, 16, [&](int64_t row) { subtract_row(job, row); });
  parallel_for(context.threads, job.frames, 1, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> counts;
    for (int64_t frame = begin; frame < end; ++frame) finish_frame(job, frame, counts);
  });
}

}  // namespace larch::dsa::cpu

namespace larch::dsa {
namespace {

constexpr Dispatch<void(const SubtractJob&, const Context&)> kSubtract{
    "dsa::subtract", cpu::subtract, LARCH_CUDA_FN(cuda::subtract)};

/// Whole weights of the exact ones; what rounding leaves goes to the largest.
WarpTaps whole_taps(const double (&exact)[4]) {
  WarpTaps taps;
  int32_t sum = 0, largest = 0;
  for (int i = 0; i < 4; ++i) {
    taps.w[i] = static_cast<int16_t>(std::floor(std::ldexp(exact[i], kWarpBits) + 0.5));
    sum += taps.w[i];
    if (taps.w[i] > taps.w[largest]) largest = i;
  }
  taps.w[largest] = static_cast<int16_t>(taps.w[largest] + (1 << kWarpBits) - sum);
  return taps;
}

WarpTaps catmull_rom_at(double f) {
  const double g = 1 - f;
  return whole_taps({-0.5 * f * g * g, 1 + f * f * (1.5 * f - 2.5), 1 + g * g * (1.5 * g - 2.5),
                     -0.5 * f * f * g});
}

}  // namespace

WarpTable warp_taps(bool literal) {
  WarpTable table;
  for (int i = 0; i < kUnit; ++i) {
    const double f = static_cast<double>(i) / kUnit;
    table.at[i] = literal ? whole_taps({0, 1 - f, f, 0}) : catmull_rom_at(f);
  }
  return table;
}

void subtract(SubtractJob job, const BlockGrid& grid, const SampleTable& table,
              const DsaConfig& config, const Context& context) {
  const auto total = static_cast<size_t>(job.frames * job.size.x * job.size.y * job.size.z);
  const Device& device = context.device;
  const FieldGrid places = make_field_grid(grid, device);
  const WarpTable taps = warp_taps(config.literal);
  const Buffer<WarpTable> taps_on_device(device, std::span<const WarpTable>(&taps, 1));
  Buffer<int32_t> differences(device, total);
  Buffer<uint8_t> validity(device, job.validity == nullptr ? total : 0);
  Buffer<SubtractFigures> figures(
      device, job.figures == nullptr ? static_cast<size_t>(job.frames) : size_t{0});
  const bool is_bright = config.vessels == Vessels::kBright;
  std::copy_n(places.axes, 3, job.axes);
  job.taps = taps_on_device.data();
  job.takes_mode = config.normalize == Normalize::kMode;
  job.sign = table.is_log == is_bright ? 1 : -1;
  job.shift = kDifferenceBits + table.fraction_bits;
  job.differences = differences.data();
  if (job.validity == nullptr) job.validity = validity.data();
  if (job.figures == nullptr) job.figures = figures.data();
  kSubtract(device, job, context);
}

}  // namespace larch::dsa
