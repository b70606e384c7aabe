// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/models/training_plot.h"
#include "tests/unit/picture/picture_digest.h"

namespace {

using namespace larch;

/// A root and its children, all of them trained, and a second tree that is a leaf.
pbt::Model model_with_history() {
  pbt::Model model;
  model.nodes.resize(4);
  model.nodes[1].depth = model.nodes[2].depth = 1;
  model.roots = {0, 3};
  model.history = {{0, 400, 200, 200, {0.25, 1.0 / 6}},
                   {1, 100, 50, 50, {0.5}},
                   {2, 300, 100, 200, {0.1, 0.2}},
                   {3, 0, 0, 0, {}}};
  model.info.validation = {{"log_loss", 0.1234567}, {"auc", 0.875}};
  return model;
}

void check_curve(const picture::Curve& curve, const std::string& name,
                 const std::vector<double>& bounds) {
  CHECK(curve.name == name);
  REQUIRE(curve.y.size() == bounds.size());
  for (size_t t = 0; t < bounds.size(); ++t) {
    CHECK(curve.x[t] == static_cast<double>(t));
    CHECK(curve.y[t] == Approx(bounds[t]).margin(1e-12));
  }
}

}  // namespace

TEST_CASE("History: the bound per depth, of nodes by their samples") {
  const auto curves = models::history_curves(model_with_history());
  REQUIRE(curves.size() == 2);
  check_curve(curves[0], "depth 0, 1 node trained", {1, 0.866025403784439, 0.645497224367903});
  // The node of one round keeps its bound, 1, while the other one goes from 0.6 to 0.48.
  check_curve(curves[1], "depth 1, 2 nodes trained", {1, 0.7, 0.61});
}

TEST_CASE("History: the picture is the same bytes as ever, and there is one without history") {
  CHECK(test::digest_of(models::history_plot(model_with_history())) == "c1afbd00634cd00e");
  pbt::Model scored = model_with_history();
  voxels::add_depth_score(scored.info, {0.2, 0.75});
  voxels::add_depth_score(scored.info, {0.1234567, 0.875});
  const RgbImage both = models::history_plot(scored);
  const RgbImage alone = models::history_plot(model_with_history());
  CHECK(both.height == 2 * alone.height);
  CHECK(std::equal(alone.rgb.begin(), alone.rgb.end(), both.rgb.begin()));
  pbt::Model leaf;
  leaf.nodes.resize(1);
  CHECK(models::history_curves(leaf).empty());
  CHECK(test::digest_of(models::history_plot(leaf)) == "81eaeb830cddd5a3");
}
