// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>

namespace larch::levelset {

constexpr int kHistogramBins = 1024;
using Histogram = std::array<int64_t, kHistogramBins>;

/// The number of the first bin of the upper of two classes, 0 to kHistogramBins - 1. Without noise
/// it is that of N. Otsu, IEEE Trans. SMC 9, 1979: half way between the means of what is below and
/// what is above. Noise carries voxels of the larger class beyond the threshold, which pulls it
/// into that class (with nine voxels in ten on one side and noise of a quarter of the contrast, by
/// a quarter of the contrast). Therefore the means are then those of two normal distributions of
/// the noise's standard deviation, `noise_bins`, with any shares, that make the histogram most
/// likely: Kurita, Otsu, Abdelmalek, Pattern Recognition 25, 1992; Dempster, Laird, Rubin, J. Royal
/// Stat. Soc. B 39, 1977. As the noise goes to 0 the two become the same.
int two_class_bin(const Histogram& counts, double noise_bins);

}  // namespace larch::levelset
