// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/scores.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <cstring>
#include <limits>
#include <optional>

#include "larch/core/parallel.h"
#include "larch/dsa/field/warp_math.h"
#include "larch/dsa/image_agreement.h"
#include "larch/filters/components.h"

namespace larch::dsa {
namespace {

constexpr double kNothing = std::numeric_limits<double>::quiet_NaN();
/// Vessels are more than so many standard deviations, estimated from the MAD, from the background,
constexpr double kVesselDeviations = 4;
constexpr double kDeviationOfMad = 1.4826;
/// and pixels up to so far from them are not background. What is around them ends at kRing.
constexpr int kVesselMargin = 3, kRing = 8;
/// Fewer pixels are no vessel.
constexpr int64_t kMinimumVessel = 20;
/// The steepest pixels of the mask: one in so many.
constexpr int64_t kEdgeShare = 20;

struct Median {
  double median = 0, mad = 0;
  int64_t count = 0, sum = 0, squares = 0;  ///< of the values
  int64_t distances = 0;                    ///< sum of those from the median
};

/// Of the values where `counts` is not 0; NaN where there is none.
Median median_of(std::span<const int16_t> values, std::span<const uint8_t> counts) {
  // Neighbours have like values: a counter is not waited for if they count in different histograms.
  constexpr size_t kBins = 65536, kHistograms = 4;
  std::vector<uint32_t> histogram(kHistograms * kBins, 0);
  for (size_t i = 0; i < values.size(); ++i) {
    const auto bin = static_cast<size_t>(values[i] + 32768);
    histogram[i % kHistograms * kBins + bin] += counts[i] != 0 ? 1 : 0;
  }
  for (size_t bin = 0; bin < kBins; ++bin) {
    for (size_t k = 1; k < kHistograms; ++k) histogram[bin] += histogram[k * kBins + bin];
  }
  const Spread spread = spread_of(histogram.data(), kBins);
  if (spread.total == 0) return {kNothing, kNothing, 0, 0, 0, 0};
  Median out{spread.median - 32768.0, static_cast<double>(spread.deviation), spread.total, 0, 0, 0};
  for (int32_t bin = 0; bin < 65536; ++bin) {
    const int64_t h = histogram[static_cast<size_t>(bin)], value = bin - 32768;
    out.sum += h * value;
    out.squares += h * value * value;
    out.distances += h * std::abs(bin - spread.median);
  }
  return out;
}

/// The images of one frame: uncorrected, shifted, corrected.
using Images = std::array<std::span<const int16_t>, 3>;

/// Tells vessel from background in a frame, alike for all of its images; for kSpread it has the
/// background alone.
struct Parts {
  std::vector<uint8_t> background{};  ///< valid, away from vessels
  std::vector<uint8_t> vessel{};      ///< in all images
  std::vector<uint8_t> ring{};        ///< background around vessels
  int64_t counted = 0, left_out = 0;
};

/// Pixels along an axis whose place `shift` away lies in the picture, and where they read the mask.
struct Reach {
  int64_t begin = 0, end = 0, offset = 0;
};
Reach reach_of(int64_t count, int64_t shift) {
  constexpr int64_t kHalf = 1 << (kVectorBits - 1);
  return {std::max<int64_t>(0, -(shift >> kVectorBits)),
          std::min(count, count + (-shift >> kVectorBits)), (shift + kHalf) >> kVectorBits};
}

/// Leaves out pixels whose mask, `shift` away, lies beyond the picture or does not count there.
void keep_with_mask(std::vector<uint8_t>& valid, const SequenceMask& mask, const Vec3i& shift) {
  const int32_t width = mask.size.x;
  const Reach reach_x = reach_of(width, shift.x), reach_y = reach_of(mask.size.y, shift.y);
  auto row = valid.begin();
  for (int64_t y = 0; y < mask.size.y; ++y, row += width) {
    const bool has_row = y >= reach_y.begin && y < reach_y.end;
    const int64_t begin = has_row ? std::min<int64_t>(reach_x.begin, width) : width;
    const int64_t end = std::max(begin, reach_x.end);
    std::fill(row, row + begin, uint8_t{0});
    const uint16_t* samples = mask.samples.data() + (y + reach_y.offset) * width + reach_x.offset;
    for (int64_t x = begin; x < end; ++x) row[x] &= samples[x] != kNoSample ? 1 : 0;
    std::fill(row + end, row + width, uint8_t{0});
  }
}

Parts parts_of(const Images& images, std::span<const uint8_t> validity, const SequenceMask& mask,
               const Vec3i& shift, Vessels vessels, ScoreKind kind) {
  const Vec3i& size = mask.size;
  const size_t pixels = validity.size();
  const int direction = vessels == Vessels::kBright ? 1 : -1;
  std::vector<uint8_t> valid(pixels), any(pixels, 0);
  Parts parts;
  for (size_t i = 0; i < pixels; ++i) {
    valid[i] = validity[i] == static_cast<uint8_t>(Validity::kValid) ? 1 : 0;
  }
  for (const Vec3i& moved : {Vec3i{}, shift}) keep_with_mask(valid, mask, moved);
  const bool has_vessels = kind == ScoreKind::kAll;
  if (has_vessels) parts.vessel = valid;
  for (const auto& image : images) {
    const Median median = median_of(image, valid);
    if (median.count == 0) break;
    const auto middle = static_cast<int32_t>(median.median);  // which is whole
    const auto far =
        static_cast<int32_t>(kVesselDeviations * kDeviationOfMad * std::max(median.mad, 0.5));
    for (size_t i = 0; i < pixels; ++i) {
      const uint8_t is_vessel = direction * (image[i] - middle) > far ? 1 : 0;
      any[i] |= is_vessel & valid[i];
      if (has_vessels) parts.vessel[i] &= is_vessel;
    }
  }
  const auto around = filters::dilated(any, size, kVesselMargin);
  if (has_vessels) parts.ring = filters::dilated(parts.vessel, size, kRing);
  parts.background.resize(pixels);
  for (size_t i = 0; i < pixels; ++i) {
    parts.background[i] = valid[i] != 0 && around[i] == 0 ? 1 : 0;
    if (has_vessels) parts.ring[i] &= parts.background[i];
    parts.counted += valid[i];
    parts.left_out += valid[i] != 0 && around[i] != 0 ? 1 : 0;
  }
  return parts;
}

/// Mean and standard deviation of some values.
struct Mean {
  int64_t count = 0;
  double mean = 0, deviation = 0;
};
Mean mean_of(int64_t n, int64_t sum, int64_t squares) {
  if (n == 0) return {0, kNothing, kNothing};
  const double mean = static_cast<double>(sum) / static_cast<double>(n);
  const double square = static_cast<double>(squares) / static_cast<double>(n);
  return {n, mean, std::sqrt(std::max(0.0, square - mean * mean))};
}

/// Calls body(i) where a label is not 0; most of eight in a row are.
template <class Body>
void for_labelled(std::span<const uint8_t> labels, Body&& body) {
  size_t i = 0;
  for (; i + 8 <= labels.size(); i += 8) {
    uint64_t eight = 0;
    std::memcpy(&eight, labels.data() + i, sizeof eight);
    if (eight == 0) continue;
    for (size_t k = i; k < i + 8; ++k) {
      if (labels[k] != 0) body(k);
    }
  }
  for (; i < labels.size(); ++i) {
    if (labels[i] != 0) body(i);
  }
}

/// Of the values with a label.
Mean mean_of(std::span<const int16_t> values, std::span<const uint8_t> labels) {
  int64_t n = 0, sum = 0, squares = 0;
  for_labelled(labels, [&](size_t i) {
    ++n;
    sum += values[i];
    squares += int64_t{values[i]} * values[i];
  });
  return mean_of(n, sum, squares);
}

/// `median`: that of the background.
double edge_index(std::span<const int16_t> image, const Median& median,
                  std::span<const uint8_t> background, std::span<const uint8_t> edges) {
  if (median.count == 0) return kNothing;
  const auto middle = static_cast<int32_t>(median.median);  // which is whole
  int64_t at_edges = 0, edge_pixels = 0;
  for_labelled(edges, [&](size_t i) {
    at_edges += background[i] * std::abs(image[i] - middle);
    edge_pixels += background[i];
  });
  const int64_t elsewhere = median.distances - at_edges, others = median.count - edge_pixels;
  if (others == 0 || edge_pixels == 0 || elsewhere <= 0) return kNothing;
  return (static_cast<double>(at_edges) / static_cast<double>(edge_pixels)) /
         (static_cast<double>(elsewhere) / static_cast<double>(others));
}

void score_image(std::span<const int16_t> image, const Parts& parts, const ScoreBasis& basis,
                 ImageScores& out) {
  const Median median = median_of(image, parts.background);
  const Mean background = mean_of(median.count, median.sum, median.squares);
  out.mad = median.mad;
  out.rms = std::hypot(background.deviation, background.mean - median.median);
  if (basis.kind == ScoreKind::kSpread) return;
  out.edge_index = edge_index(image, median, parts.background, basis.edges);
  const Mean vessel = mean_of(image, parts.vessel), ring = mean_of(image, parts.ring);
  const bool can_tell =
      vessel.count >= kMinimumVessel && ring.count >= kMinimumVessel && ring.deviation > 0;
  out.vessel_cnr = can_tell ? std::fabs(vessel.mean - ring.mean) / ring.deviation : kNothing;
}

/// 16 times the squared slope of a mask, each axis smoothed across by 1 2 1.
int64_t steepness(std::span<const uint16_t> values, const Vec3i& size, int32_t x, int32_t y) {
  int64_t slope_x = 0, slope_y = 0;
  for (int j = -1; j <= 1; ++j) {
    for (int i = -1; i <= 1; ++i) {
      const int64_t row = std::clamp(y + j, 0, size.y - 1);
      const int64_t v =
          values[static_cast<size_t>(row * size.x + std::clamp(x + i, 0, size.x - 1))];
      slope_x += i * (j == 0 ? 2 : 1) * v;
      slope_y += j * (i == 0 ? 2 : 1) * v;
    }
  }
  return slope_x * slope_x + slope_y * slope_y;
}

std::vector<uint8_t> steepest_pixels(const SequenceMask& mask, const Context& context) {
  const Vec3i& size = mask.size;
  const std::span<const uint16_t> values(mask.values.data(), mask.values.size());
  std::vector<int64_t> slopes(values.size());
  parallel_for_each(context.threads, size.y, 16, [&](int32_t y) {
    for (int32_t x = 0; x < size.x; ++x) {
      slopes[static_cast<size_t>(int64_t{y} * size.x + x)] = steepness(values, size, x, y);
    }
  });
  // Where the mask does not count (collimator, saturation) and beside it no edge is looked for.
  std::vector<uint8_t> missing(values.size());
  std::vector<int64_t> counted;
  const uint16_t* samples = mask.samples.data();
  for (size_t i = 0; i < missing.size(); ++i) missing[i] = samples[i] == kNoSample ? 1 : 0;
  missing = filters::dilated(missing, size, 2);
  for (size_t i = 0; i < missing.size(); ++i) {
    if (missing[i] == 0) counted.push_back(slopes[i]);
  }
  std::vector<uint8_t> edges(values.size(), 0);
  if (counted.empty()) return edges;
  const auto steep = counted.end() - 1 - static_cast<std::ptrdiff_t>(counted.size() / kEdgeShare);
  std::nth_element(counted.begin(), steep, counted.end());
  for (size_t i = 0; i < edges.size(); ++i) {
    edges[i] = missing[i] == 0 && slopes[i] > *steep ? 1 : 0;
  }
  return edges;
}

void score_frame(const ScoreBasis& basis, const SubtractedFrames& frames, size_t frame,
                 Vessels vessels, FrameScores& out) {
  const size_t pixels = basis.mask.samples.size();
  const auto of_frame = [&](const auto& all) {
    return std::span(all).subspan(frame * pixels, pixels);
  };
  const Images images{of_frame(frames.uncorrected), of_frame(frames.shifted),
                      of_frame(frames.difference)};
  const Parts parts = parts_of(images, of_frame(frames.validity), basis.mask, frames.shift[frame],
                               vessels, basis.kind);
  out.counted_pixels = parts.counted;
  out.vessel_pixels = parts.left_out;
  score_image(images[0], parts, basis, out.uncorrected);
  score_image(images[1], parts, basis, out.shifted);
  score_image(images[2], parts, basis, out.corrected);
}

}  // namespace

ScoreBasis make_score_basis(SequenceMask mask, const Context& context, ScoreKind kind) {
  Context host = context;
  host.device = Device::cpu();
  ScoreBasis basis{std::move(mask), kind, {}};
  if (kind == ScoreKind::kAll) basis.edges = steepest_pixels(basis.mask, host);
  return basis;
}

std::vector<FrameScores> score_frames(const ScoreBasis& basis, std::span<const uint16_t> stored,
                                      const SubtractedFrames& frames, const DsaConfig& config,
                                      const Context& context) {
  std::vector<FrameScores> scores(frames.figures.size());
  std::optional<ImageAgreement> agreement;
  if (basis.kind == ScoreKind::kAll) {
    agreement.emplace(basis, stored, frames.shift, frames.vectors, config, context);
  }
  // Two pieces of work for each frame, which fill different figures.
  const auto pieces = static_cast<int64_t>(2 * scores.size());
  parallel_for_each(context.threads, pieces, 1, [&](int64_t piece) {
    const auto frame = static_cast<size_t>(piece / 2);
    if (piece % 2 == 0) {
      if (agreement) agreement->measure(frame, scores[frame]);
    } else {
      score_frame(basis, frames, frame, config.vessels, scores[frame]);
    }
  });
  return scores;
}

}  // namespace larch::dsa
