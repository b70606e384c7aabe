// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/features/linear/patches.h"

namespace larch::features::cpu {
namespace {

constexpr size_t kWidth = learning::kCpuWidth;

/// Columns with the plans of their patches.
struct PatchColumns : learning::PreparedColumns {
  PatchColumns(std::vector<learning::Slot> all, std::vector<PatchPlan> plan)
      : PreparedColumns(std::move(all), Device::cpu()), plans(std::move(plan)) {}

  const std::vector<PatchPlan> plans;
};

/// Features whose codes are computed before they are moved to the matrix.
constexpr size_t kCodesAtOnce = 256;

/// Moves the codes of features [first, first + count), [feature][lane], to the rows of samples
/// [sample, sample + lanes).
void scatter(learning::FeatureMatrix& matrix, const uint8_t* codes, std::array<size_t, 2> features,
             size_t sample, size_t lanes) {
  const auto [first, count] = features;
  for (size_t i = 0; i < count;) {
    const size_t f = first + i, column = f % kWidth;
    const size_t width = std::min(kWidth - column, count - i);
    uint8_t* row = matrix.row(f / kWidth, sample) + column;
    if (width == kWidth && lanes == kLanes) {
      for (size_t k = 0; k < kLanes; ++k) {
        for (size_t l = 0; l < kWidth; ++l) row[k * kWidth + l] = codes[(i + l) * kLanes + k];
      }
    } else {
      for (size_t k = 0; k < lanes; ++k) {
        for (size_t l = 0; l < width; ++l) row[k * kWidth + l] = codes[(i + l) * kLanes + k];
      }
    }
    i += width;
  }
}

}  // namespace

PreparedPointer prepare(const LinearPrepareJob& job) {
  return std::make_shared<const PatchColumns>(
      learning::slots_in_order(job.source, job.request),
      plan_patches(job.columns, job.request.columns, job.request.maps));
}

void fill(const LinearFillJob& job) {
  const auto& columns = dynamic_cast<const PatchColumns&>(job.prepared);
  learning::FeatureMatrix& matrix = job.matrix;
  // Every code is written below; only the filling of the last block must be made.
  if (!columns.slots.empty() && columns.slots.back().column == learning::kFilling) {
    std::fill_n(matrix.row(matrix.blocks - 1, 0), matrix.rows * kWidth, uint8_t{0});
  }
  const auto groups = static_cast<int64_t>((matrix.rows + kLanes - 1) / kLanes);
  parallel_for(job.context.threads, groups, 4, [&](int64_t a, int64_t b) {
    std::vector<uint32_t> patch;
    std::array<uint8_t, kCodesAtOnce * kLanes> codes;
    for (const PatchPlan& plan : columns.plans) {
      for (auto sample = static_cast<size_t>(a) * kLanes; sample < static_cast<size_t>(b) * kLanes;
           sample += kLanes) {
        const size_t lanes = std::min<size_t>(kLanes, matrix.rows - sample);
        fill_patch(plan, job.places, job.samples, matrix.rows, sample, patch);
        for (size_t f = 0; f < plan.rules.size(); f += kCodesAtOnce) {
          const size_t count = std::min(kCodesAtOnce, plan.rules.size() - f);
          lane_kernels().patch_codes({&plan.rules[f], count}, patch.data(), codes.data());
          scatter(matrix, codes.data(), {plan.first_feature + f, count}, sample, lanes);
        }
      }
    }
  });
}

}  // namespace larch::features::cpu
