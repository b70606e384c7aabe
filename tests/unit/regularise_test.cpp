// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <limits>
#include <vector>

#include <boost/graph/adjacency_list.hpp>
#include <boost/graph/edmonds_karp_max_flow.hpp>
#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/regularise/band.h"
#include "larch/regularise/graph_cut.h"
#include "tests/unit/box_mask.h"

namespace {

using namespace larch;
using namespace larch::regularise;
using larch::test::grid_of;

Volume<float> random_volume(const Grid& grid, uint64_t stream) {
  Volume<float> p(grid);
  for (int64_t i = 0; i < p.voxels(); ++i) p[i] = static_cast<float>(hash_unit(1, stream, i));
  return p;
}

/// A smooth blob with noise: probabilities that look like a classifier's.
Volume<float> blob(const Grid& grid, double noise) {
  Volume<float> p(grid);
  const Vec3d half = grid.size.cast<double>() / 2.0;
  for (int64_t i = 0; i < p.voxels(); ++i) {
    const Vec3d at = grid.voxel(i).cast<double>() + Vec3d{0.5, 0.5, 0.5} - half;
    const double r = norm(Vec3d{at.x / half.x, at.y / half.y, at.z / half.z});
    const double value = 0.5 + 1.5 * (0.6 - r) + noise * (hash_unit(3, 0, i) - 0.5);
    p[i] = static_cast<float>(std::clamp(value, 0.0, 1.0));
  }
  return p;
}

/// The energy of graph_cut.h, term by term, over dV.
struct Energies {
  double data = 0, area = 0;
};
Energies energies(const Volume<float>& p, const Volume<uint8_t>& labels,
                  const std::vector<EdgeWeight>& weights, const Volume<float>* image = nullptr,
                  double sigma = 1) {
  Energies out;
  const Grid& grid = p.grid();
  for (int64_t i = 0; i < p.voxels(); ++i) {
    out.data += std::fabs(static_cast<double>(p[i]) - labels[i]);
    for (const EdgeWeight& w : weights) {
      const Vec3i to = grid.voxel(i) + w.offset;
      if (!grid.contains(to) || labels[i] == labels(to)) continue;
      const double d = image == nullptr ? 0 : (*image)[i] - (*image)(to);
      out.area += w.area_mm2 / grid.voxel_volume_mm3() * std::exp(-d * d / (2 * sigma * sigma));
    }
  }
  return out;
}

int64_t foreground(const Volume<uint8_t>& labels) {
  return std::count(labels.begin(), labels.end(), 1);
}

GraphCutConfig everything_free(double lambda_mm, int neighbours) {
  GraphCutConfig config;
  config.lambda_mm = lambda_mm;
  config.neighbours = neighbours;
  config.band_low = 0;
  config.band_high = 1;
  return config;
}

}  // namespace

TEST_CASE("graph cut finds the minimum of all labellings") {
  const int neighbours = GENERATE(6, 26);
  const bool contrast = GENERATE(false, true);
  const Vec3i size = GENERATE(Vec3i{2, 2, 3}, Vec3i{3, 4, 1}, Vec3i{1, 2, 6});
  for (int trial = 0; trial < 8; ++trial) {
    const Grid grid = grid_of(size, {1.0, 0.8, 1.7});
    const Volume<float> p = random_volume(grid, trial), image = random_volume(grid, 100 + trial);
    GraphCutConfig config = everything_free(0.05 + 0.1 * trial, neighbours);
    config.sigma = 0.4;
    if (contrast) config.weights = EdgeCost::kContrast;
    const auto weights = crofton_weights(grid, neighbours);
    const auto total = [&](const Volume<uint8_t>& labels) {
      const Energies e = energies(p, labels, weights, contrast ? &image : nullptr, 0.4);
      return e.data + config.lambda_mm * e.area;
    };
    double best = 1e300;
    Volume<uint8_t> labels(grid);
    for (int bits = 0; bits < 1 << 12; ++bits) {
      for (int i = 0; i < 12; ++i) labels[i] = bits >> i & 1;
      best = std::min(best, total(labels));
    }
    const Volume<uint8_t> cut = graph_cut(p, contrast ? &image : nullptr, config, Context{});
    // Costs are rounded to 2^-20 of dV.
    REQUIRE(total(cut) == Approx(best).margin(1e-4));
  }
}

/// The smallest source side of a minimum cut by another library, on a graph of all
/// voxels, with the costs of graph_cut.h in integers.
Volume<uint8_t> smallest_cut(const Volume<float>& p, double lambda_mm, int neighbours) {
  using Traits = boost::adjacency_list_traits<boost::vecS, boost::vecS, boost::directedS>;
  using Capacity = boost::property<boost::edge_capacity_t, int64_t>;
  using Residual = boost::property<boost::edge_residual_capacity_t, int64_t, Capacity>;
  using Graph = boost::adjacency_list<
      boost::vecS, boost::vecS, boost::directedS, boost::no_property,
      boost::property<boost::edge_reverse_t, Traits::edge_descriptor, Residual>>;
  const Grid& grid = p.grid();
  const auto voxels = static_cast<size_t>(p.voxels());
  Graph graph(voxels + 2);
  const auto connect = [&](size_t a, size_t b, int64_t there, int64_t back) {
    const auto forth = add_edge(a, b, graph).first, reverse = add_edge(b, a, graph).first;
    put(boost::edge_capacity, graph, forth, there);
    put(boost::edge_capacity, graph, reverse, back);
    put(boost::edge_reverse, graph, forth, reverse);
    put(boost::edge_reverse, graph, reverse, forth);
  };
  constexpr double kUnit = 1 << 20;
  const auto weights = crofton_weights(grid, neighbours);
  for (size_t i = 0; i < voxels; ++i) {
    const auto linear = static_cast<int64_t>(i);
    const auto term = static_cast<int64_t>(std::nearbyint((2.0 * p[linear] - 1) * kUnit));
    if (term > 0) connect(voxels, i, term, 0);
    if (term < 0) connect(i, voxels + 1, -term, 0);
    for (const EdgeWeight& w : weights) {
      const Vec3i to = grid.voxel(linear) + w.offset;
      if (!grid.contains(to)) continue;
      const auto cost = static_cast<int64_t>(
          std::nearbyint(lambda_mm * w.area_mm2 / grid.voxel_volume_mm3() * kUnit));
      connect(i, static_cast<size_t>(grid.linear(to)), cost, cost);
    }
  }
  std::vector<boost::default_color_type> colour(voxels + 2);
  std::vector<Traits::edge_descriptor> predecessor(voxels + 2);
  boost::edmonds_karp_max_flow(graph, voxels, voxels + 1,
                               boost::color_map(colour.data()).predecessor_map(predecessor.data()));
  // The last search found no path: it reached what the source reaches.
  Volume<uint8_t> reached(grid);
  for (size_t i = 0; i < voxels; ++i) {
    reached[static_cast<int64_t>(i)] = colour[i] != boost::white_color ? 1 : 0;
  }
  return reached;
}

TEST_CASE("among several minimum cuts it is the one with the least foreground") {
  const int neighbours = GENERATE(6, 26);
  int64_t mixed = 0;
  for (uint64_t trial = 0; trial < 60; ++trial) {
    const Vec3i size = trial % 3 == 0 ? Vec3i{9, 11, 1} : Vec3i{7, 6, 5};
    const Grid grid = grid_of(size, trial % 2 == 0 ? Vec3d{1, 1, 1} : Vec3d{1, 0.8, 1.7});
    Volume<float> p(grid);
    // Few different values and equal edges, so that many cuts cost the same.
    for (int64_t i = 0; i < p.voxels(); ++i) {
      p[i] = static_cast<float>(hash_below(7, trial, i, trial % 5 == 0 ? 1000 : 5)) /
             (trial % 5 == 0 ? 999.0F : 4.0F);
    }
    const double lambda_mm = trial % 4 == 0 ? 0.75 : 0.05 * static_cast<double>(trial % 7 + 1);
    const Volume<uint8_t> expected = smallest_cut(p, lambda_mm, neighbours);
    const Volume<uint8_t> cut = graph_cut(p, nullptr, everything_free(lambda_mm, neighbours), {});
    REQUIRE(std::equal(cut.begin(), cut.end(), expected.begin()));
    const int64_t inside = foreground(cut);
    mixed += inside > 0 && inside < p.voxels() ? 1 : 0;
  }
  CHECK(mixed > 20);
}

TEST_CASE("lambda 0 is the threshold at one half") {
  Volume<float> p = random_volume(grid_of({9, 8, 7}), 5);
  p[0] = 0.5f;
  p[1] = std::nextafter(0.5f, 1.0f);
  p[2] = std::nextafter(0.5f, 0.0f);
  const Volume<uint8_t> labels = graph_cut(p, nullptr, everything_free(0, 26), Context{});
  for (int64_t i = 0; i < p.voxels(); ++i) REQUIRE(labels[i] == (p[i] > 0.5f ? 1 : 0));
  // A weight that is too small to matter gives the same, now through the graph.
  const Volume<uint8_t> nearly = graph_cut(p, nullptr, everything_free(1e-5, 26), Context{});
  for (int64_t i = 3; i < p.voxels(); ++i) REQUIRE(nearly[i] == labels[i]);
}

TEST_CASE("Crofton weights: 6 neighbours, isotropic") {
  for (const EdgeWeight& w : crofton_weights(grid_of({9, 9, 9}, {2, 2, 2}), 6)) {
    CHECK(w.area_mm2 == Approx(4 * 2.0 / 3));
  }
  // In a plane: contour length times thickness; phi = pi/2, so w = dV pi / (4 |e|).
  const auto plane = crofton_weights(grid_of({9, 9, 1}, {1, 1, 5}), 6);
  REQUIRE(plane.size() == 2);
  CHECK(plane[0].area_mm2 == Approx(5 * 3.14159265 / 4));
  CHECK(crofton_weights(grid_of({9, 1, 9}), 26).size() == 4);
  CHECK(crofton_weights(grid_of({9, 9, 9}), 26).size() == 13);
}

TEST_CASE("the cut's area is that of a sphere, whatever the spacing") {
  const Vec3d spacing_mm = GENERATE(Vec3d{1, 1, 1}, Vec3d{0.8, 0.8, 2}, Vec3d{1.5, 0.7, 1});
  const double radius_mm = 15;
  const Grid grid =
      grid_of({static_cast<int>(36 / spacing_mm.x), static_cast<int>(36 / spacing_mm.y),
               static_cast<int>(36 / spacing_mm.z)},
              spacing_mm);
  const Vec3d middle = world_from_index(grid, (grid.size - Vec3i{1, 1, 1}).cast<double>() / 2.0);
  Volume<uint8_t> labels(grid);
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    labels[i] = norm(world_from_index(grid, grid.voxel(i).cast<double>()) - middle) < radius_mm;
  }
  const double area = energies(Volume<float>(grid), labels, crofton_weights(grid, 26)).area *
                      grid.voxel_volume_mm3();
  CHECK(area == Approx(4 * 3.14159265 * radius_mm * radius_mm).epsilon(0.03));
}

TEST_CASE("the band gives what the whole volume gives when it is wide enough") {
  const Volume<float> p = blob(grid_of({24, 24, 24}), 0.5);
  GraphCutConfig banded;
  banded.lambda_mm = 0.3;
  const auto all = graph_cut(p, nullptr, everything_free(0.3, 26), Context{});
  const auto band = graph_cut(p, nullptr, banded, Context{});
  CHECK(std::equal(all.begin(), all.end(), band.begin()));
  // A band of nothing is the threshold.
  GraphCutConfig none = banded;
  none.band_low = none.band_high = 0.5;
  none.band_voxels = 0;
  const auto threshold = graph_cut(p, nullptr, none, Context{});
  CHECK(foreground(threshold) ==
        std::count_if(p.begin(), p.end(), [](float v) { return v > 0.5f; }));
  CHECK_FALSE(std::equal(all.begin(), all.end(), threshold.begin()));
}

TEST_CASE("contrast weights move the surface to the image's edge") {
  // The classifier is unsure in the middle; the image has its edge at x = 12.
  const Grid grid = grid_of({20, 8, 8});
  Volume<float> p(grid), image(grid);
  for (int64_t i = 0; i < p.voxels(); ++i) {
    const int x = grid.voxel(i).x;
    p[i] = x < 6 ? 0.95f : x < 14 ? 0.49f : 0.05f;
    image[i] = (x < 12 ? 100.0f : 200.0f) + static_cast<float>(4 * hash_unit(6, 0, i));
  }
  GraphCutConfig config = everything_free(1, 26);
  config.sigma = 20;
  const auto by_area = graph_cut(p, nullptr, config, Context{});
  config.weights = EdgeCost::kContrast;
  const auto by_contrast = graph_cut(p, &image, config, Context{});
  CHECK(foreground(by_area) == 6 * 64);
  CHECK(foreground(by_contrast) == 12 * 64);
  config.sigma = 0;  // from the data: an edge of 100 in a fraction of the pairs
  CHECK(foreground(graph_cut(p, &image, config, Context{})) == 12 * 64);
}

TEST_CASE("a band over the limit is narrowed with a warning, or refused") {
  const Volume<float> p = blob(grid_of({24, 24, 24}), 0.1);
  GraphCutConfig config = everything_free(0.3, 6);
  config.max_band_voxels = 6000;
  std::vector<std::string> warnings;
  Context context;
  context.log_sink = [&](LogLevel level, std::string_view text) {
    if (level == LogLevel::kWarning) warnings.emplace_back(text);
  };
  const auto labels = graph_cut(p, nullptr, config, context);
  REQUIRE(warnings.size() == 1);
  CHECK(warnings[0].find("max_band_voxels = 6000") != std::string::npos);
  CHECK(foreground(labels) > 1000);
  config.max_band_voxels = 50;
  CHECK_THROWS_AS(graph_cut(p, nullptr, config, context), MemoryError);
}

TEST_CASE("the largest lambda of the schema fits all voxels whose edges are 1 mm or longer") {
  GraphCutConfig config;
  for (const int neighbours : {6, 26}) {
    config.neighbours = neighbours;
    for (const Vec3d& spacing : {Vec3d{1, 1, 1}, Vec3d{1, 1, 40}, Vec3d{1, 7, 1.5}}) {
      for (const Vec3i& size : {Vec3i{3, 4, 5}, Vec3i{4, 4, 1}, Vec3i{1, 5, 4}, Vec3i{5, 1, 1}}) {
        const Volume<float> p(grid_of(size, spacing), 0.3f);
        config.lambda_mm = kMaximumLambdaMm;
        CHECK_NOTHROW(check_lambda(config, p.grid()));
        CHECK_NOTHROW(graph_cut(p, nullptr, config, Context{}));
      }
    }
  }
}

TEST_CASE("graph cut refuses what it cannot use") {
  Volume<float> p(grid_of({4, 4, 4}), 0.3f);
  GraphCutConfig config;
  config.weights = EdgeCost::kContrast;
  CHECK_THROWS_AS(graph_cut(p, nullptr, config, Context{}), UsageError);
  const Volume<float> other(grid_of({4, 4, 5}));
  CHECK_THROWS_AS(graph_cut(p, &other, config, Context{}), InputError);
  config = {};
  config.neighbours = 18;
  CHECK_THROWS_AS(graph_cut(p, nullptr, config, Context{}), UsageError);
  config = {};
  config.lambda_mm = kMaximumLambdaMm;
  Volume<float> small(grid_of({4, 4, 4}, {0.01, 0.01, 0.01}), 0.3f);
  CHECK_THROWS_AS(graph_cut(small, nullptr, config, Context{}), UsageError);
  CHECK_THROWS_WITH(check_lambda(config, small.grid()), Catch::Contains("0.01x0.01x0.01 mm; give"));
  config = {};
  p[7] = std::numeric_limits<float>::quiet_NaN();
  CHECK_THROWS_AS(graph_cut(p, nullptr, config, Context{}), InputError);
  p[7] = 1.25f;
  CHECK_THROWS_WITH(graph_cut(p, nullptr, config, Context{}), Catch::Contains("(3, 1, 0)"));
}

TEST_CASE("near_boundary is the box neighbourhood of the boundary") {
  const Grid grid = grid_of({11, 9, 7});
  Volume<uint8_t> labels(grid, 0);
  for (int64_t i = 0; i < labels.voxels(); ++i) labels[i] = hash_below(4, 0, i, 60) == 0 ? 3 : 0;
  for (const int reach : {0, 1, 2}) {
    const auto near = near_boundary(labels, reach);
    for (int64_t i = 0; i < labels.voxels(); ++i) {
      bool zero = false, other = false;
      for (int64_t j = 0; j < labels.voxels(); ++j) {
        const Vec3i d = grid.voxel(i) - grid.voxel(j);
        if (std::max({std::abs(d.x), std::abs(d.y), std::abs(d.z)}) > reach) continue;
        (labels[j] == 0 ? zero : other) = true;
      }
      REQUIRE(near[i] == (zero && other ? 1 : 0));
    }
  }
}
