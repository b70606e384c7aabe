// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/angiography.h"
#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/dsa/sequence.h"
#include "larch/phantom/angiogram.h"

namespace {

using namespace larch;
using namespace larch::dsa;

/// A sequence of the generator: frames of the mask, then contrast frames.
struct Sequence {
  Vec3i size{};
  SampleTable table{};
  std::vector<uint16_t> mask{}, contrast{};
  std::vector<Vec3f> truth{};

  SequenceMask prepared(const DsaConfig& config, const Context& context,
                        std::span<const uint8_t> region = {}) const {
    MaskInput input{size, {}, table, region, {}};
    const size_t pixels = static_cast<size_t>(size.x) * static_cast<size_t>(size.y);
    for (size_t i = 0; i < mask.size(); i += pixels) {
      input.stored.push_back(std::span<const uint16_t>(mask).subspan(i, pixels));
    }
    return make_mask(input, config, context);
  }
  SubtractedFrames subtracted(const DsaConfig& config, const SequenceWants& wants = {},
                              int threads = 1) const {
    Context context;
    context.threads = threads;
    return subtract_frames(prepared(config, context), contrast, config, wants, context);
  }
};

Sequence sequence_of(phantom::AngiogramConfig config, int frames, int mask_frames = 1) {
  config.frames = frames + mask_frames;
  config.mask_frames = mask_frames;
  const phantom::Angiogram angiogram = phantom::make_angiogram(config, 11, 0, 2);
  Sequence out;
  out.size = {config.size[0], config.size[1], 1};
  StoredValues stored;
  stored.bits = config.bits;
  stored.holds = config.stored == phantom::Stored::kLog ? Domain::kLog : Domain::kLinear;
  out.table = make_sample_table(stored, {});
  for (int f = 0; f < config.frames; ++f) {
    const auto frame = phantom::stored_frame(angiogram, f, 2);
    auto& to = f < mask_frames ? out.mask : out.contrast;
    to.insert(to.end(), frame.begin(), frame.end());
    if (f < mask_frames) continue;
    const auto field = phantom::true_field_px(angiogram, f, 2);
    out.truth.insert(out.truth.end(), field.begin(), field.end());
  }
  return out;
}

Sequence moving_sequence(int frames) {
  phantom::AngiogramConfig config;
  config.size = {192, 160};
  config.course = phantom::Course::kConstant;
  config.translation_px = {3.27, -2.64};
  config.amplitude_px = 0;
  config.vessels = 1;
  return sequence_of(config, frames);
}

/// The mean distance of the field from the truth, at least 32 pixels from the edges.
double mean_error(const Sequence& sequence, const SubtractedFrames& out) {
  double sum = 0, count = 0;
  const Vec3i& size = sequence.size;
  for (int32_t y = 32; y < size.y - 32; ++y) {
    for (int32_t x = 32; x < size.x - 32; ++x) {
      const auto i = static_cast<size_t>(int64_t{y} * size.x + x);
      sum += norm(out.field_px[i] - sequence.truth[i]);
      ++count;
    }
  }
  return sum / count;
}

double deviation(const std::vector<int16_t>& values) {
  double sum = 0;
  for (const int16_t v : values) sum += static_cast<double>(v) * v;
  return std::sqrt(sum / static_cast<double>(values.size()));
}

bool same_matches(const std::vector<BlockMatch>& a, const std::vector<BlockMatch>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const auto& x, const auto& y) {
    return x.vector == y.vector && x.found == y.found && x.flags == y.flags &&
           x.best.sum == y.best.sum && x.best.count == y.best.count &&
           x.before.sum == y.before.sum && x.counted == y.counted && x.overflow == y.overflow &&
           x.bend.xx == y.bend.xx && x.bend.xy == y.bend.xy &&
           x.most_deviation_px == y.most_deviation_px;
  });
}
bool same_results(const SubtractedFrames& a, const SubtractedFrames& b) {
  return a.difference == b.difference && a.validity == b.validity && a.vectors == b.vectors &&
         a.shift == b.shift && same_matches(a.matches, b.matches) && a.shifted == b.shifted &&
         a.uncorrected == b.uncorrected;
}

}  // namespace

TEST_CASE("method none is plain subtraction of the mean mask") {
  phantom::AngiogramConfig generated;
  generated.size = {64, 48};
  generated.stored = phantom::Stored::kLinear;
  Sequence sequence = sequence_of(generated, 2, 4);
  DsaConfig config;
  config.method = Method::kNone;
  config.normalize = Normalize::kNone;
  config.domain = Domain::kLinear;
  sequence.table = make_sample_table({12, false, false, Domain::kLinear}, config);
  const SubtractedFrames out = sequence.subtracted(config);
  constexpr size_t kPixels = 64 * 48;
  for (size_t i = 0; i < 2 * kPixels; ++i) {
    int sum = 0;
    for (size_t m = 0; m < 4; ++m) sum += sequence.mask[m * kPixels + i % kPixels];
    const int quarters = 4 * sequence.contrast[i] - sum;       // four frames: exact in quarters
    REQUIRE(out.difference[i] == std::lrint(quarters / 4.0));  // to even halves
  }
  CHECK(out.matches.empty());
  CHECK(out.vectors.empty());
  CHECK(out.figures[0].field.longest_px == 0);
}

TEST_CASE("a translation between pixels is found and taken out") {
  const Sequence sequence = moving_sequence(1);
  const SubtractedFrames out = sequence.subtracted({}, {true, true, true});
  CHECK(mean_error(sequence, out) < 0.1);
  CHECK(out.shift[0].x / 65536.0 == Approx(3.27).margin(0.15));
  CHECK(out.shift[0].y / 65536.0 == Approx(-2.64).margin(0.15));
  CHECK(deviation(out.difference) < 0.8 * deviation(out.uncorrected));
  CHECK(deviation(out.shifted) < 0.8 * deviation(out.uncorrected));
  CHECK(out.figures[0].field.longest_px == Approx(4.2).margin(0.4));
  CHECK(out.figures[0].field.least_jacobian > 0.9);
  CHECK(out.figures[0].subtracted.pixels[1] > 0);

  DsaConfig shift;
  shift.method = Method::kShift;
  const SubtractedFrames rigid = sequence.subtracted(shift, {false, true, true});
  CHECK(rigid.difference == out.shifted);
  CHECK(rigid.shifted == out.shifted);
  CHECK(rigid.uncorrected == out.uncorrected);
  CHECK(rigid.vectors == out.shift);
}

/// Motion that varies over 300 pixels, the same in all frames, without vessels.
phantom::AngiogramConfig smooth_motion() {
  phantom::AngiogramConfig generated;
  generated.size = {256, 256};
  generated.course = phantom::Course::kConstant;
  generated.amplitude_px = 4;
  generated.wavelength_px = 300;
  generated.vessels = 0;
  return generated;
}

TEST_CASE("smooth motion needs passes with smaller blocks") {
  const Sequence sequence = sequence_of(smooth_motion(), 1);
  DsaConfig config;
  config.passes = "64/64";
  const double one = mean_error(sequence, sequence.subtracted(config, {true}));
  config.passes = "64/64,64/32,48/16";
  const SubtractedFrames out = sequence.subtracted(config, {true});
  INFO("one pass " << one << " three " << mean_error(sequence, out));
  CHECK(mean_error(sequence, out) < 0.7 * one);
  CHECK(mean_error(sequence, out) < 0.2);
  CHECK(static_cast<int32_t>(out.matches.size()) == last_grid(config, sequence.size).blocks());
}

TEST_CASE("the spline between blocks follows smooth motion, in every pass and figure") {
  const Sequence sequence = sequence_of(smooth_motion(), 2);
  const SequenceWants wants{true, true, true};
  for (const char* passes : {"64/64", ""}) {
    DsaConfig config;
    config.passes = passes;
    config.allows_spline = false;
    const SubtractedFrames bilinear = sequence.subtracted(config, wants, 2);
    config.allows_spline = true;
    const SubtractedFrames spline = sequence.subtracted(config, wants, 2);
    INFO("bilinear " << mean_error(sequence, bilinear) << " spline "
                     << mean_error(sequence, spline));
    CHECK(mean_error(sequence, spline) < mean_error(sequence, bilinear));
    CHECK(spline.vectors.size() == bilinear.vectors.size());
    CHECK(spline.difference != bilinear.difference);
    CHECK(spline.figures[1].field.least_jacobian > 0.8);
    CHECK(spline.figures[1].field.least_jacobian < 1);
    CHECK(same_results(spline, sequence.subtracted(config, wants, 1)));
  }
  DsaConfig config;
  config.method = Method::kShift;
  const SubtractedFrames shifted = sequence.subtracted(config, wants);
  CHECK(shifted.difference == shifted.shifted);
  const int64_t bilinear_bytes =
      bytes_per_frame({.allows_spline = false}, {64, 64, 1}, {}).on_device;
  CHECK(bytes_per_frame({}, {64, 64, 1}, {}).on_device >= bilinear_bytes + 64 * 64 * 12);
}

TEST_CASE(
    "motion that is known before lies in the middle of the window, and is all without a search") {
  const Sequence sequence = moving_sequence(1);
  const Context context;
  DsaConfig config;
  config.normalize = Normalize::kNone;
  config.range = 2;       // the motion is beyond it
  config.literal = true;  // otherwise blocks start at the rigid shift
  config.passes = "64/64";
  SequenceMask mask = sequence.prepared(config, context);
  const SubtractedFrames far =
      subtract_frames(mask, sequence.contrast, config, {.field = true}, context);
  CHECK(mean_error(sequence, far) > 0.6);
  mask.start = {3 << kVectorBits, -3 * (1 << kVectorBits), 0};
  const SubtractedFrames near =
      subtract_frames(mask, sequence.contrast, config, {.field = true}, context);
  CHECK(mean_error(sequence, near) < 0.3);
  config.method = Method::kNone;
  const SubtractedFrames shifted =
      subtract_frames(mask, sequence.contrast, config, {.uncorrected = true}, context);
  mask.start = {};
  const SubtractedFrames plain = subtract_frames(mask, sequence.contrast, config, {}, context);
  CHECK(shifted.uncorrected == plain.difference);
  CHECK(shifted.difference != plain.difference);
  CHECK(shifted.vectors == std::vector<Vec3i>{{3 << kVectorBits, -3 * (1 << kVectorBits), 0}});
}

TEST_CASE("motion breaks between blocks that keep still and others that move") {
  // Bars, whose blocks cannot tell how far they move along y, beside texture that moves further
  // than the frame.
  const int of_frame = GENERATE(0, -8);
  const int further = of_frame == 0 ? 6 : 3;
  Sequence sequence;
  sequence.size = {320, 192, 1};
  sequence.table = make_sample_table({12, false, true, Domain::kLog}, {});
  const auto texture = [](double x, double y) {
    return 300 * std::sin(x / 4.1 + y * y / 900) + 300 * std::sin(y / 5.3 + x * x / 1500);
  };
  for (int64_t i = 0; i < int64_t{320} * 192; ++i) {
    const int64_t row = i / 320;
    const auto x = static_cast<double>(i % 320), y = static_cast<double>(row);
    for (uint64_t k = 0; k < 2; ++k) {
      const double moved = further * static_cast<double>(k),
                   bar = x + of_frame * static_cast<double>(k);
      const double value =
          x < 192 ? 400 * std::tanh(3 * std::sin(bar / 9 + bar * bar / 9000))
                  : texture(x + of_frame * static_cast<double>(k) + moved, y + moved / 2);
      const double noise = 40 * (hash_unit(3, k, i) - 0.5);
      (k == 0 ? sequence.mask : sequence.contrast)
          .push_back(static_cast<uint16_t>(std::lround(2000 + value + noise)));
    }
  }
  const auto farthest = [&] {
    DsaConfig config;
    config.passes = "64/64";
    const SubtractedFrames out = sequence.subtracted(config);
    const int32_t still = of_frame * (1 << kVectorBits);
    const BlockGrid grid = last_grid(config, sequence.size);
    int32_t far = 0;
    for (int32_t b = 0; b < grid.blocks(); ++b) {
      const int32_t x = out.vectors[static_cast<size_t>(b)].x;
      if (grid.at(b).x < 3) far = std::max(far, std::abs(x - still));
      if (grid.at(b).x == 4) {
        CHECK(x / 65536.0 == Approx(further + of_frame).margin(0.4));
      }
    }
    return far / 65536.0;
  };
  CHECK(farthest() < 0.5);
}

TEST_CASE("bins that are too narrow for a frame are widened, but not literally") {
  Sequence sequence = moving_sequence(1);
  // Flat parts make the median of deviations 0, strong texture elsewhere goes beyond the bins.
  for (size_t i = 0; i < sequence.mask.size(); ++i) {
    const double draw = hash_unit(1, 2, static_cast<int64_t>(i));
    if (i % 192 < 110)
      sequence.contrast[i] = sequence.mask[i] = 2000;
    else
      sequence.contrast[i] = static_cast<uint16_t>(1 + 4000 * draw);
  }
  DsaConfig config;
  const SubtractedFrames out = sequence.subtracted(config);
  CHECK(out.figures[0].bin_shift > 2);
  config.literal = true;
  CHECK(sequence.subtracted(config).figures[0].bin_shift == 2);
}

TEST_CASE("flexible pixel shift moves nodes from the result of blocks") {
  phantom::AngiogramConfig generated;
  generated.size = {192, 160};
  generated.course = phantom::Course::kConstant;
  generated.amplitude_px = 3;
  generated.wavelength_px = 300;
  generated.vessels = 0;
  const Sequence sequence = sequence_of(generated, 1);
  DsaConfig config{.allows_spline = false};
  config.passes = "64/64";
  const SubtractedFrames blocks = sequence.subtracted(config, {true});
  config.method = Method::kFlex;
  const SubtractedFrames nodes = sequence.subtracted(config, {true, true, true}, 1);
  const BlockGrid grid = last_grid(config, sequence.size);
  CHECK(grid.count == Vec3i{4, 4, 1});
  CHECK(grid.starts[0] == std::vector<int32_t>{0, 64, 127, 191});
  REQUIRE(nodes.matches.size() == 16);
  INFO("blocks " << mean_error(sequence, blocks) << " nodes " << mean_error(sequence, nodes));
  CHECK(mean_error(sequence, nodes) < 0.85 * mean_error(sequence, blocks));
  for (const BlockMatch& node : nodes.matches) {
    if ((node.flags & (kBlockOutside | kBlockUnreliable)) != 0) continue;
    CHECK(node.best.count > 0);
  }
  CHECK(same_results(nodes, sequence.subtracted(config, {true, true, true}, 3)));
  config.metric = Metric::kEntropy;
  CHECK(mean_error(sequence, sequence.subtracted(config, {true}, 2)) < 0.1);
}

TEST_CASE("a sequence refuses regions of another size and frames that it has not") {
  dsa::SequenceRequest request;
  request.source = {.name = "s", .size = {32, 32, 1}, .frames = 2};
  request.source.read = [](int64_t, int64_t, std::span<uint16_t> to) {
    std::fill(to.begin(), to.end(), uint16_t{1000});
  };
  request.wanted = {0, 1};
  request.groups = {{.mask_frames = {0}, .frames = {1}}};
  const auto subtract = [&] {
    dsa::subtract_sequence(
        request, {}, [](const auto&, const auto&) {}, Context());
  };
  CHECK_NOTHROW(subtract());
  request.region.assign(100, 1);
  CHECK_THROWS_AS(subtract(), UsageError);
  request.region = {};
  request.groups[0].frames = {2};
  CHECK_THROWS_AS(subtract(), UsageError);
  request.groups[0] = {.frames = {1}};
  CHECK_THROWS_AS(subtract(), UsageError);
}
