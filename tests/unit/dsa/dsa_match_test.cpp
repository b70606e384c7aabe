// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/dsa/field/motion_solve.h"
#include "larch/dsa/similarity/frame_scores.h"
#include "larch/phantom/angiogram.h"
#include "tests/unit/dsa/dsa_fixtures.h"

namespace {

using namespace larch;
using namespace larch::dsa;
using namespace larch::dsa::fixtures;

const Vec3i kSize{128, 128, 1};

bool same_bytes(const std::vector<BlockMatch>& a, const std::vector<BlockMatch>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(a[0])) == 0;
}

Image noise_image(const Vec3i& size, double sigma, uint64_t seed) {
  Image image(static_cast<size_t>(size.x) * static_cast<size_t>(size.y));
  for (size_t i = 0; i < image.size(); ++i) {
    image[i] = static_cast<uint16_t>(std::lround(16000 + sigma * normal(seed, 30, i)));
  }
  return image;
}

Image smoothed(const Image& image, const Vec3i& size, double outer) {
  const auto at = [&](const Image& in, int32_t x, int32_t y) {
    const int32_t place = std::clamp(y, 0, size.y - 1) * size.x + std::clamp(x, 0, size.x - 1);
    return static_cast<double>(in[static_cast<size_t>(place)]);
  };
  const auto pass = [&](const Image& in, int32_t dx, int32_t dy) {
    Image out;
    for (int32_t y = 0; y < size.y; ++y) {
      for (int32_t x = 0; x < size.x; ++x) {
        out.push_back(static_cast<uint16_t>(
            std::lround((1 - 2 * outer) * at(in, x, y) +
                        outer * (at(in, x - dx, y - dy) + at(in, x + dx, y + dy)))));
      }
    }
    return out;
  };
  return pass(pass(image, 1, 0), 0, 1);
}

/// EHD of whole frames at half a pixel along both axes over that at none.
double half_pixel_ratio(const Image& mask, const Image& frame, const Vec3i& size, bool literal) {
  DsaConfig config;
  config.literal = literal;
  const Context context = context_of();
  const auto filtered = [&](const Image& image) {
    return filter_at_zero({size, 1, Buffer<uint16_t>(Device::cpu(), image)}, config, context);
  };
  const SampleFrames at_zero = filtered(mask), contrast = filtered(frame);
  const Vec3i displacements[2] = {{0, 0, 0}, {kUnit / 2, kUnit / 2, 0}};
  const int32_t shift = 3;
  Score scores[2];
  FrameScoresJob job;
  job.mask = mask.data();
  job.mask_at_zero = at_zero.values.data();
  job.contrast = contrast.values.data();
  job.size = size;
  job.frames = 1;
  job.literal = literal;
  job.bin_shift = &shift;
  job.displacements = displacements;
  job.candidates = 2;
  job.scores = scores;
  frame_scores(job, context);
  return ehd(scores[1]) / ehd(scores[0]);
}

/// The mean error of an angiogram's blocks without motion, in pixels.
double zero_motion_error(const DsaConfig& config, int* unreliable, double contrast) {
  phantom::AngiogramConfig still;
  still.size = {256, 256};
  still.frames = 2;
  still.mask_frames = 1;
  still.course = phantom::Course::kConstant;
  still.amplitude_px = 0;
  still.contrast = contrast;
  still.vessels = 0;
  const phantom::Angiogram angiogram = phantom::make_angiogram(still, 3, 0, 2);
  const Context context = context_of(2);
  StoredValues stored;
  stored.holds = Domain::kLog;
  const SampleTable table = make_sample_table(stored, config);
  const auto samples = [&](int frame) {
    const Buffer<uint16_t> raw(Device::cpu(), phantom::stored_frame(angiogram, frame, 2));
    return to_samples(raw, {256, 256, 1}, table, {}, context);
  };
  Matching m;
  m.size = {256, 256, 1};
  m.mask = samples(0).values.to_vector();
  m.frames = samples(1).values.to_vector();
  m.config = config;
  m.grid = make_block_grid(m.size, {64, 64, 1}, {64, 64, 1});
  double sum = 0;
  std::vector<BlockMatch> all = m.run(2);
  const Vec3i no_shift{};
  solve_motion(m.grid, std::span(&no_shift, 1), all, context);
  for (const BlockMatch& b : all) {
    sum += std::hypot(pixels(b.found.x), pixels(b.found.y));
    if (unreliable != nullptr) *unreliable += (b.flags & kBlockUnreliable) != 0 ? 1 : 0;
  }
  return sum / static_cast<double>(all.size());
}

DsaConfig literal() {
  return {.literal = true};
}

}  // namespace

TEST_CASE("a whole-pixel translation without noise is found") {
  for (const Vec3i& motion : {Vec3i{3, -4, 0}, Vec3i{0, 0, 0}, Vec3i{-9, 7, 0}}) {
    Matching m = one_block(textured(kSize, 0, 0), textured(kSize, -motion.x, -motion.y));
    // The frame is the mask moved: frame(x) = texture(x - d) is mask(x + d') for d' = -d.
    const BlockMatch match = m.run().front();
    CHECK(pixels(match.vector.x) == Approx(-motion.x).margin(0.005));
    CHECK(pixels(match.vector.y) == Approx(-motion.y).margin(0.005));
    CHECK(ehd(match.best) > 0.9);
    CHECK(match.counted == 4096);
    CHECK(match.flags == 0);
    CHECK(match.bend.xx > 1 << (kBendBits - 6));  // the block has texture in both directions
    CHECK(match.bend.yy > 1 << (kBendBits - 6));
  }
}

TEST_CASE("a fraction of a pixel is found") {
  for (const bool is_literal : {false, true}) {
    Matching m = one_block(textured(kSize, 0, 0, 15, 1), textured(kSize, 3.27, -2.64, 15, 2));
    m.config.literal = is_literal;
    const BlockMatch match = m.run().front();
    CHECK(pixels(match.vector.x) == Approx(3.27).margin(is_literal ? 0.3 : 0.06));
    CHECK(pixels(match.vector.y) == Approx(-2.64).margin(is_literal ? 0.3 : 0.06));
    CHECK(match.best.sum > match.before.sum);
  }
}

TEST_CASE("Gaussian differences have the energy that theory gives") {
  const auto energy = [](double sigma, int32_t shift, double vessel) {
    Image mask(128 * 128, 16000), frame = noise_image(kSize, sigma, 5);
    for (size_t i = 0; i < frame.size(); ++i) {
      if (hash_unit(9, 9, i) < vessel) frame[i] = static_cast<uint16_t>(frame[i] + 300);
    }
    Matching m = one_block(mask, frame);
    m.config = literal();  // does not filter the noise
    m.shift = shift;
    return ehd(m.run().front().before);
  };
  CHECK(energy(10, 0, 0) == Approx(0.02845).epsilon(0.03));
  CHECK(energy(10, 2, 0) == Approx(0.1124).epsilon(0.03));
  CHECK(energy(10, 0, 0.2) / energy(10, 0, 0) == Approx(0.68).epsilon(0.05));
}

TEST_CASE("linear sampling draws noise to half pixels and the gain kernel does not") {
  const Vec3i size{512, 512, 1};
  const Image mask = noise_image(size, 100, 1), frame = noise_image(size, 100, 2);
  CHECK(half_pixel_ratio(mask, frame, size, true) == Approx(1.265).margin(0.02));
  CHECK(half_pixel_ratio(mask, frame, size, false) == Approx(1.0).margin(0.01));
  const Image soft_mask = smoothed(mask, size, 0.15), soft_frame = smoothed(frame, size, 0.15);
  CHECK(half_pixel_ratio(soft_mask, soft_frame, size, true) == Approx(1.160).margin(0.02));
  CHECK(half_pixel_ratio(soft_mask, soft_frame, size, false) == Approx(0.985).margin(0.01));
}

TEST_CASE("without motion the literal method moves and the default does not") {
  CHECK(zero_motion_error(literal(), nullptr, 1) > 0.15);
  CHECK(zero_motion_error(DsaConfig{}, nullptr, 1) < 0.06);
}

TEST_CASE("blocks of noise alone are unreliable") {
  int unreliable = 0;
  zero_motion_error(DsaConfig{}, &unreliable, 0);
  CHECK(unreliable == 16);
}

TEST_CASE("a region of half a block halves what is counted, not the similarity") {
  const Image mask = textured(kSize, 0, 0, 30, 1), frame = textured(kSize, 0, 0, 30, 2);
  Matching whole = one_block(mask, frame), half = whole;
  for (size_t i = 0; i < half.frames.size(); ++i) {
    if (i % 128 < 64) half.frames[i] = kNoSample;
  }
  whole.config = half.config = literal();
  const BlockMatch a = whole.run().front(), b = half.run().front();
  CHECK(a.counted == 4096);
  CHECK(b.counted == 2048);
  CHECK(b.best.count == 2048);
  const double u = static_cast<double>(similarity_q32(a.best));
  CHECK(static_cast<double>(similarity_q32(b.best)) == Approx(u).epsilon(0.06));
}

TEST_CASE("a saturated area does not hold the block in place") {
  // With noise, and another exposure, saturated pixels would be the higher peak if they counted.
  Image mask = textured(kSize, 0, 0, 50, 1), frame = textured(kSize, 4, -3, 50, 2);
  for (size_t i = 0; i < mask.size(); ++i) {
    const size_t x = i % 128, y = i / 128;
    frame[i] = static_cast<uint16_t>(frame[i] + 800);
    if (x >= 40 && x < 75 && y >= 40 && y < 75) mask[i] = frame[i] = kNoSample;
  }
  Matching m = one_block(mask, frame);
  const BlockMatch match = m.run().front();
  CHECK(pixels(match.vector.x) == Approx(4).margin(0.15));
  CHECK(pixels(match.vector.y) == Approx(-3).margin(0.15));
}

TEST_CASE("another exposure finds the same vectors") {
  const Image mask = textured(kSize, 0, 0, 20, 1), frame = textured(kSize, 2.4, 1.1, 20, 2);
  Image brighter = mask;
  for (uint16_t& v : brighter) v = static_cast<uint16_t>(v + 8000);  // 2000 grey values
  for (const bool is_literal : {false, true}) {
    Matching a = one_block(mask, frame), b = one_block(brighter, frame);
    a.config.literal = b.config.literal = is_literal;
    CHECK(a.run().front().vector == b.run().front().vector);
  }
}

TEST_CASE(
    "differences beyond the bins wrap without raising the energy, and literally clamp with it") {
  Image mask(128 * 128, 16000), frame;
  for (size_t i = 0; i < mask.size(); ++i) {
    frame.push_back(static_cast<uint16_t>(
        16000 + std::lround(-3000 + 6000.0 * static_cast<double>(i % 128 - 32) / 63)));
  }
  const auto energy = [&](bool is_literal, uint32_t* beyond) {
    Matching m = one_block(mask, frame);
    m.config.literal = is_literal;
    m.shift = 0;
    const BlockMatch match = m.run().front();
    if (beyond != nullptr) *beyond = match.overflow;
    return ehd(match.before);
  };
  uint32_t beyond = 0;
  const double wrapped = energy(false, &beyond);
  CHECK(wrapped < 0.03);
  CHECK(energy(true, nullptr) > 0.3);
  CHECK(beyond > 3000);
}

TEST_CASE("a pass refines the field of an earlier one") {
  Matching m = one_block(textured(kSize, 0, 0, 10, 1), textured(kSize, 5.3, -4.6, 10, 2));
  const BlockGrid coarse = make_block_grid(kSize, {64, 64, 1}, {64, 64, 1});
  m.base_grid = &coarse;
  m.base.assign(4, Vec3i{5 * 65536 + 6554, -4 * 65536 - 13107, 0});  // (5.1, -4.2)
  m.config.range = 2;
  const BlockMatch match = m.run().front();
  CHECK(pixels(match.vector.x) == Approx(5.3).margin(0.06));
  CHECK(pixels(match.vector.y) == Approx(-4.6).margin(0.06));
  // A base field of 0 samples what whole pixels without one do.
  Matching still = m;
  still.base.assign(4, Vec3i{});
  still.config.range = 10;
  Matching without = still;
  without.base_grid = nullptr;
  const std::vector<BlockMatch> a = still.run(), b = without.run();
  CHECK(same_bytes(a, b));
}

TEST_CASE("a pass over an earlier field knows noise from texture") {
  const auto unreliable = [](const Image& mask, const Image& frame) {
    Matching m;
    m.size = kSize;
    m.mask = mask;
    m.frames = frame;
    m.grid = make_block_grid(kSize, {48, 48, 1}, {16, 16, 1});
    m.base_grid = &m.grid;
    m.base.assign(static_cast<size_t>(m.grid.blocks()), Vec3i{});
    m.config.range = 2;
    m.shift = 3;
    std::vector<BlockMatch> all = m.run(2);
    const Vec3i no_shift{};
    solve_motion(m.grid, std::span(&no_shift, 1), all, {});
    return std::count_if(all.begin(), all.end(), [](const BlockMatch& match) {
      return (match.flags & kBlockUnreliable) != 0;
    });
  };
  CHECK(unreliable(noise_image(kSize, 80, 1), noise_image(kSize, 80, 2)) == 36);
  CHECK(unreliable(textured(kSize, 0, 0, 20, 1), textured(kSize, 0.8, -0.6, 20, 2)) == 0);
}

TEST_CASE("the window moves with its centre, and its edge is told") {
  Matching m = one_block(textured(kSize, 0, 0), textured(kSize, 14, 0));
  m.config.range = 4;
  BlockMatch match = m.run().front();
  CHECK((match.flags & kBlockAtEdge) != 0);
  m.centre = {12, 1, 0};
  match = m.run().front();
  CHECK(pixels(match.vector.x) == Approx(14).margin(0.02));
  CHECK(match.flags == 0);
  m.centre = {10, 0, 0};
  match = m.run().front();
  CHECK((match.flags & kBlockAtEdge) != 0);
}

TEST_CASE("blocks at the border compare what lies in the image") {
  for (const bool is_literal : {false, true}) {
    Matching m;
    m.size = {128, 128, 1};
    m.mask = textured(kSize, 0, 0, 10, 1);
    m.frames = textured(kSize, 6.5, 5.5, 10, 2);
    m.grid = make_block_grid(kSize, {64, 64, 1}, {64, 64, 1});
    m.config.literal = is_literal;
    for (const BlockMatch& match : m.run()) {
      if (!is_literal) CHECK(pixels(match.vector.x) == Approx(6.5).margin(0.1));
      if (!is_literal) CHECK(pixels(match.vector.y) == Approx(5.5).margin(0.1));
      CHECK((match.best.count < 4096) == !is_literal);
    }
  }
}

TEST_CASE("the width of bins follows the noise") {
  const auto shift = [](double sigma, int bits, bool is_literal, const Vec3i* centre = nullptr) {
    const Context context = context_of();
    const Image mask = noise_image(kSize, 0, 1), frame = noise_image(kSize, sigma, 2);
    DsaConfig config;
    config.literal = is_literal;
    SampleTable table;
    table.bits = bits;
    const SampleFrames frames{kSize, 1, Buffer<uint16_t>(Device::cpu(), frame)};
    return bin_shifts(frames, mask.data(), centre, table, config, context).data()[0];
  };
  CHECK(shift(5, 12, false) == 2);  // one grey value
  CHECK(shift(5, 8, false) == 0);   // a quarter of one
  CHECK(shift(70, 12, false) == 4);
  CHECK(shift(300, 12, false) == 6);
  CHECK(shift(300, 12, true) == 2);
  const Vec3i away{500, 0, 0};  // nothing to compare
  CHECK(shift(300, 12, false, &away) == 2);
}
