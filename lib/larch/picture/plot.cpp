// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/plot.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/picture/draw.h"

namespace larch::picture {
namespace {

constexpr Rgb kGrid{225, 225, 225};
constexpr int kTick = 4, kSpace = 6;  ///< pixels
constexpr int kLine = kLetterHeight + kSpace;

/// The numbers that an axis shows.
struct Range {
  double low = 0, high = 1;
};

bool is_point(const Curve& curve, size_t i) {
  return std::isfinite(curve.x[i]) && std::isfinite(curve.y[i]);
}

Range range_of(std::span<const Curve> curves, std::vector<double> Curve::*values) {
  bool any = false;
  Range range;
  for (const Curve& curve : curves) {
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (!is_point(curve, i)) continue;
      const double value = (curve.*values)[i];
      range = any ? Range{std::min(range.low, value), std::max(range.high, value)}
                  : Range{value, value};
      any = true;
    }
  }
  if (!any) return {0, 1};
  if (range.high - range.low > 1e-12 * std::max(std::abs(range.low), std::abs(range.high))) {
    return range;
  }
  // One value alone, or values that are as good as one.
  const double room = std::max(std::abs(range.low) * 0.5, 0.5);
  if (std::isfinite(range.low - room) && std::isfinite(range.high + room)) {
    return {range.low - room, range.high + room};
  }
  return {std::min(range.low, 0.0), std::max(range.high, 0.0)};
}

/// Where a value lies between the two ends of an axis in pixels. Differences of halves are always
/// finite.
double place(const Range& range, double value, int from, int to) {
  return from + (value / 2 - range.low / 2) / (range.high / 2 - range.low / 2) * (to - from);
}

class Chart {
 public:
  Chart(std::span<const Curve> curves, const PlotOptions& options)
      : curves_(curves),
        options_(options),
        x_(range_of(curves, &Curve::x)),
        y_(range_of(curves, &Curve::y)),
        image_(make_canvas(options.width, options.height, kWhite)) {
    int widest = 0;
    for (const double tick : ticks(y_.low, y_.high, kYTicks)) {
      widest = std::max(widest, text_width(number_text(tick, 6), 1));
    }
    left_ = std::min(widest + kTick + 3 * kSpace, options.width / 2);
    right_ = options.width - 1 - 3 * kSpace;
    top_ = 2 * kSpace + (options.title.empty() ? 0 : kLine) + (options.y_label.empty() ? 0 : kLine);
    bottom_ = options.height - 1 - (kTick + 2 * kSpace + kLetterHeight) -
              (options.x_label.empty() ? 0 : kLine);
  }

  RgbImage paint() {
    paint_axes();
    for (size_t c = 0; c < curves_.size(); ++c) paint_curve(c);
    paint_texts();
    paint_legend();
    return std::move(image_);
  }

 private:
  static constexpr int kXTicks = 8, kYTicks = 6;

  Rgb colour(size_t curve) const {
    return curves_[curve].colour.value_or(palette_colour(static_cast<int64_t>(curve) + 1));
  }

  Pixel pixel(double x, double y) const {
    return {place(x_, x, left_, right_), place(y_, y, bottom_, top_)};
  }

  void paint_axes() {
    for (const double tick : ticks(x_.low, x_.high, kXTicks)) {
      const double x = pixel(tick, y_.low).x;
      draw_line(image_, {x, double(top_)}, {x, double(bottom_)}, kGrid);
      draw_line(image_, {x, double(bottom_)}, {x, double(bottom_ + kTick)}, kBlack);
      const std::string text = number_text(tick, 6);
      draw_text(image_, static_cast<int>(std::lround(x)) - text_width(text, 1) / 2,
                bottom_ + kTick + kSpace, text, 1, kBlack);
    }
    for (const double tick : ticks(y_.low, y_.high, kYTicks)) {
      const double y = pixel(x_.low, tick).y;
      draw_line(image_, {double(left_), y}, {double(right_), y}, kGrid);
      draw_line(image_, {double(left_ - kTick), y}, {double(left_), y}, kBlack);
      const std::string text = number_text(tick, 6);
      draw_text(image_, left_ - kTick - kSpace - text_width(text, 1),
                static_cast<int>(std::lround(y)) - kLetterHeight / 2, text, 1, kBlack);
    }
    draw_box(image_, {double(left_), double(top_)}, {double(right_), double(bottom_)}, kBlack);
  }

  void paint_curve(size_t number) {
    const Curve& curve = curves_[number];
    for (size_t i = 0; i < curve.x.size(); ++i) {
      if (!is_point(curve, i)) continue;
      const bool before = i > 0 && is_point(curve, i - 1);
      const bool behind = i + 1 < curve.x.size() && is_point(curve, i + 1);
      const Pixel at = pixel(curve.x[i], curve.y[i]);
      if (before) draw_line(image_, pixel(curve.x[i - 1], curve.y[i - 1]), at, colour(number));
      // A point without neighbours would be a pixel that nobody sees.
      if (!before && !behind) draw_point(image_, at, 2, colour(number));
    }
  }

  void paint_texts() {
    const auto centred = [&](const std::string& text, int y) {
      draw_text(image_, (options_.width - text_width(text, 1)) / 2, y, text, 1, kBlack);
    };
    centred(options_.title, kSpace);
    draw_text(image_, kSpace, top_ - kLine, options_.y_label, 1, kBlack);
    centred(options_.x_label, options_.height - kLine);
  }

  void paint_legend() {
    constexpr int kSample = 20;  // pixels of the line beside each name
    int widest = 0, names = 0;
    for (const Curve& curve : curves_) {
      if (curve.name.empty()) continue;
      widest = std::max(widest, text_width(curve.name, 1));
      ++names;
    }
    if (names == 0) return;
    const int width = widest + kSample + 3 * kSpace, height = names * kLine + kSpace;
    const int left = right_ - kSpace - width, top = top_ + kSpace;
    const Pixel corner{double(left), double(top)};
    const Pixel opposite{double(left + width), double(top + height)};
    fill_box(image_, corner, opposite, kWhite);
    draw_box(image_, corner, opposite, kBlack);
    int y = top + kSpace;
    for (size_t c = 0; c < curves_.size(); ++c) {
      if (curves_[c].name.empty()) continue;
      constexpr int kHalf = kLetterHeight / 2;
      const double middle = y + kHalf;
      fill_box(image_, {double(left + kSpace), middle - 1},
               {double(left + kSpace + kSample), middle + 1}, colour(c));
      draw_text(image_, left + 2 * kSpace + kSample, y, curves_[c].name, 1, kBlack);
      y += kLine;
    }
  }

  std::span<const Curve> curves_;
  const PlotOptions& options_;
  Range x_, y_;
  RgbImage image_;
  int left_ = 0, right_ = 0, top_ = 0, bottom_ = 0;  ///< the frame
};

/// Returns a power of ten, the same on every machine.
double power_of_ten(int exponent) {
  return std::strtod(("1e" + std::to_string(exponent)).c_str(), nullptr);
}

}  // namespace

std::vector<double> ticks(double low, double high, int wanted) {
  const double rough = (high - low) / std::max(wanted, 1);
  if (!(rough > 0) || !std::isfinite(rough)) return {};
  int exponent = -300;
  while (exponent < 300 && power_of_ten(exponent + 1) <= rough) ++exponent;
  // The step is a whole number over a power of ten, or times it, so that ticks are round numbers.
  int64_t digit = 10;
  for (const int candidate : {5, 2, 1}) {
    if (candidate * power_of_ten(exponent) >= rough) digit = candidate;
  }
  const double ten = power_of_ten(std::abs(exponent));
  const auto value = [&](double count) {
    return exponent < 0 ? count * static_cast<double>(digit) / ten
                        : count * static_cast<double>(digit) * ten;
  };
  std::vector<double> all;
  const double slack = 1e-9 * (high - low);
  for (double count = std::ceil((low - slack) / value(1)); value(count) <= high + slack; ++count) {
    all.push_back(value(count) + 0.0);
    if (all.size() > 100) break;  // numbers so large that a step does not change them
  }
  return all;
}

RgbImage plot(std::span<const Curve> curves, const PlotOptions& options) {
  if (options.width < 200 || options.height < 150) {
    throw UsageError("a plot needs at least 200 x 150 pixels");
  }
  for (const Curve& curve : curves) {
    if (curve.x.size() != curve.y.size()) {
      throw UsageError("the curve '" + curve.name + "' has " + std::to_string(curve.x.size()) +
                       " x and " + std::to_string(curve.y.size()) + " y");
    }
  }
  return Chart(curves, options).paint();
}

}  // namespace larch::picture
