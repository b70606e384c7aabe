// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/image/filter_math.h"
#include "larch/image/integral.h"

namespace larch::image {

/// Returns the kernel of a sigma (Winn, Criminisi, Minka 2005), with exact discrete moments.
HalfKernel half_kernel(double sigma_voxels, Kernel kernel);

/// Makes the images of filters, [channel][voxel], from the components of their level, all
/// together. All pointers are of context.device, where the work need not be done on return.
void filter(std::span<const ChannelSpec> channels, Components components, int32_t* out,
            const Context& context);
/// Bytes that a channel takes for each voxel meanwhile, at most: two inputs, and three terms that
/// are each in two buffers.
constexpr int64_t kFilterBytes = (2 + 3 * 2) * 8;

/// A convolution along one axis.
struct FilterPass {
  HalfKernel kernel;
  const double* from = nullptr;
  double* to = nullptr;

  /// Voxel `at` of the rows along the axis.
  LARCH_HD void store(const Vec3i& size, int axis, int64_t i) const {
    const int64_t row = size.x, plane = row * size.y;
    const int64_t step = axis == 0 ? 1 : axis == 1 ? row : plane;
    const int count = axis == 0 ? size.x : axis == 1 ? size.y : size.z;
    to[i] = kernel.convolved(from + i, step, static_cast<int>(i / step % count), count);
  }
};
/// The values of a channel from its terms.
struct FilterSum {
  ChannelKind kind;
  double sigma_voxels;
  const double* input;
  const double* terms[3];
  int count;
  int32_t* out;

  LARCH_HD void store(int64_t i) const {
    double values[3] = {};
    for (int t = 0; t < count; ++t) values[t] = terms[t][i];
    out[i] = filtered_value(kind, sigma_voxels, input[i], values, count);
  }
};
/// Holds what one implementation does, in this order.
struct FilterJob {
  Vec3i size;
  std::vector<FilterInput> inputs{};
  double* input_values = nullptr;       ///< [input][voxel]
  std::vector<FilterPass> passes[3]{};  ///< by axis
  std::vector<FilterSum> sums{};

  int64_t voxels() const { return int64_t{size.x} * size.y * size.z; }
};
namespace cuda {
void filter(const FilterJob& job, const Context& context);
}

}  // namespace larch::image
