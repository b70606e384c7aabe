// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cmath>
#include <map>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/sampling/sampling_math.h"
#include "larch/dsa/scores.h"

namespace {

using namespace larch;
using namespace larch::dsa;

constexpr int32_t kSide = 192;

double noise(uint64_t stream, int64_t i) {
  double sum = 0;
  for (uint64_t k = 0; k < 12; ++k) sum += hash_unit(77, 100 * stream + k, i);
  return sum - 6;
}

/// Grey values of a body with bars, `motion` pixels further to the left.
double body(double x, double y, double motion) {
  const double u = x + motion;  // no period: one shift is the best
  return 2000 + 300 * std::sin(y / 11) + 150 * std::tanh(2 * std::sin(u / 9 + u * u / 4000));
}

/// A frame of 12 bits that holds logarithms.
std::vector<uint16_t> frame_of(uint64_t stream, double motion, bool has_vessel) {
  std::vector<uint16_t> out;
  for (int32_t y = 0; y < kSide; ++y) {
    for (int32_t x = 0; x < kSide; ++x) {
      const bool in_vessel = has_vessel && x >= 90 && x < 102;
      const double v =
          body(x, y, motion) + (in_vessel ? 200 : 0) + 10 * noise(stream, int64_t{y} * kSide + x);
      out.push_back(static_cast<uint16_t>(std::lround(v)));
    }
  }
  return out;
}

struct Scored {
  std::vector<FrameScores> scores{};
  SubtractedFrames frames{};
};
Scored score(double motion, bool has_vessel, const DsaConfig& config = {}, int threads = 1) {
  const auto mask = frame_of(1, 0, false), contrast = frame_of(2, motion, has_vessel);
  Context context;
  context.threads = threads;
  const MaskInput input{
      {kSide, kSide, 1}, {mask}, make_sample_table({12, false, true, Domain::kLog}, {}), {}, {}};
  Scored out;
  out.frames = subtract_frames(make_mask(input, config, context), contrast, config,
                               {false, true, true}, context);
  out.scores = score_frames(make_score_basis(make_mask(input, config, context), context), contrast,
                            out.frames, config, context);
  return out;
}

}  // namespace

TEST_CASE("without motion all columns show the noise alone") {
  for (const bool has_vessel : {false, true}) {
    const FrameScores s = score(0, has_vessel).scores[0];
    for (const ImageScores* image : {&s.uncorrected, &s.shifted, &s.corrected}) {
      // Noise of both images: 10 sqrt(2) grey values, of which cubic sampling may take some away.
      CHECK(image->rms == Approx(14.1).epsilon(0.06));
      CHECK(image->mad == Approx(14.1 / 1.4826).margin(1));
      CHECK(image->edge_index == Approx(1).margin(0.05));
    }
    CHECK(s.corrected.ehd == Approx(s.uncorrected.ehd).epsilon(0.02));
    CHECK(s.corrected.entropy == Approx(s.uncorrected.entropy).margin(0.02));
    CHECK(s.vessel_pixels == Approx(has_vessel ? 18 * kSide : 0).margin(1500));
    if (has_vessel) {
      CHECK(s.corrected.vessel_cnr == Approx(200 / 14.1).epsilon(0.06));
      CHECK(s.uncorrected.vessel_cnr == Approx(200 / 14.1).epsilon(0.06));
    } else {
      CHECK(std::isnan(s.corrected.vessel_cnr));
    }
  }
}

TEST_CASE("motion shows in every figure, and its correction takes it away") {
  const FrameScores s = score(1.6, true).scores[0];
  CHECK(s.uncorrected.rms > 1.7 * s.corrected.rms);
  CHECK(s.corrected.rms < 17);
  CHECK(s.shifted.rms < 17);
  CHECK(s.uncorrected.mad > 1.5 * s.corrected.mad);
  CHECK(s.uncorrected.ehd < 0.75 * s.corrected.ehd);
  CHECK(s.uncorrected.entropy > 0.25 + s.corrected.entropy);
  CHECK(s.uncorrected.edge_index > 1.1);
  CHECK(s.corrected.edge_index < s.uncorrected.edge_index);
  CHECK(s.corrected.vessel_cnr > 1.05 * s.uncorrected.vessel_cnr);
}

TEST_CASE("what any column reads from behind the collimator counts in none") {
  constexpr int32_t kOpen = 160;  // columns
  constexpr double kMotion = 6;   // to the right, where the collimator is
  auto mask = frame_of(1, 0, false), contrast = frame_of(2, kMotion, false);
  std::vector<uint8_t> open(mask.size());
  for (size_t i = 0; i < mask.size(); ++i) {
    open[i] = i % kSide < kOpen ? 1 : 0;
    if (open[i] == 0) mask[i] = contrast[i] = 60;
  }
  const MaskInput input{{kSide, kSide, 1},
                        {mask},
                        make_sample_table({12, false, true, Domain::kLog}, {}),
                        open,
                        open};
  const Context context;
  for (const Method method : {Method::kNone, Method::kShift, Method::kBlock}) {
    DsaConfig config;
    config.method = method;
    const auto frames = subtract_frames(make_mask(input, config, context), contrast, config,
                                        {false, true, true}, context);
    const FrameScores s = score_frames(make_score_basis(make_mask(input, config, context), context),
                                       contrast, frames, config, context)[0];
    CHECK(s.counted_pixels == Approx((kOpen - kMotion) * kSide).margin(2 * kSide));
    CHECK(s.shifted.rms < 17);
    CHECK(s.uncorrected.rms > 2 * s.shifted.rms);
    CHECK(s.uncorrected.rms < 200);
  }
}

TEST_CASE("nothing that can be measured gives no number") {
  std::vector<uint16_t> black(static_cast<size_t>(kSide) * kSide, 0);
  const Context context;
  const MaskInput input{
      {kSide, kSide, 1}, {black}, make_sample_table({12, false, true, Domain::kLog}, {}), {}, {}};
  const SubtractedFrames out =
      subtract_frames(make_mask(input, {}, context), black, {}, {false, true, true}, context);
  const FrameScores s = score_frames(make_score_basis(make_mask(input, {}, context), context),
                                     black, out, {}, context)[0];
  CHECK(s.counted_pixels == 0);
  CHECK(std::isnan(s.corrected.rms));
  CHECK(std::isnan(s.corrected.ehd));
  CHECK(std::isnan(s.corrected.edge_index));
}

TEST_CASE("EHD and entropy are those of samples taken one by one") {
  DsaConfig config;
  config.passes = "48/48";
  const bool is_spline = GENERATE(false, true);
  config.allows_spline = is_spline;
  const auto mask = frame_of(1, 0, false), contrast = frame_of(2, 2.3, true);
  const Context context;
  const Vec3i size{kSide, kSide, 1};
  const MaskInput input{
      size, {mask}, make_sample_table({12, false, true, Domain::kLog}, {}), {}, {}};
  const ScoreBasis basis = make_score_basis(make_mask(input, config, context), context);
  const SequenceMask& m = basis.mask;
  SubtractedFrames frames = score(2.3, true, config).frames;
  // Some vectors reach far beyond the picture.
  frames.vectors[0] = {-40 << kVectorBits, 3 << 14, 0};
  const BlockGrid blocks = correction_grid(config, size);
  const BlockGrid grid = is_spline ? pixel_grid(size) : blocks;
  const Buffer<Vec3i> at_pixels = spline_field(blocks, frames.vectors, context);
  const FieldGrid places = make_field_grid(grid, Device::cpu());
  const FieldView field =
      places.view(is_spline ? at_pixels.data() : frames.vectors.data(), BorderField::kLinear);
  const TapTable taps = gain_taps();
  const MaskView view{m.samples.data(), size, &taps};
  const SampleFrames samples =
      to_samples(Buffer<uint16_t>(Device::cpu(), contrast), size, m.table, {}, context);
  const SampleFrames at_zero = filter_at_zero(samples, config, context);
  const int32_t shift =
      bin_shifts(at_zero, m.at_zero.data(), nullptr, m.table, config, context).to_vector()[0];
  std::map<int32_t, double> counts[3];
  double n = 0;
  for (int32_t y = 0; y < kSide; ++y) {
    for (int32_t x = 0; x < kSide; ++x) {
      const Vec3i& whole = frames.shift[0];
      const AxisWeights weights[3] = {axis_weights(field.axes[0], field.border, x),
                                      axis_weights(field.axes[1], field.border, y),
                                      axis_weights(field.axes[2], field.border, 0)};
      const Vec3i moved[3] = {{},
                              {units_of(whole.x), units_of(whole.y), 0},
                              units_at(field, weights[0], weights[1], weights[2])};
      const uint16_t here = at_zero.values.data()[y * kSide + x];
      uint16_t there[3];
      bool counts_all = here != kNoSample;
      for (int i = 0; i < 3; ++i) {
        there[i] = mask_sample(view, x * kUnit + moved[i].x, y * kUnit + moved[i].y);
        counts_all = counts_all && there[i] != kNoSample;
      }
      if (!counts_all) continue;
      ++n;
      for (int i = 0; i < 3; ++i) ++counts[i][bin_number(here - there[i] + 65535, 0, shift)];
    }
  }
  const FrameScores s = score_frames(basis, contrast, frames, config, context)[0];
  const ImageScores* found[3] = {&s.uncorrected, &s.shifted, &s.corrected};
  for (int i = 0; i < 3; ++i) {
    double squares = 0, logs = 0;
    for (const auto& [bin, h] : counts[i]) {
      squares += h * h;
      logs += h * std::log(h);
    }
    CHECK(found[i]->ehd == squares / (n * n));
    CHECK(found[i]->entropy == Approx(std::log(n) - logs / n).epsilon(1e-12));
  }
}
