// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The vectors of all blocks of a frame, solved for together.
#include "larch/dsa/field/motion_solve.h"

#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "tests/unit/dsa/dsa_fixtures.h"

using namespace larch;
using namespace larch::dsa;

namespace {

constexpr double kOne = 1 << kVectorBits;

Vec3i q16(const Vec3d& px) {
  return fixtures::vector_of(px.x, px.y, px.z);
}

BlockGrid picture() {
  return make_block_grid({640, 512, 1}, {64, 64, 1}, {64, 64, 1});
}

/// A block that knows its motion in all directions, by a bend of 2^-`weak`, and one that sees an
/// edge across x.
BlockMatch textured(const Vec3d& found_px, int weak = 2) {
  BlockMatch match;
  match.found = q16(found_px);
  match.counted = 4096;
  match.bend.xx = match.bend.yy = match.bend.zz = 1 << (kBendBits - weak);
  return match;
}
BlockMatch edge(const Vec3d& found_px) {
  BlockMatch match = textured(found_px);
  match.bend.yy = match.bend.zz = 0;
  return match;
}

/// Affine motion at the centre of a block, pixels.
Vec3d affine(const BlockGrid& grid, int32_t block) {
  const Vec3d at = grid.twice_centre(block).cast<double>() / 2;
  return {3 + 0.01 * at.y, -2 + 0.004 * at.x, 0};
}

double error_of(const BlockGrid& grid, const std::vector<BlockMatch>& frame, int axes = 2) {
  double worst = 0;
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    Vec3d off = frame[static_cast<size_t>(b)].vector.cast<double>() / kOne - affine(grid, b);
    if (axes < 2) off.y = 0;
    worst = std::max(worst, norm(off));
  }
  return worst;
}

void solve(const BlockGrid& grid, std::vector<BlockMatch>& frame, const Vec3i& shift = {}) {
  solve_motion(grid, std::span(&shift, 1), frame, {});
}

template <class Make>
std::vector<BlockMatch> frame_of(const BlockGrid& grid, const Make& make) {
  std::vector<BlockMatch> frame(static_cast<size_t>(grid.blocks()));
  for (int32_t b = 0; b < grid.blocks(); ++b) frame[static_cast<size_t>(b)] = make(b);
  return frame;
}

}  // namespace

TEST_CASE("affine motion stays as it was found, and noise of blocks is averaged") {
  const BlockGrid grid = picture();
  auto exact = frame_of(grid, [&](int32_t b) { return textured(affine(grid, b)); });
  solve(grid, exact);
  CHECK(error_of(grid, exact) < 0.005);
  for (const BlockMatch& m : exact) CHECK(m.flags == 0);
  double before = 0, after = 0;
  auto noisy = frame_of(grid, [&](int32_t b) {
    const auto noise = [&](uint64_t axis) { return 0.4 * (hash_unit(4, axis, b) - 0.5); };
    return textured(affine(grid, b) + Vec3d{noise(1), noise(2), 0}, 5);
  });
  const auto found = noisy;
  solve(grid, noisy);
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    const auto i = static_cast<size_t>(b);
    before += norm(found[i].found.cast<double>() / kOne - affine(grid, b));
    after += norm(noisy[i].vector.cast<double>() / kOne - affine(grid, b));
  }
  CHECK(after < 0.85 * before);
}

TEST_CASE("a block that sees one edge takes the motion along it from its neighbours") {
  const BlockGrid grid = picture();
  auto frame = frame_of(grid, [&](int32_t b) {
    const Vec3d true_px = affine(grid, b);
    if (grid.at(b).x < 3) return textured(true_px);
    return edge({true_px.x, 20 * (hash_unit(5, 1, b) - 0.5), 0});  // along the edge: anything
  });
  solve(grid, frame);
  CHECK(error_of(grid, frame) < 0.25);
  CHECK(std::isinf(frame.back().most_deviation_px));
  CHECK(frame.back().least_deviation_px == Approx(1 / std::sqrt(4096 * 0.25)).margin(0.002));
  // Where no block knows it, it is that of the frame.
  auto edges = frame_of(grid, [&](int32_t b) {
    return edge({affine(grid, b).x, 20 * (hash_unit(5, 1, b) - 0.5), 0});
  });
  solve(grid, edges, q16({0, 5, 0}));
  CHECK(error_of(grid, edges, 1) < 0.02);
  for (const BlockMatch& m : edges) CHECK(m.vector.y / kOne == Approx(5).margin(0.1));
}

TEST_CASE("motion may break: both sides keep theirs") {
  const BlockGrid grid = picture();
  auto frame = frame_of(grid, [&](int32_t b) {
    return textured(grid.at(b).x < 5 ? Vec3d{0, 0, 0} : Vec3d{6, -4, 0});
  });
  solve(grid, frame);
  for (const BlockMatch& m : frame) CHECK(norm((m.vector - m.found).cast<double>()) / kOne < 0.2);
}

TEST_CASE("a frame of which no block stands out from noise is not moved") {
  const BlockGrid grid = picture();
  auto frame = frame_of(grid, [&](int32_t b) {
    BlockMatch match = textured({9 * (hash_unit(6, 1, b) - 0.5), 4, 0});
    match.bend.xx = match.bend.yy = 1 << (kBendBits - 7);  // three times that of noise
    return match;
  });
  frame[3].flags = kBlockOutside;
  solve(grid, frame, q16({30, 30, 0}));
  for (const BlockMatch& m : frame) {
    CHECK(m.vector == Vec3i{});
    CHECK((m.flags & kBlockReplaced) != 0);
  }
  CHECK((frame[0].flags & kBlockUnreliable) != 0);
  CHECK(frame[3].flags == (kBlockOutside | kBlockReplaced));
}

TEST_CASE("outside of the region motion fades to the shift of the frame within two blocks") {
  const BlockGrid grid = make_block_grid({640, 192, 1}, {64, 64, 1}, {64, 64, 1});
  const Vec3i shift = q16({1, 2, 0});
  auto frame = frame_of(grid, [&](int32_t b) {
    BlockMatch match = textured({5, 0, 0});
    if (grid.at(b).x >= 6) match.flags = kBlockOutside;
    return match;
  });
  solve(grid, frame, shift);
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    const Vec3d off = (frame[static_cast<size_t>(b)].vector - shift).cast<double>() / kOne;
    if (grid.at(b).x >= 7) CHECK(norm(off) < 0.01);
    if (grid.at(b).x < 5) CHECK(norm(off - Vec3d{4, -2, 0}) < 0.2);
  }
}

TEST_CASE("volumes are solved for along three axes; frames do not depend on each other") {
  const BlockGrid grid = make_block_grid({80, 64, 48}, {16, 16, 16}, {16, 16, 16});
  std::vector<BlockMatch> frames;
  const std::vector<Vec3i> shifts{{}, q16({1, 1, 1}), {}};
  for (size_t f = 0; f < shifts.size(); ++f) {
    for (int32_t b = 0; b < grid.blocks(); ++b) {
      const Vec3d true_px{1.0 + static_cast<double>(f), 0.05 * grid.at(b).z, -2};
      frames.push_back(textured(true_px));
    }
  }
  auto alone = std::vector<BlockMatch>(frames.begin(), frames.begin() + grid.blocks());
  solve(grid, alone);
  Context context;
  context.threads = 3;
  solve_motion(grid, shifts, frames, context);
  for (size_t i = 0; i < alone.size(); ++i) {
    CHECK(frames[i].vector == alone[i].vector);
    const Vec3d true_px{1, 0.05 * grid.at(static_cast<int32_t>(i)).z, -2};
    CHECK(norm(alone[i].vector.cast<double>() / kOne - true_px) < 0.1);
  }
}
