// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/dsa/dsa_config.h"
#include "larch/dsa/field/field.h"

// The dense field as a uniform cubic B-spline through the vectors of blocks: its second derivatives
// are continuous, where those of the bilinear field jump at every centre. M. Unser, Splines: a
// perfect fit for signal and image processing, IEEE Signal Processing Magazine 16(6), 1999.
namespace larch::dsa {

/// Returns a block per pixel: the dense field between vectors of this grid is the vectors
/// themselves.
BlockGrid pixel_grid(const Vec3i& size);

/// Vectors (Q16) at all pixels, frame after frame, of the spline through those of blocks, on the
/// context's device. `vectors`: by frame and block of `grid`, which is a picture's, on the host.
/// Beyond the outermost centres the spline goes through vectors one step of the grid apart, all of
/// them that of the outermost slope one step away. Centres are taken as evenly spaced, which they
/// are but for half a pixel. In whole numbers.
Buffer<Vec3i> spline_field(const BlockGrid& grid, std::span<const Vec3i> vectors,
                           const Context& context);

/// Returns the least Jacobian of x + d(x) of each frame, by differences of neighbouring pixels.
/// `vectors`: at all pixels, frame after frame, on the context's device.
std::vector<double> least_jacobians(const Vec3i& size, const Buffer<Vec3i>& vectors,
                                    const Context& context);

/// Weights of the nodes before, at, after and after next, Q20, for a pixel of an axis.
struct NodeWeights {
  int32_t first = 0;  ///< index of the node before
  int32_t w[4] = {};
};

/// spline_field; pointers are of one device.
struct SplineJob {
  Vec3i size{};
  int64_t frames = 0;
  const NodeWeights* weights[2]{};      ///< along x and y, by pixel
  int32_t nodes[2] = {1, 1};            ///< along x and y
  const Vec3l* coefficients = nullptr;  ///< by frame and node, x fastest, Q24
  Vec3i* vectors = nullptr;
};
/// least_jacobians; pointers are of one device.
struct JacobianJob {
  Vec3i size{};
  int64_t frames = 0;
  const Vec3i* vectors = nullptr;
  double* least = nullptr;  ///< by frame and column: least_jacobian_of_column
  int32_t columns() const { return size.x > 1 ? size.x - 1 : 1; }
};

namespace cuda {
void spline_field(const SplineJob& job, const Context& context);
void least_jacobians(const JacobianJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::dsa
