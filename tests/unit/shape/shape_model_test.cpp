// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/shape/shape_model.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <limits>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/portable_math.h"
#include "larch/core/random_math.h"
#include "larch/data/symmetric_matrix.h"
#include "larch/mesh/sphere_template.h"
#include "larch/shape/correspondence.h"

namespace larch::shape {
namespace {

using Points = std::vector<Vec3d>;

double inner(const Points& a, const Points& b) {
  double sum = 0;
  for (size_t v = 0; v < a.size(); ++v) sum += dot(a[v], b[v]);
  return sum;
}

/// Ellipsoids that vary in length and are bent more or less, each put somewhere by a pose.
struct Bodies {
  std::vector<Points> vertices;
  std::vector<Pose> poses;
};
Bodies bodies(uint64_t count) {
  Bodies out;
  for (uint64_t i = 0; i < count; ++i) {
    const double length = 1 + 0.15 * draw_normal(1, 1, i), bend = 0.02 * draw_normal(1, 2, i);
    const Vec3d turn{draw_normal(1, 3, i), draw_normal(1, 4, i), draw_normal(1, 5, i)};
    const Vec3d centre{30 * hash_unit(1, 6, i), -20, 5 + 10 * hash_unit(1, 7, i)};
    const double scale = 0.9 + 0.2 * hash_unit(1, 8, i);
    Points own;
    for (const Vec3d& u : mesh::sphere_template().unit) {
      const double x = 14 * length * u.x;
      own.push_back(Vec3d{x, 9 * u.y, 6 * u.z + bend * (x * x - 50)} * scale);
    }
    const Pose box = box_of_points(own);
    const Quaternion rotation = from_rotation_vector(turn * 0.1);
    Pose pose{centre, rotation, box.edges_mm};
    for (Vec3d& p : own) p = centre + rotate(rotation, p - box.centre_mm);
    out.vertices.push_back(own);
    out.poses.push_back(pose);
  }
  return out;
}
ShapeModel model_of(uint64_t count, int threads = 1) {
  const Bodies all = bodies(count);
  Context context;
  context.threads = threads;
  return make_shape_model(all.vertices, all.poses, context);
}

TEST_CASE("modes are orthonormal, and two of them explain shapes that vary in two ways") {
  const ShapeModel model = model_of(15);
  CHECK_NOTHROW(check_shape(model));
  REQUIRE(model.modes.size() >= 2);
  REQUIRE(model.modes.size() <= 14);
  double all = 0;
  for (size_t k = 0; k < model.modes.size(); ++k) {
    all += model.variances_mm2[k];
    if (k > 0) CHECK(model.variances_mm2[k] <= model.variances_mm2[k - 1]);
    for (size_t l = 0; l <= k; ++l) {
      CHECK(inner(model.modes[k], model.modes[l]) == Approx(k == l ? 1 : 0).margin(1e-6));
    }
  }
  CHECK(model.variances_mm2[0] + model.variances_mm2[1] > 0.95 * all);
  CHECK(model.quality.cases == 15);
  CHECK(model.quality.modes_95 <= 2);
  CHECK(model.quality.share == Approx(1));
  CHECK(model.quality.generalisation_mm < 0.2);

  // The frame is that of the box of the mean, whose size is the geometric mean of the cases'.
  const Pose box = box_of_points(model.mean_mm);
  CHECK(norm(box.centre_mm) < 1e-9);
  CHECK(norm(box.edges_mm - model.edges_mm) < 1e-9);
  CHECK(model.edges_mm.x == Approx(28).epsilon(0.1));
  CHECK(model.edges_mm.y == Approx(18).epsilon(0.1));
}

TEST_CASE("cases are shapes of the model that was made of them") {
  const Bodies all = bodies(12);
  const ShapeModel model = make_shape_model(all.vertices, all.poses, {});
  std::vector<double> mean(model.modes.size(), 0), squares(model.modes.size(), 0);
  for (const Points& points : all.vertices) {
    ShapeFit fit;
    const Similarity at = fit_similarity(OneThread{}, mesh::kMaximumTemplateVertices, points.data(),
                                         model.mean_mm.data(), fit);
    const Mat3 turn = rotation_matrix(at.rotation);
    Points rest = points;
    for (size_t v = 0; v < rest.size(); ++v) {
      rest[v] = placed(at, turn, rest[v]) - model.mean_mm[v];
    }
    for (size_t k = 0; k < model.modes.size(); ++k) {
      const double b = inner(rest, model.modes[k]);
      mean[k] += b / 12;
      squares[k] += b * b / 11;
      for (size_t v = 0; v < rest.size(); ++v) rest[v] -= b * model.modes[k][v];
    }
    // What is left is a common change of size alone.
    CHECK(std::sqrt(inner(rest, rest) / mesh::kMaximumTemplateVertices) < 0.1);
  }
  for (size_t k = 0; k < 2; ++k) {
    CHECK(squares[k] - 12 * mean[k] * mean[k] / 11 == Approx(model.variances_mm2[k]).epsilon(0.01));
  }
}

TEST_CASE("fewer than ten cases make a mean without modes; one is its own mean") {
  const ShapeModel nine = model_of(9);
  CHECK(nine.modes.empty());
  CHECK(nine.variances_mm2.empty());
  CHECK(nine.quality.cases == 9);
  CHECK_NOTHROW(check_shape(nine));
  CHECK(duals_of(nine, 0, 1).empty());
  CHECK_FALSE(model_of(10).modes.empty());

  const Bodies one = bodies(1);
  const ShapeModel own = make_shape_model(one.vertices, one.poses, {});
  double most = 0;
  for (size_t v = 0; v < own.mean_mm.size(); ++v) {
    const Vec3d wanted = box_mm_from_world(one.poses[0], one.vertices[0][v]);
    most = std::max(most, norm(own.mean_mm[v] - wanted));
  }
  CHECK(most < 1e-9);
}

TEST_CASE("the model does not depend on threads or on where the cases lie") {
  const ShapeModel model = model_of(12), again = model_of(12, 3);
  CHECK(again.mean_mm == model.mean_mm);
  CHECK(again.modes == model.modes);
  CHECK(again.variances_mm2 == model.variances_mm2);
  CHECK(again.quality.specificity_mm == model.quality.specificity_mm);

  Bodies moved = bodies(12);
  const Quaternion turn = from_rotation_vector({0.4, -1, 2});
  for (size_t i = 0; i < moved.poses.size(); ++i) {
    Pose& pose = moved.poses[i];
    for (Vec3d& p : moved.vertices[i]) p = Vec3d{100, 200, -50} + rotate(turn, p);
    pose.centre_mm = Vec3d{100, 200, -50} + rotate(turn, pose.centre_mm);
    pose.rotation = turn * pose.rotation;
  }
  const ShapeModel there = make_shape_model(moved.vertices, moved.poses, {});
  for (size_t v = 0; v < model.mean_mm.size(); ++v)
    REQUIRE(norm(there.mean_mm[v] - model.mean_mm[v]) < 1e-8);
}

TEST_CASE("a semidefinite matrix has a Cholesky factor whose column without a pivot is 0") {
  // Rows 0 and 1 are the same but for rounding, as deviations of few cases are.
  std::vector<double> factor = {1, 1, 0.5, 1, 1, 0.5 + 1e-9, 0.5, 0.5 + 1e-9, 1};
  factorise(factor, 3, 0);
  CHECK(factor[4] == 0);
  CHECK(factor[7] == 0);
  CHECK(factor[8] == Approx(std::sqrt(0.75)));
}

TEST_CASE("a similarity of points is found, and its scale is that of least squares") {
  const Points& y = mesh::sphere_template().unit;
  const auto count = static_cast<int>(y.size());
  Points x;
  const Similarity wanted{{4, -8, 100}, canonical(from_rotation_vector({0.7, -1.5, 0.3})), 3.5};
  const Mat3 turn = rotation_matrix(wanted.rotation);
  for (const Vec3d& p : y) x.push_back(placed(wanted, turn, p));
  ShapeFit fit;
  const Similarity found = fit_similarity(OneThread{}, count, y.data(), x.data(), fit);
  CHECK(norm(found.centre - wanted.centre) < 1e-9);
  CHECK(angle_between(found.rotation, wanted.rotation) < 1e-6);
  CHECK(found.scale == Approx(wanted.scale));

  // Points that are all the same have no scale.
  const Points one(y.size(), {1, 2, 3});
  CHECK(fit_similarity(OneThread{}, count, one.data(), x.data(), fit).scale == 1);
  CHECK(fit_similarity(OneThread{}, count, y.data(), one.data(), fit).scale == 1);
}

/// What project makes of a mesh.
struct Projected {
  Similarity at;
  std::vector<double> coefficients;
};
struct Projection {
  ShapeModel model;
  int level, modes;
  Points modes_flat, duals;
  std::vector<double> deviations;
  ShapeView view;

  Projection(ShapeModel made, int of_level, int count)
      : model(std::move(made)), level(of_level), modes(count) {
    for (size_t k = 0; k < static_cast<size_t>(modes); ++k) {
      modes_flat.insert(modes_flat.end(), model.modes[k].begin(), model.modes[k].end());
      deviations.push_back(std::sqrt(model.variances_mm2[k]));
    }
    duals = duals_of(model, modes, level);
    view = {model.mean_mm.data(),
            modes_flat.data(),
            duals.data(),
            deviations.data(),
            modes,
            mesh::kMaximumTemplateVertices,
            mesh::kTemplateVertices[level]};
  }
  Points shape(const Similarity& at, const std::vector<double>& b) const {
    Points out;
    const Mat3 turn = rotation_matrix(at.rotation);
    for (int v = 0; v < view.count; ++v)
      out.push_back(placed(at, turn, shape_at(view, b.data(), v)));
    return out;
  }
  Projected project(const Points& x) const {
    Points points(x.size());
    ShapeFit fit;
    std::fill(std::begin(fit.coefficients), std::end(fit.coefficients), -7);
    const Similarity at = shape::project(OneThread{}, view, x.data(), points.data(), fit);
    return {at, {fit.coefficients, fit.coefficients + modes}};
  }
};

const Similarity kAt{{20, -30, 7}, canonical(from_rotation_vector({0.3, 0.2, -0.6})), 1.2};

TEST_CASE("a shape of the model that was moved, turned and scaled is found again") {
  const int level = GENERATE(0, 2);
  const Projection p(model_of(14), level, 2);
  const double size = GENERATE(0.0, 0.01, 1.0);
  CAPTURE(level, size);
  const std::vector<double> b{1.2 * size * p.deviations[0], -0.8 * size * p.deviations[1]};
  const Points x = p.shape(kAt, b);
  const Projected found = p.project(x);
  const Points back = p.shape(found.at, found.coefficients);
  double most = 0;
  for (size_t v = 0; v < x.size(); ++v) most = std::max(most, norm(back[v] - x[v]));
  CAPTURE(most, found.coefficients[0] - b[0], found.coefficients[1] - b[1],
          found.at.scale - kAt.scale);
  // Modes are nearly orthogonal to similarities, so that two rounds leave next to nothing.
  const double error = size == 0 ? 1e-9 : 2e-3 * size;
  CHECK(most < error);
  CHECK(norm(found.at.centre - kAt.centre) < error);
  CHECK(angle_between(found.at.rotation, kAt.rotation) < 1e-6);
  CHECK(found.at.scale == Approx(kAt.scale).margin(error));
  for (size_t k = 0; k < 2; ++k) CHECK(found.coefficients[k] == Approx(b[k]).margin(error));
}

TEST_CASE("coefficients end at three deviations") {
  const Projection p(model_of(14), 0, 2);
  const std::vector<double> far{9 * p.deviations[0], -7 * p.deviations[1]};
  const Projected found = p.project(p.shape(kAt, far));
  CHECK(found.coefficients[0] == 3 * p.deviations[0]);
  CHECK(found.coefficients[1] == -3 * p.deviations[1]);
}

TEST_CASE("damaged shapes are refused") {
  const auto refused = [](auto&& edit) {
    ShapeModel damaged = model_of(10);
    edit(damaged);
    CHECK_THROWS_AS(check_shape(damaged), InputError);
  };
  const double nan = std::numeric_limits<double>::quiet_NaN();
  refused([](ShapeModel& m) { m.mean_mm.pop_back(); });
  refused([&](ShapeModel& m) { m.mean_mm[17].y = nan; });
  refused([](ShapeModel& m) { m.modes[0].pop_back(); });
  refused([&](ShapeModel& m) { m.modes[1][5].z = nan; });
  refused([](ShapeModel& m) { m.modes.pop_back(); });
  refused([](ShapeModel& m) { m.variances_mm2[0] = 0; });
  refused([&](ShapeModel& m) { m.variances_mm2[0] = nan; });
  refused([](ShapeModel& m) { m.edges_mm.x = 0; });
  // These numbers are finite, but their sums or products overflow.
  refused([](ShapeModel& m) { m.edges_mm.x = 1e308; });
  refused([](ShapeModel& m) { m.mean_mm[17].y = -1e308; });
  refused([](ShapeModel& m) { m.modes[1][5].z = 1e308; });
  refused([](ShapeModel& m) { m.variances_mm2[0] = 1e308; });
  refused([](ShapeModel& m) {
    m.modes.resize(kMaximumModes + 1, m.modes[0]);
    m.variances_mm2.resize(kMaximumModes + 1, 1);
  });
}

}  // namespace
}  // namespace larch::shape
