// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/match/search_math.h"
#include "larch/dsa/sampling/interpolation_math.h"
#include "larch/dsa/similarity/frame_scores.h"

namespace {

using namespace larch;
using namespace larch::dsa;

/// A block whose similarity is a hill: of EHD h / (1 + steepness * squared distance).
struct Hill {
  double x = 0, y = 0;  ///< pixels
  double height = 0.4, steepness = 0.05;
  std::vector<Vec3i> tried{};
  Vec3i origin{};

  Score one(const Vec3i& units) {
    const double dx = units.x / 320.0 - x, dy = units.y / 320.0 - y;
    const double u = height / (1 + steepness * (dx * dx + dy * dy));
    return {static_cast<uint64_t>(u * 4096 * 4095) + 4096, 4096, 0};
  }
  /// Conjugate directions in a window around 0, at whole pixels and tenths.
  Found directions(int rounds) {
    Score best;
    return search_directions(
        {}, 2, 10, rounds, Ranking{},
        [this](const Vec3i& units) {
          tried.push_back(units);
          return one(units);
        },
        best);
  }
  Found window(const SearchPlan& plan, const Ranking& ranking) {
    Found window;
    window.whole.score = one(plan.centre * kUnit);
    for (int y0 = -plan.range; y0 <= plan.range; ++y0) {
      for (int x0 = -plan.range; x0 <= plan.range; ++x0) {
        const Candidate next{{x0, y0, 0}, one((plan.centre + Vec3i{x0, y0, 0}) * kUnit)};
        if (wins(next, window.whole, ranking)) window.whole = next;
      }
    }
    const auto score_at = [&](const Vec3i& at) { return one((plan.centre + at) * kUnit); };
    window.bend = bend_of_window(plan, ranking, window.whole, 0, 1, score_at,
                                 [](int64_t sum) { return sum; });
    return window;
  }
  void fill(const Vec3i& at, int, int, int, int) { origin = at; }
  Score score(int i, int j) { return one(origin + Vec3i{i, j, 0} * kTenth); }
  int64_t similarity(int i, int j) { return Ranking{}.similarity(score(i, j)); }
};

Score score_of(const std::vector<uint64_t>& histogram,
               const std::vector<uint64_t>* terms = nullptr) {
  Score score;
  for (const uint64_t h : histogram) {
    score.sum += terms == nullptr ? h * h : (*terms)[h];
    score.count += static_cast<uint32_t>(h);
  }
  return score;
}

}  // namespace

TEST_CASE("energy and entropy of known histograms") {
  const std::vector<uint64_t> terms = entropy_terms(4096);
  const Ranking entropy{Metric::kEntropy, terms.data(), 2};
  struct Known {
    std::vector<uint64_t> histogram;
    uint64_t squares;
    double entropy;
  };
  const Known all[] = {{{4096}, 16777216, 0},
                       {{2048, 2048}, 8388608, std::log(2)},
                       {std::vector<uint64_t>(4096, 1), 4096, 8.317766},
                       {{3072, 1024}, 10485760, 0.562335}};
  for (const Known& known : all) {
    CHECK(score_of(known.histogram).sum == known.squares);
    const int64_t q = entropy.similarity(score_of(known.histogram, &terms));
    CHECK(-static_cast<double>(q) / 4294967296.0 == Approx(known.entropy).margin(1e-6));
  }
  CHECK(similarity_q32(score_of({4096})) == int64_t{1} << 32);
}

TEST_CASE("bins are centred and overflow wraps, or literally is kept at the ends") {
  CHECK(bin_number(0, 0, 2) == 0);
  CHECK(bin_number(1, 0, 2) == 0);
  CHECK(bin_number(2, 0, 2) == 1);
  CHECK(bin_number(-2, 0, 2) == 0);
  CHECK(bin_number(-3, 0, 2) == -1);
  CHECK(bin_number(7, 5, 0) == 2);
  CHECK(bin_index(-512) == 0);
  CHECK(bin_index(511) == 1023);
  CHECK(bin_index(512) == 0);
  CHECK(bin_index(-513) == 1023);
  CHECK(clamped_bin(511) == 1023);
  CHECK(clamped_bin(512) == 1023);
  CHECK(clamped_bin(-513) == 0);
  CHECK(rounded_to_bins(-5, 2) == -4);
  CHECK(rounded_to_bins(6, 2) == 8);
  // A standard deviation of 16 steps: a quarter is 4.
  CHECK(bin_shift_of(11, 0) == 2);
  CHECK(bin_shift_of(10, 0) == 1);
  CHECK(bin_shift_of(0, 2) == 2);
}

TEST_CASE("candidates with other counts are compared without bias, exactly") {
  const Ranking ehd;
  // U = (A - n) / (n (n - 1)): 1/3 of 4 pixels against the same of 7.
  const Score a{4 + 4, 4, 0}, b{7 + 14, 7, 0};
  CHECK_FALSE(ehd.is_better(a, b));
  CHECK_FALSE(ehd.is_better(b, a));
  CHECK(ehd.is_better({4 + 5, 4, 0}, b));
  CHECK(ehd.is_better(b, {1, 1, 0}));
  CHECK_FALSE(ehd.is_better({1, 1, 0}, {1, 1, 0}));
  const Ranking half{Metric::kEhd, nullptr, 5};
  CHECK(half.is_better(b, {16, 4, 0}));
  CHECK(half.similarity({16, 4, 0}) == kNoSimilarity);
  // Whole frames: products of 80 bits.
  const Score whole{uint64_t{1} << 40, 1 << 20, 0};
  CHECK(ehd.is_better(whole, {(uint64_t{1} << 40) - 1, 1 << 20, 0}));
  CHECK(ehd.is_better(whole, {(uint64_t{1} << 40) - 2000, (1 << 20) + 1, 0}));
}

TEST_CASE("among equals the shortest displacement wins, whatever the order") {
  std::vector<Candidate> all;
  for (int y = -2; y <= 2; ++y) {
    for (int x = -2; x <= 2; ++x) all.push_back({{x, y, 0}, {100, 10, 0}});
  }
  const auto winner = [&] {
    Candidate best = all.front();
    for (const Candidate& c : all) {
      if (wins(c, best, Ranking{})) best = c;
    }
    return best.at;
  };
  CHECK(winner() == Vec3i{0, 0, 0});
  std::reverse(all.begin(), all.end());
  CHECK(winner() == Vec3i{0, 0, 0});
  all = {{{1, 0, 0}, {100, 10, 0}}, {{0, -1, 0}, {100, 10, 0}}, {{-1, 0, 0}, {100, 10, 0}}};
  CHECK(winner() == Vec3i{0, -1, 0});
  all.erase(all.begin() + 1);
  CHECK(winner() == Vec3i{-1, 0, 0});
}

TEST_CASE("the bend of a hill is that of -ln U by least squares, at the edge too") {
  const SearchPlan plan;
  Hill hill;
  hill.x = 3;
  hill.y = -10;  // its points beyond the window are left out
  hill.steepness = 0.001;
  const Found found = search_block(hill, plan, Ranking{});
  CHECK(found.whole.at == Vec3i{3, -10, 0});
  // U = h / (1 + s r^2) has the second derivative -2 s h at its top.
  CHECK(std::ldexp(found.bend.xx, -kBendBits) == Approx(0.002).epsilon(0.03));
  CHECK(std::ldexp(found.bend.yy, -kBendBits) == Approx(0.002).epsilon(0.06));
  CHECK(std::abs(found.bend.xy) <= 20);
  CHECK(found.bend.zz == 0);
  Hill flat;
  flat.steepness = 0;
  CHECK(search_block(flat, plan, Ranking{}).bend.xx == 0);
}

TEST_CASE("conjugate directions evaluate as many displacements as the literature says") {
  struct Known {
    int x, y;
    uint32_t whole;
  };
  for (const Known& k : {Known{0, 0, 5}, Known{3, -4, 12}, Known{10, 10, 23}, Known{-10, 2, 16}}) {
    Hill hill;
    hill.x = k.x;
    hill.y = k.y;
    const Found found = hill.directions(1);
    CHECK(hill.tried.size() == k.whole + 4);  // and the neighbours a tenth away
    CHECK(found.whole.at == Vec3i{k.x, k.y, 0});
  }
  Hill far;
  far.x = far.y = 10.5;
  const Found found = far.directions(1);
  CHECK(far.tried.size() == 35);
  CHECK(found.vector == Vec3i{10 * 65536 + 32768, 10 * 65536 + 32768, 0});
  CHECK(found.at_edge);
}

TEST_CASE("conjugate directions stay in the window and stop where nothing moves") {
  Hill hill;
  hill.x = 30;
  hill.y = -30;
  const Found found = hill.directions(1);
  CHECK(found.whole.at == Vec3i{10, -10, 0});
  for (const Vec3i& units : hill.tried) {
    CHECK(std::abs(units.x) <= 10 * kUnit + kUnit / 2);
    CHECK(std::abs(units.y) <= 10 * kUnit + kUnit / 2);
  }
  // All alike: nothing is strictly better than the start.
  Hill flat;
  flat.steepness = 0;
  CHECK(flat.directions(4).vector == Vec3i{});
  CHECK(flat.tried.size() == 9);
}

TEST_CASE("both neighbours equally better: the positive direction") {
  Candidate current{{0, 0, 0}, {10, 5, 0}};
  conjugate_directions(current, 1, 1, 1, Ranking{}, [](const Vec3i&) { return Score{20, 5, 0}; });
  CHECK(current.at == Vec3i{1, 0, 0});
}

TEST_CASE("a quadratic's top is found exactly") {
  for (const int radius : {2, 5}) {
    QuadraticSums sums;
    const double tx = 0.734, ty = -1.21;
    for (int j = -radius; j <= radius; ++j) {
      for (int i = -radius; i <= radius; ++i) {
        const double dx = i - tx, dy = j - ty;
        const double q = 1e9 - 1e6 * (2 * dx * dx + dx * dy + 1.5 * dy * dy);
        sums.add(i, j, radius, std::llround(q));
      }
    }
    const Optimum top = quadratic_top(sums, radius);
    REQUIRE(top.found);
    CHECK(top.x / 65536.0 == Approx(tx).margin(2e-5));
    CHECK(top.y / 65536.0 == Approx(ty).margin(2e-5));
  }
  QuadraticSums valley, saddle, plain;
  for (int j = -2; j <= 2; ++j) {
    for (int i = -2; i <= 2; ++i) {
      valley.add(i, j, 2, 1000 * (i * i + j * j));
      saddle.add(i, j, 2, 1000 * (i * i - j * j));
      plain.add(i, j, 2, 1000 * i);
    }
  }
  CHECK_FALSE(quadratic_top(valley, 2).found);
  CHECK_FALSE(quadratic_top(saddle, 2).found);
  CHECK_FALSE(quadratic_top(plain, 2).found);
  // The largest similarities there can be: one top of 2^32 above 0 all around.
  QuadraticSums peak;
  for (int j = -5; j <= 5; ++j) {
    for (int i = -5; i <= 5; ++i) peak.add(i, j, 5, i == 0 && j == 0 ? int64_t{1} << 32 : 0);
  }
  const Optimum top = quadratic_top(peak, 5);
  CHECK(top.found);
  CHECK(top.x == 0);
  CHECK(top.y == 0);
}

TEST_CASE("a parabola's top") {
  CHECK(parabola_top(-4, -1, -4) == 0);
  CHECK(parabola_top(-9, -1, -1) == 32768);
  CHECK(parabola_top(-10, -1, -4) == 16384);
  CHECK(parabola_top(-1, -1, -9) == -32768);
  CHECK(parabola_top(0, 0, 0) == 0);
  CHECK(parabola_top(5, 0, 5) == 0);
}

TEST_CASE("weights keep the strength of noise, the sum and the place") {
  const TapTable gain = gain_taps();
  for (int f = -kUnit / 2; f <= kUnit / 2; ++f) {
    const Taps& t = gain.at[f + kUnit / 2];
    const double w[3] = {t.w[0] / 4096.0, t.w[1] / 4096.0, t.w[2] / 4096.0};
    CHECK(t.w[0] + t.w[1] + t.w[2] == 4096);
    CHECK(w[2] - w[0] == Approx(static_cast<double>(f) / kUnit).margin(2e-4));
    CHECK(w[0] * w[0] + w[1] * w[1] + w[2] * w[2] == Approx(0.5).margin(4e-4));
    CHECK(std::min({t.w[0], t.w[1], t.w[2]}) >= 0);
  }
  const Taps& middle = gain.at[kUnit / 2];
  CHECK(middle.w[0] == 683);
  CHECK(middle.w[1] == 2730);
  CHECK(gain.at[kUnit].w[0] == 0);
  CHECK(gain.at[kUnit].w[1] == 2048);
  const Taps& third = gain.at[kUnit / 2 + 96];  // f = 0.3
  CHECK(third.w[0] == 168);
  CHECK(third.w[1] == 2532);
  CHECK(third.w[2] == 1396);
}

TEST_CASE("displacements are split at the nearest pixel and rounded halves up") {
  for (int32_t units = -1000; units <= 1000; ++units) {
    const dsa::Step step = split_step(units);
    CHECK(step.pixel * kUnit + step.fraction == units);
    CHECK(step.fraction >= -kUnit / 2);
    CHECK(step.fraction < kUnit / 2);
    CHECK(units_of(q16_of(units)) == units);
  }
  CHECK(split_step(160).pixel == 1);
  CHECK(split_step(-160).pixel == 0);
}

TEST_CASE("blocks cover an image evenly") {
  const auto starts = [](int32_t w, int32_t block, int32_t step) {
    return make_block_grid({w, 64, 1}, {block, 64, 1}, {step, 64, 1}).starts[0];
  };
  CHECK(starts(1000, 64, 64) == std::vector<int32_t>{0, 62, 125, 187, 250, 312, 374, 437, 499, 562,
                                                     624, 686, 749, 811, 874, 936});
  CHECK(starts(63, 64, 64) == std::vector<int32_t>{0});
  CHECK(make_block_grid({63, 64, 1}, {64, 64, 1}, {64, 64, 1}).block == Vec3i{63, 64, 1});
  CHECK(starts(65, 64, 64) == std::vector<int32_t>{0, 1});
  CHECK(starts(128, 64, 32) == std::vector<int32_t>{0, 32, 64});
}

TEST_CASE("passes are read, and refused where they are none") {
  DsaConfig config;
  const auto passes = [&](const std::string& text) {
    config.passes = text;
    return passes_of(config, false);
  };
  CHECK(passes("").size() == 2);
  CHECK(passes("").front().block == 64);
  CHECK(passes("").back().step == 24);
  CHECK(passes_of(config, true).front().block == 16);
  CHECK(passes_of(config, true).front().step == 16);
  config.literal = true;
  CHECK(passes("").size() == 1);
  CHECK(passes("32/16").front().step == 16);
  CHECK_THROWS_AS(passes("64/64,64/32"), UsageError);
  config.literal = false;
  const std::vector<Pass> three = passes("64/64,64/32,48/16");
  REQUIRE(three.size() == 3);
  CHECK(three[2].block == 48);
  CHECK(three[2].step == 16);
  CHECK(passes("32").front().step == 32);
  for (const char* wrong : {"64/", "/64", "64/65", "7/7", "256/64", "64/64,", "64x64", "64/0",
                            "64/64/64", "99999999999999999999/1", " "}) {
    CHECK_THROWS_AS(passes(wrong), UsageError);
  }
}
