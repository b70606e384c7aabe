// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/field/field.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/literal.h"
#include "tests/unit/dsa/dsa_fixtures.h"

namespace {

using namespace larch;
using namespace larch::dsa;
using fixtures::q16;
using fixtures::vector_of;

BlockGrid grid_of(const Vec3i& blocks, int32_t side = 64) {
  const bool is_volume = blocks.z > 1;
  const Vec3i block{side, side, is_volume ? side : 1};
  return make_block_grid({blocks.x * side, blocks.y * side, is_volume ? blocks.z * side : 1}, block,
                         block);
}

std::vector<BlockMatch> matches_of(const std::vector<Vec3i>& vectors) {
  std::vector<BlockMatch> matches(vectors.size());
  for (size_t i = 0; i < vectors.size(); ++i) matches[i].vector = matches[i].found = vectors[i];
  return matches;
}

std::vector<BlockMatch> replaced(std::vector<BlockMatch> matches, const BlockGrid& grid) {
  Context context;
  context.threads = 2;
  replace_inconsistent(grid, matches, context);
  return matches;
}
int64_t count_replaced(const std::vector<BlockMatch>& matches) {
  return std::count_if(matches.begin(), matches.end(),
                       [](const BlockMatch& m) { return (m.flags & kBlockReplaced) != 0; });
}

/// The dense field of one frame in pixels, by pixel.
Vec3d field_at(const BlockGrid& grid, const std::vector<Vec3i>& vectors, BorderField border,
               const Vec3i& at) {
  const FieldGrid places = make_field_grid(grid, Device::cpu());
  const FieldView view = places.view(vectors.data(), border);
  const Vec3i d = field_q16(field_sum(view, axis_weights(view.axes[0], border, at.x),
                                      axis_weights(view.axes[1], border, at.y),
                                      axis_weights(view.axes[2], border, at.z)));
  return d.cast<double>() / 65536.0;
}

/// A rotation about the centre of the image at the centres of blocks.
std::vector<Vec3i> rotation(const BlockGrid& grid, double degrees) {
  const double a = degrees * std::numbers::pi / 180;
  std::vector<Vec3i> vectors;
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    const double x = (grid.twice_centre(b).x - grid.image.x + 1) / 2.0;
    const double y = (grid.twice_centre(b).y - grid.image.y + 1) / 2.0;
    vectors.push_back(vector_of(x * (std::cos(a) - 1) - y * std::sin(a),
                                x * std::sin(a) + y * (std::cos(a) - 1)));
  }
  return vectors;
}

}  // namespace

TEST_CASE("a ring of zeros halves uniform motion at the edge of the image, clamping keeps it") {
  const BlockGrid grid = grid_of({8, 8, 1});
  const std::vector<Vec3i> uniform(64, vector_of(4, -2));
  // One pitch of 64 beyond the centre at 31.5 the ring lies at -32.5: 32.5 of 64 at pixel 0.
  const Vec3d edge = field_at(grid, uniform, BorderField::kZero, {0, 256, 0});
  CHECK(edge.x == Approx(4 * 65.0 / 128).margin(1e-4));
  CHECK(edge.y == Approx(-2 * 65.0 / 128).margin(1e-4));
  CHECK(field_at(grid, uniform, BorderField::kZero, {0, 0, 0}).x ==
        Approx(4 * 0.257874).margin(1e-4));
  CHECK(field_at(grid, uniform, BorderField::kZero, {100, 300, 0}).x == 4);
  for (const BorderField border : {BorderField::kClamp, BorderField::kLinear}) {
    for (int32_t y = 0; y < 512; y += 73) {
      for (int32_t x = 0; x < 512; x += 7) {
        CHECK(field_at(grid, uniform, border, {x, y, 0}).x == 4);
      }
    }
  }
}

TEST_CASE("a linear field is reproduced between centres, and beyond them by the linear border") {
  const BlockGrid grid = make_block_grid({1000, 300, 1}, {64, 64, 1}, {64, 64, 1});
  std::vector<Vec3i> vectors;
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    const Vec3i c = grid.twice_centre(b);
    vectors.push_back({c.x * 16, c.y * -24, 0});  // in Q16
  }
  for (const Vec3i at :
       {Vec3i{500, 100, 0}, Vec3i{32, 32, 0}, Vec3i{967, 267, 0}, Vec3i{93, 94, 0}}) {
    CHECK(field_at(grid, vectors, BorderField::kClamp, at).x * 65536 == 32 * at.x);
    CHECK(field_at(grid, vectors, BorderField::kClamp, at).y * 65536 == -48 * at.y);
  }
  CHECK(field_at(grid, vectors, BorderField::kLinear, {0, 299, 0}).x == 0);
  CHECK(field_at(grid, vectors, BorderField::kLinear, {0, 299, 0}).y * 65536 == -48 * 299);
}

TEST_CASE("the dense field of a box is rounded once, halves up") {
  for (const BlockGrid& grid : {make_block_grid({150, 90, 1}, {64, 64, 1}, {48, 40, 1}),
                                make_block_grid({40, 36, 33}, {16, 16, 16}, {12, 16, 9})}) {
    std::vector<Vec3i> vectors;
    for (int64_t b = 0; b < grid.blocks(); ++b) {
      const auto draw = [&](uint64_t k) { return 254 * hash_unit(8, k, b) - 127; };
      vectors.push_back(vector_of(draw(0), draw(1), grid.image.z > 1 ? draw(2) : 0));
    }
    const FieldGrid places = make_field_grid(grid, Device::cpu());
    for (const BorderField border :
         {BorderField::kClamp, BorderField::kZero, BorderField::kLinear}) {
      const FieldView view = places.view(vectors.data(), border);
      const Vec3i first{5, 3, 0}, size = grid.image - first;
      std::vector<Vec3i> box;
      find_field_in_box(view, first, size, box);
      for (size_t i = 0; i < box.size(); ++i) {
        const auto pixel = static_cast<int32_t>(i);
        const Vec3i at{pixel % size.x, pixel / size.x % size.y, pixel / size.x / size.y};
        const FieldSum sum = field_sum_at_half(view, (first + at) * 2);
        for (int c = 0; c < 3; ++c) {
          const int64_t units =
              floor_quotient(sum.of[c] * kUnit + (sum.whole << 15), sum.whole << kVectorBits);
          REQUIRE(box[i][c] == units);
        }
      }
    }
  }
}

TEST_CASE("vectors of one grid at the centres of another") {
  const BlockGrid from = grid_of({8, 8, 1}), to = grid_of({16, 16, 1}, 32);
  std::vector<Vec3i> vectors;
  vectors.reserve(static_cast<size_t>(from.blocks()));
  for (int32_t b = 0; b < from.blocks(); ++b)
    vectors.emplace_back(Vec3i{from.twice_centre(b).x * 64, 0, 0});
  const auto at = vectors_at(to, from, vectors, BorderField::kClamp);
  REQUIRE(at.size() == 256);
  CHECK(at[17].x == to.twice_centre(17).x * 64 + 32 * 64 - 32 * 64);
  CHECK(at[16].x == from.twice_centre(0).x * 64);  // clamped
}

TEST_CASE("a spline goes through the vectors of blocks, and bends without kinks") {
  const BlockGrid grid = grid_of({9, 7, 1}, 51);  // centres are pixels
  const int32_t width = grid.image.x;
  std::vector<Vec3i> vectors;
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    const auto draw = [&](uint64_t k) {
      return 20 * hash_unit(4, k, static_cast<uint64_t>(b)) - 10;
    };
    vectors.push_back(vector_of(draw(0), draw(1)));
  }
  const auto field = spline_field(grid, vectors, fixtures::context_of(2)).to_vector();
  REQUIRE(field.size() == static_cast<size_t>(width * grid.image.y));
  CHECK(field == spline_field(grid, vectors, fixtures::context_of(1)).to_vector());
  for (int32_t b = 0; b < grid.blocks(); ++b) {
    const Vec3i c = grid.twice_centre(b);
    const int32_t pixel = c.y / 2 * width + c.x / 2;
    const Vec3i d = field[static_cast<size_t>(pixel)] - vectors[static_cast<size_t>(b)];
    CHECK(std::max({std::abs(d.x), std::abs(d.y), std::abs(d.z)}) <= 2);
  }
  // Third differences: with the bilinear field a kink is one of second differences.
  const Vec3i* row = field.data() + int64_t{140} * width;
  const double bend = 10 * 65536.0 * 12 / (51.0 * 51 * 51);
  for (int32_t x = 2; x + 1 < width; ++x) {
    const int32_t third = row[x + 1].x - 3 * row[x].x + 3 * row[x - 1].x - row[x - 2].x;
    CHECK(std::abs(third) < 12 * bend + 8);
  }
}

TEST_CASE("a spline keeps uniform motion and slopes") {
  const BlockGrid grid = make_block_grid({200, 150, 1}, {64, 64, 1}, {16, 20, 1});
  const Context context;
  const auto at = [&](const std::vector<Vec3i>& field, int32_t x, int32_t y) {
    const int32_t pixel = y * 200 + x;
    return field[static_cast<size_t>(pixel)];
  };
  const std::vector<Vec3i> uniform(2 * static_cast<size_t>(grid.blocks()), vector_of(3, -4));
  for (const Vec3i& v : spline_field(grid, uniform, context).to_vector()) {
    CHECK(v == vector_of(3, -4));
  }
  std::vector<Vec3i> slopes;
  slopes.reserve(static_cast<size_t>(grid.blocks()));
  for (int32_t b = 0; b < grid.blocks(); ++b)
    slopes.push_back({grid.twice_centre(b).x * 640, 0, 0});
  const Buffer<Vec3i> field = spline_field(grid, slopes, context);
  const auto linear = field.to_vector();
  for (int32_t x = 60; x < 140; ++x) CHECK(std::abs(at(linear, x, 75).x - x * 1280) < 700);
  CHECK(least_jacobians(grid.image, field, context).at(0) == Approx(1).margin(0.03));
  const BlockGrid one = make_block_grid({40, 30, 1}, {64, 64, 1}, {64, 64, 1});
  for (const Vec3i& v :
       spline_field(one, std::vector<Vec3i>{vector_of(1, 2)}, context).to_vector()) {
    CHECK(v == vector_of(1, 2));
  }
}

TEST_CASE("the shape of a field: folds, longest vector") {
  const BlockGrid grid = grid_of({4, 4, 1});
  std::vector<Vec3i> vectors(16, vector_of(0, 0));
  CHECK(shape_of_field(grid, vectors, BorderField::kClamp).least_jacobian == 1);
  vectors[5] = vector_of(8, 0);
  FieldShape shape = shape_of_field(grid, vectors, BorderField::kClamp);
  CHECK(shape.least_jacobian == Approx(1 - 8.0 / 64));
  CHECK(shape.longest_px == Approx(8));
  CHECK(shape.mean_px == Approx(0.5));
  vectors[5] = vector_of(70, 0);
  CHECK(shape_of_field(grid, vectors, BorderField::kClamp).least_jacobian < 0);
  const std::vector<Vec3i> uniform(16, vector_of(8, 0));
  CHECK(shape_of_field(grid, uniform, BorderField::kClamp).least_jacobian == 1);
  CHECK(shape_of_field(grid, uniform, BorderField::kLinear).least_jacobian == 1);
  CHECK(shape_of_field(grid, uniform, BorderField::kZero).least_jacobian == Approx(1 - 8.0 / 64));
}

TEST_CASE("the patent's rule repairs what contradicts its neighbours and nothing else") {
  const BlockGrid grid = grid_of({5, 5, 1});
  std::vector<Vec3i> vectors(25, vector_of(2, 1));
  SECTION("the centre") {
    vectors[12] = vector_of(-6, 4);
    const auto out = replaced(matches_of(vectors), grid);
    CHECK(out[12].vector == vector_of(2, 1));
    CHECK(out[12].found == vector_of(-6, 4));
    CHECK(count_replaced(out) == 1);
  }
  SECTION("a corner") {
    vectors[0] = vector_of(9, -9);
    const auto out = replaced(matches_of(vectors), grid);
    CHECK(out[0].vector == vector_of(2, 1));
    CHECK(count_replaced(out) == 1);
  }
  SECTION("a rotation by two degrees contradicts it") {
    const BlockGrid eight = grid_of({8, 8, 1});
    CHECK(count_replaced(replaced(matches_of(rotation(eight, 2)), eight)) > 0);
  }
  SECTION("zeros are vectors, and small ones among them are noise") {
    std::vector<Vec3i> zeros(25);
    CHECK(count_replaced(replaced(matches_of(zeros), grid)) == 0);
    zeros[12] = vector_of(0.2, 0);
    const auto out = replaced(matches_of(zeros), grid);
    CHECK(count_replaced(out) == 0);
    CHECK(out[12].vector == vector_of(0.2, 0));
  }
}

TEST_CASE("ratio and angle of two vectors") {
  // Three blocks in a row: the middle one is replaced if both of its neighbours contradict it.
  const BlockGrid grid = grid_of({3, 1, 1});
  const auto contradict = [&](const Vec3i& a, const Vec3i& b) {
    return (replaced(matches_of({b, a, b}), grid)[1].flags & kBlockReplaced) != 0;
  };
  CHECK_FALSE(contradict(vector_of(2, 0), vector_of(4, 0)));
  CHECK(contradict(vector_of(2, 0), vector_of(4.01, 0)));
  CHECK(contradict(vector_of(4.01, 0), vector_of(2, 0)));
  CHECK_FALSE(contradict(vector_of(0.1, 0), vector_of(-0.4, 0.2)));  // short ones have no direction
  CHECK_FALSE(contradict(vector_of(0.1, 0), vector_of(0, 1)));
  CHECK(contradict(vector_of(0.1, 0), vector_of(0, 1.01)));
  const auto turned = [](double degrees) {
    const double a = degrees * std::numbers::pi / 180;
    return vector_of(3 * std::cos(a), 3 * std::sin(a));
  };
  CHECK_FALSE(contradict(vector_of(3, 0), turned(59.9)));
  CHECK(contradict(vector_of(3, 0), turned(60.1)));
  CHECK(contradict(vector_of(3, 0), turned(180)));
  CHECK(contradict(vector_of(100, 100, 100), vector_of(-100, -100, 100)));  // no product overflows
}

TEST_CASE("blocks outside are filled outwards from those that were searched") {
  const BlockGrid grid = grid_of({7, 1, 1});
  auto matches = matches_of(std::vector<Vec3i>(7, vector_of(9, 9)));
  for (BlockMatch& m : matches) m.flags = kBlockOutside;
  SECTION("none: zero, and a frame beside it is no neighbour") {
    auto two = matches;
    for (BlockMatch m : matches) {
      m.flags = 0;
      two.push_back(m);
    }
    const auto out = replaced(two, grid);
    for (size_t i = 0; i < 7; ++i) CHECK(out[i].vector == Vec3i{});
    for (size_t i = 7; i < 14; ++i) CHECK(out[i].vector == vector_of(9, 9));
  }
  SECTION("from one end") {
    matches[6].flags = 0;
    matches[6].vector = vector_of(1, 2);
    const auto out = replaced(matches, grid);
    for (const BlockMatch& m : out) CHECK(m.vector == vector_of(1, 2));
    CHECK(count_replaced(out) == 6);
    CHECK((out[0].flags & kBlockOutside) != 0);
  }
}

TEST_CASE("a volume has 26 neighbours") {
  const BlockGrid grid = grid_of({3, 3, 3}, 16);
  std::vector<Vec3i> vectors(27, vector_of(2, 1, -3));
  vectors[13] = vector_of(-5, 0, 4);
  const auto out = replaced(matches_of(vectors), grid);
  CHECK(out[13].vector == vector_of(2, 1, -3));
  CHECK(count_replaced(out) == 1);
}
