// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/field/warp.h"

#include <algorithm>
#include <cmath>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

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
  if (grid.image != job.size) {
    throw UsageError("subtraction: the vectors belong to images of another size");
  }
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
