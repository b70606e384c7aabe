// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/image_agreement.h"

#include <algorithm>
#include <array>
#include <cmath>

#include "larch/core/parallel.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/field/field_row.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/registration.h"
#include "larch/dsa/sampling/volume_sampling_math.h"

namespace larch::dsa {
namespace {

constexpr int32_t kMostDifference = 65535;

/// Where the mask lies in one of the images: a grid on the host and the vectors of all frames.
struct Placement {
  FieldGrid places{};
  BorderField border = BorderField::kClamp;
  std::span<const Vec3i> all{};
  int32_t blocks = 1;
  std::vector<AxisWeights> columns{};

  FieldRow of_frame(size_t frame) const {
    const Vec3i* vectors = all.empty() ? nullptr : all.data() + frame * static_cast<size_t>(blocks);
    return {places.view(vectors, border), columns};
  }
};

Placement placement_of(const BlockGrid& grid, BorderField border, std::span<const Vec3i> all) {
  Placement out{make_field_grid(grid, Device::cpu()), border, all, grid.blocks(), {}};
  for (int32_t x = 0; x < grid.image.x; ++x) {
    out.columns.push_back(axis_weights(out.places.axes[0], border, x));
  }
  return out;
}

/// The histogram of one image's differences, bins on both sides of 0.
class Differences {
 public:
  explicit Differences(int32_t shift)
      : shift_(shift), counts_((2 * kMostDifference >> shift) + 3, 0) {}
  void add(int32_t difference) {
    ++total_;
    ++counts_[static_cast<size_t>(bin_number(difference + kMostDifference, 0, shift_))];
  }
  void write_to(ImageScores& out) const {
    out.ehd = out.entropy = std::nan("");
    if (total_ == 0) return;
    double squares = 0, logs = 0;
    for (const uint32_t h : counts_) {
      squares += static_cast<double>(h) * h;
      if (h > 1) logs += h * std::log(static_cast<double>(h));
    }
    const auto n = static_cast<double>(total_);
    out.ehd = squares / (n * n);
    out.entropy = std::log(n) - logs / n;
  }

 private:
  int32_t shift_;
  int64_t total_ = 0;
  std::vector<uint32_t> counts_;
};

/// Compares one frame with the mask in its three places, at the pixels that all of them have.
void agree(const ScoreBasis& basis, const uint16_t* contrast, int32_t shift,
           std::array<FieldRow, 3>& masks, FrameScores& out) {
  const Vec3i& size = basis.mask.size;
  const TapTable taps = gain_taps();
  const MaskView view{basis.mask.samples.data(), size, &taps, false, false};
  std::array<Differences, 3> differences{Differences(shift), Differences(shift),
                                         Differences(shift)};
  for (int64_t row = 0; row < static_cast<int64_t>(size.y) * size.z; ++row) {
    const auto y = static_cast<int32_t>(row % size.y), z = static_cast<int32_t>(row / size.y);
    for (FieldRow& mask : masks) mask.move_to(y, z);
    for (int32_t x = 0; x < size.x; ++x) {
      const uint16_t here = contrast[row * size.x + x];
      if (here == kNoSample) continue;
      std::array<uint16_t, 3> samples{};
      bool has_all = true;
      for (size_t i = 0; i < 3 && has_all; ++i) {
        const Vec3i at = Vec3i{x, y, z} * kUnit + masks[i].units_at(x);
        samples[i] = size.z > 1 ? volume_sample(view, at) : mask_sample(view, at.x, at.y);
        has_all = samples[i] != kNoSample;
      }
      for (size_t i = 0; i < 3 && has_all; ++i) differences[i].add(here - samples[i]);
    }
  }
  differences[0].write_to(out.uncorrected);
  differences[1].write_to(out.shifted);
  differences[2].write_to(out.corrected);
}

}  // namespace

void add_agreement(const ScoreBasis& basis, std::span<const uint16_t> stored,
                   const SubtractedFrames& frames, const DsaConfig& config, const Context& context,
                   std::vector<FrameScores>& scores) {
  Context host = context;
  host.device = Device::cpu();
  DsaConfig same_noise = config;
  same_noise.subpixel = SubPixel::kGain;
  const Vec3i& size = basis.mask.size;
  SampleFrames at_zero;
  {
    const Buffer<uint16_t> on_host(host.device, stored);
    const SampleFrames samples =
        to_samples(on_host, size, basis.mask.table, basis.mask.region, host);
    at_zero = filter_at_zero(samples, same_noise, host);
  }
  const auto shifts =
      bin_shifts(at_zero, basis.mask.at_zero.data(), nullptr, basis.mask.table, same_noise, host)
          .to_vector();
  const bool is_rigid = config.method == Method::kShift || config.method == Method::kNone;
  const Placement nothing =
      placement_of(make_block_grid(size, size, size), BorderField::kClamp, {});
  const Placement shifted =
      placement_of(make_block_grid(size, size, size), BorderField::kClamp, frames.shift);
  const BlockGrid grid = correction_grid(config, size);
  const bool is_spline = takes_spline(config);
  const std::vector<Vec3i> at_pixels =
      is_spline ? spline_field(grid, frames.vectors, config.border_field, host)
                : std::vector<Vec3i>{};
  const Placement corrected =
      is_spline ? placement_of(pixel_grid(size), BorderField::kClamp, at_pixels)
                : placement_of(grid, is_rigid ? BorderField::kClamp : config.border_field,
                               frames.vectors);
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y * size.z;
  parallel_for(host.threads, at_zero.count, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      const auto frame = static_cast<size_t>(f);
      std::array<FieldRow, 3> masks{nothing.of_frame(frame), shifted.of_frame(frame),
                                    corrected.of_frame(frame)};
      agree(basis, at_zero.values.data() + f * pixels, shifts[frame], masks, scores[frame]);
    }
  });
}

}  // namespace larch::dsa
