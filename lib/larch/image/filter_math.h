// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdint>

#include "larch/core/host_device.h"
#include "larch/core/portable_math.h"
#include "larch/image/channel_math.h"

// Filters with a sigma (Winn, Criminisi, Minka 2005; Sharp 2008, section 2.3): sums of up to three
// separable convolutions in double, always in the same order, so that the same integers come out on
// every device. Kernels are corrected so that discrete moments are exact.
namespace larch::image {

/// The one-dimensional kernels: all reach ceil(4 sigma) voxels, and are made of samples of exp.
enum class Kernel : uint8_t {
  kNone = 0,    ///< the axis is left alone
  kGauss = 1,   ///< sum 1
  kFirst = 2,   ///< c k G(k): sum of k d(k) is 1
  kSecond = 3,  ///< (a k^2 + b) G(k): sum 0, sum of k^2 dd(k) is 2
};

/// One separable convolution of a source, or of its squares.
struct FilterTerm {
  Kernel along[3] = {Kernel::kNone, Kernel::kNone, Kernel::kNone};
  bool squared = false;
};

/// Terms of a filter; `flat`: the image is one slice, so that nothing changes across it.
LARCH_HD int filter_terms(ChannelKind kind, bool flat, FilterTerm (&terms)[3]) {
  const Kernel z = flat ? Kernel::kNone : Kernel::kGauss;
  const auto derivative = [&](int axis) {
    FilterTerm term{{Kernel::kGauss, Kernel::kGauss, z}, false};
    term.along[axis] = Kernel::kFirst;
    return term;
  };
  switch (kind) {
    case ChannelKind::kSmooth:
      terms[0] = {{Kernel::kGauss, Kernel::kGauss, z}, false};
      return 1;
    case ChannelKind::kSmoothDerivativeX:
    case ChannelKind::kSmoothDerivativeY:
    case ChannelKind::kSmoothDerivativeZ:
      terms[0] =
          derivative(static_cast<int>(kind) - static_cast<int>(ChannelKind::kSmoothDerivativeX));
      return 1;
    case ChannelKind::kSmoothGradient:
      for (int axis = 0; axis < 3; ++axis) terms[axis] = derivative(axis);
      return flat ? 2 : 3;
    case ChannelKind::kLaplacianOfGaussian:
      for (int axis = 0; axis < 3; ++axis) {
        terms[axis] = {{Kernel::kGauss, Kernel::kGauss, z}, false};
        terms[axis].along[axis] = Kernel::kSecond;
      }
      return flat ? 2 : 3;
    default:  // kLocalScore: means of the values and of their squares
      terms[0] = {{Kernel::kGauss, Kernel::kGauss, z}, false};
      terms[1] = {{Kernel::kGauss, Kernel::kGauss, z}, true};
      return 2;
  }
}

constexpr int kMaximumSigma = 32;  ///< voxels

LARCH_HD int filter_radius(double sigma_voxels) {
  return static_cast<int>(ceil(4 * sigma_voxels));
}

/// A kernel from its centre on; odd ones change sign on the other side.
struct HalfKernel {
  int radius = 0;
  bool odd = false;
  double value[4 * kMaximumSigma + 1] = {};

  /// Voxel number `at` of a row of `count`, convolved along it. `from`: the voxel; its neighbours
  /// in the row are `step` elements apart.
  LARCH_HD double convolved(const double* from, int64_t step, int at, int count) const {
    double sum = value[0] * from[0];
    if (at >= radius && at + radius < count) {
      for (int k = 1; k <= radius; ++k) {
        const double low = from[-k * step], high = from[k * step];
        sum += value[k] * (odd ? high - low : high + low);
      }
      return sum;
    }
    for (int k = 1; k <= radius; ++k) {
      const double low = from[(clamp_index(at - k, count) - at) * step],
                   high = from[(clamp_index(at + k, count) - at) * step];
      sum += value[k] * (odd ? high - low : high + low);
    }
    return sum;
  }
};

/// The input of a filter: a component, or the luminance of three (BT.601 weights), or its square.
struct FilterInput {
  const int16_t* component[3] = {};
  bool luminance = false, squared = false;

  friend bool operator==(const FilterInput&, const FilterInput&) = default;
  LARCH_HD double operator()(int64_t i) const {
    double value = component[0][i];
    if (luminance) value = 0.299 * value + 0.587 * component[1][i] + 0.114 * component[2][i];
    return squared ? value * value : value;
  }
};

/// Returns the value of a filter's channel from its terms. Derivatives are multiplied by 2 sigma
/// and the Laplacian by sigma^2, so that all scales have values of one size, whole numbers of which
/// are fine enough.
LARCH_HD int32_t filtered_value(ChannelKind kind, double sigma, double input,
                                const double (&terms)[3], int count) {
  double value = terms[0];
  switch (kind) {
    case ChannelKind::kSmooth:
      break;
    case ChannelKind::kSmoothGradient: {
      double squared = 0;
      for (int t = 0; t < count; ++t) squared += terms[t] * terms[t];
      value = 2 * sigma * sqrt(squared);
      break;
    }
    case ChannelKind::kLaplacianOfGaussian:
      for (int t = 1; t < count; ++t) value += terms[t];
      value *= sigma * sigma;
      break;
    case ChannelKind::kLocalScore: {
      const double variance = terms[1] - terms[0] * terms[0];
      const double score = (input - terms[0]) / sqrt((variance > 0 ? variance : 0) + 16);
      value = 128 * score;
      value = value > kLargestScore    ? kLargestScore
              : value < -kLargestScore ? -kLargestScore
                                       : value;
      break;
    }
    default:
      value *= 2 * sigma;
  }
  return static_cast<int32_t>(floor(value + 0.5));
}

}  // namespace larch::image
