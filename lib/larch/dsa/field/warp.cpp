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

int64_t pixels_of(const Vec3i& size) {
  return static_cast<int64_t>(size.x) * size.y * size.z;
}

}  // namespace

WarpTable warp_taps(Warp warp) {
  WarpTable table;
  for (int i = 0; i < kUnit; ++i) {
    const double f = static_cast<double>(i) / kUnit;
    table.at[i] = warp == Warp::kCubic ? catmull_rom_at(f) : whole_taps({0, 1 - f, f, 0});
  }
  return table;
}

Subtracted subtract(const SubtractImages& images, const BlockGrid& grid, const Vec3i* vectors,
                    const SampleTable& table, const DsaConfig& config, const SubtractWants& wants,
                    const Context& context) {
  if (grid.image != images.size) {
    throw UsageError("subtraction: the vectors belong to images of another size");
  }
  const auto total = static_cast<size_t>(images.frames * pixels_of(images.size));
  const Device& device = context.device;
  const FieldGrid places = make_field_grid(grid, device);
  const WarpTable taps = warp_taps(config.warp);
  const Buffer<WarpTable> taps_on_device(device, std::span<const WarpTable>(&taps, 1));
  Buffer<int32_t> differences(device, total);
  Subtracted out{Buffer<int16_t>(device, total), Buffer<uint8_t>(device, total),
                 Buffer<Vec3f>(device, wants.field ? total : 0),
                 Buffer<SubtractFigures>(device, static_cast<size_t>(images.frames))};
  const bool is_bright = config.vessels == Vessels::kBright;
  SubtractJob job;
  job.images = images;
  std::copy_n(places.axes, 3, job.axes);
  job.vectors = vectors;
  job.border = config.border_field;
  job.taps = taps_on_device.data();
  job.takes_mode = config.normalize == Normalize::kMode;
  job.sign = table.is_log == is_bright ? 1 : -1;
  job.shift = kDifferenceBits + table.fraction_bits;
  job.differences = differences.data();
  job.out = out.difference.data();
  job.validity = out.validity.data();
  job.field_px = wants.field ? out.field_px.data() : nullptr;
  job.figures = out.figures.data();
  kSubtract(device, job, context);
  if (!wants.validity) out.validity = {};
  return out;
}

}  // namespace larch::dsa
