// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/picture/draw.h"

namespace larch::picture {

/// Values over something that is counted or measured: the loss over the rounds of a training, the
/// energy over the iterations of a search.
struct Curve {
  std::string name{};            ///< for the legend; empty: none
  std::vector<double> x{}, y{};  ///< of one length; a point that is not finite interrupts the curve
  std::optional<Rgb> colour{};   ///< otherwise one of the palette, by the number of the curve
};

struct PlotOptions {
  int width = 800, height = 500;  ///< pixels, from 200 x 150 to kMaximumPixels
  std::string title{}, x_label{}, y_label{};
};

/// Curves in one pair of axes on white: frame, ticks at round numbers (1, 2 or 5 times a power of
/// ten) with their values, grid lines, labels, and a legend of the curves that have names. The axes
/// hold all finite points; without one they go from 0 to 1. The same curves are the same bytes
/// everywhere. Throws UsageError: a size beyond the limits, x and y of different lengths.
RgbImage plot(std::span<const Curve> curves, const PlotOptions& options = {});

/// Round numbers that divide a range, about `wanted` of them: all multiples of the step that lie in
/// it. low < high.
std::vector<double> ticks(double low, double high, int wanted);

}  // namespace larch::picture
