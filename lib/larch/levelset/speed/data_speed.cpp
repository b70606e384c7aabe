// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/speed/data_speed.h"

#include <atomic>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::levelset {
namespace {

constexpr Dispatch<void(const DataSpeed&, int16_t*, const Context&)> kMakeDataSpeed{
    "levelset::make_data_speed", cpu::make_data_speed, LARCH_CUDA_FN(cuda::make_data_speed)};

}  // namespace

void make_data_speed(const DataSpeed& parts, int16_t* stored, const Context& context) {
  kMakeDataSpeed(context.device, parts, stored, context);
}

int64_t count_without_number(const SpeedImages& images, const SpeedRule& rule, int64_t voxels,
                             int threads) {
  std::atomic<int64_t> count{0};
  with_parts_of(rule, [&]<bool kGiven, bool kRegions>() {
    parallel_for(threads, voxels, int64_t{1} << 14, [&](int64_t begin, int64_t end) {
      int64_t here = 0;
      for (int64_t i = begin; i < end; ++i) {
        const float intensity = kRegions || !kGiven ? images.intensities[i] : 0.0F;
        here += has_numbers<kGiven, kRegions>(intensity, kGiven ? images.given[i] : 0.0F) ? 0 : 1;
      }
      count += here;
    });
  });
  return count;
}

}  // namespace larch::levelset
