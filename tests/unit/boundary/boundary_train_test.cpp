// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/boundary/slide.h"
#include "larch/core/error.h"
#include "tests/unit/boundary/boundary_course.h"

namespace larch::boundary {
namespace {

using fixtures::Body;
using fixtures::BoundaryCourse;
using fixtures::context_of;

constexpr uint64_t kUnseen = 100;  // the number of the first body that no training sees

/// The one training that most tests look at.
struct Trained {
  BoundaryCourse course{10};
  Model model = course.train();
  ResidentModel resident = make_resident(model, Device::cpu());
};
const Trained& trained() {
  static const Trained made;
  return made;
}

Refined refined(const Volume<int16_t>& image, const Pose& pose, int threads = 2) {
  const Context context = context_of(threads);
  const ResidentModel& resident = trained().resident;
  const auto images = make_images({&resident, 1}, image, {}, context);
  return refine(resident, images, {pose, {}}, 0, resident.model.levels() - 1, context);
}

TEST_CASE("a training says what its levels see and how near they come to the surface") {
  const std::vector<LevelReport>& report = trained().course.report;
  REQUIRE(report.size() == 2);
  for (size_t l = 0; l < 2; ++l) {
    CAPTURE(l, report[l].recall, report[l].before_mm, report[l].after_mm);
    CHECK(report[l].range_voxels >= 4);
    CHECK(report[l].range_voxels <= 12);
    CHECK(report[l].positives == 600);
    CHECK(report[l].negatives > 600);
    CHECK(report[l].negatives <= 1200);
    CHECK(report[l].recall > 0.8);
    CHECK(report[l].after_mm < 0.5);
  }
  CHECK(report[0].before_mm > 1);
  // A level begins where the one before has ended, with vertices between.
  CHECK(report[1].before_mm == Approx(report[0].after_mm).margin(0.1));
  const Model& model = trained().model;
  CHECK(model.levels() == 2);
  CHECK(model.info.case_digests.size() == 10);
  REQUIRE(model.info.validation.size() == 4);
  CHECK(model.info.validation[3].first == "level 1 distance mm");
  CHECK(model.info.validation[3].second == report[1].after_mm);
}

TEST_CASE("a mean that is off, small or large ends on the boundary of a body that is new") {
  for (uint64_t n = 0; n < 4; ++n) {
    const Body truth = fixtures::body(kUnseen + n);
    Pose start = truth.pose;
    if (n == 0) start.centre_mm += Vec3d{1.8, -1.7, 1.7};  // 3 voxels
    if (n == 1) start.edges_mm = start.edges_mm * 0.9;
    if (n == 2) start.edges_mm = start.edges_mm * 1.1;
    if (n == 3) start.rotation = start.rotation * from_rotation_vector({0.1, 0.1, -0.1});
    const Refined result = refined(image_of(truth, kUnseen + n), start);
    REQUIRE(result.vertices_mm.size() == 1202);
    REQUIRE(result.probability.size() == 1202);
    const double distance = truth.mean_distance(result.vertices_mm);
    const double before = truth.mean_distance(placed_mean(trained().model, start));
    CAPTURE(n, before, distance);
    CHECK(distance < 0.3);
    if (n < 3) CHECK(distance < before);
    CHECK(mesh::flipped_triangles(1, result.vertices_mm) == 0);
    const auto sure = std::count_if(result.probability.begin(), result.probability.end(),
                                    [](float p) { return p > 0.5F; });
    CHECK(sure > 0.9 * 1202);
  }
}

TEST_CASE("where a part of the boundary is faint the rest and the shape hold the mesh") {
  Body truth = fixtures::body(kUnseen + 5);
  truth.cap = 0.2;
  Pose start = truth.pose;
  start.centre_mm += Vec3d{1, 1, 1};
  start.edges_mm = start.edges_mm * 0.9;
  const Refined result = refined(image_of(truth, 77), start);
  const double distance = truth.mean_distance(result.vertices_mm);
  CAPTURE(distance);
  CHECK(distance < 0.6);
  CHECK(mesh::flipped_triangles(1, result.vertices_mm) == 0);
}

TEST_CASE("a model knows whether it is in the right place") {
  const Confidence& known = trained().model.confidence;
  REQUIRE(known.is_known());
  const auto confidence = [&](const Refined& result) {
    return known(measures_of(trained().model, result));
  };
  int lost = 0;
  for (uint64_t n = 20; n < 25; ++n) {
    const Body truth = fixtures::body(kUnseen + n);
    const Volume<int16_t> image = image_of(truth, kUnseen + n);
    Pose near = truth.pose, far = truth.pose;
    near.centre_mm += Vec3d{1, -1, 1};
    far.centre_mm = {3, 36, 19};
    lost += confidence(refined(image, near)) < known.calibration.found ? 1 : 0;
    const double wrong = confidence(refined(image, far));
    Volume<int16_t> noise = image;
    for (int64_t i = 0; i < noise.voxels(); ++i) {
      noise[i] =
          image[hash_below(n, 7, static_cast<uint64_t>(i), static_cast<uint32_t>(image.voxels()))];
    }
    const double in_noise = confidence(refined(noise, near));
    CAPTURE(n, wrong, in_noise);
    CHECK(wrong < known.calibration.found);
    CHECK(in_noise < known.calibration.found);
  }
  CHECK(lost <= 1);
  // With one fold no case is held out.
  BoundaryCourse course(3);
  course.config.folds = 1;
  CHECK_FALSE(course.train().confidence.is_known());
}

TEST_CASE("what is usual is not held against a result, and little is known of few") {
  const Measures good{0.1, 0, 1, 0.2, 0.05}, bad{2, 0.4, 3, 2, 0.5};
  std::vector<Measures> right(20, good), wrong(20, bad);
  for (size_t i = 0; i < 20; ++i) right[i][0] += 0.001 * static_cast<double>(i);
  const Confidence known = learn_confidence(right, wrong);
  REQUIRE(is_valid(known));
  CHECK(known(good) > 0.9);
  CHECK(known(bad) < 0.1);
  CHECK(known({0, 0, 0, 0, 0}) >= known(good));
  for (size_t k = 0; k < kMeasures; ++k) {
    Measures worse = good;
    worse[k] = bad[k];
    CHECK(known(worse) < known(good));
  }
  right.resize(9);
  CHECK_FALSE(learn_confidence(right, wrong).is_known());
  CHECK_FALSE(learn_confidence({}, wrong).is_known());
  CHECK(is_valid(learn_confidence({}, wrong)));
}

TEST_CASE("vertices outside of the image are not held against a result, unless they are most") {
  const Model& model = trained().model;
  const Body truth = fixtures::body(kUnseen + 20);
  Refined result = refined(image_of(truth, kUnseen + 20), truth.pose);
  const Measures whole = measures_of(model, result);
  const size_t count = result.probability.size();
  std::fill_n(result.probability.begin(), count * 3 / 10, 0.0F);
  const Measures cut = measures_of(model, result);
  CHECK(cut[0] < whole[0] + 0.2);
  CHECK(cut[1] < whole[1] + 0.1);
  std::fill_n(result.probability.begin(), count * 6 / 10, 0.0F);
  CHECK(measures_of(model, result)[1] > 0.59);
}

TEST_CASE("refinement goes on from vertices, and threads do not change it") {
  const Body truth = fixtures::body(kUnseen + 7);
  Pose start = truth.pose;
  start.centre_mm.x += 2;
  const Volume<int16_t> image = image_of(truth, 79);
  const Refined one = refined(image, start, 1), two = refined(image, start, 2);
  CHECK(one.vertices_mm == two.vertices_mm);
  CHECK(one.probability == two.probability);

  // Levels one by one lead to the same end as together.
  const Context context = context_of();
  const ResidentModel& resident = trained().resident;
  const auto images = make_images({&resident, 1}, image, {}, context);
  const Refined first = refine(resident, images, {start, {}}, 0, 0, context);
  REQUIRE(first.vertices_mm.size() == 602);
  const Refined last = refine(resident, images, {{}, first.vertices_mm}, 1, 1, context);
  CHECK(last.vertices_mm == one.vertices_mm);

  // From where it has ended it hardly moves.
  std::vector<Vec3d> ended = one.vertices_mm;
  ended.resize(602);
  const Refined again = refine(resident, images, {{}, ended}, 0, 1, context);
  double moved = 0;
  for (size_t v = 0; v < 1202; ++v) moved += norm(again.vertices_mm[v] - one.vertices_mm[v]) / 1202;
  CHECK(moved < 0.5);
}

TEST_CASE("vertices slide along the surface to where the shape of the model has them") {
  const Body truth = fixtures::body(kUnseen + 9);
  const std::vector<Vec3d> places = truth.vertices();
  const auto apart = [&](const std::vector<Vec3d>& a) {
    double sum = 0;
    for (size_t v = 0; v < 1202; ++v) sum += norm(a[v] - places[v]) / 1202;
    return sum;
  };
  // The same surface, with all vertices closer to one end.
  Refined moved{{}, std::vector<float>(1202, 0.25F)};
  const Vec3d s = truth.semi_axes();
  for (size_t v = 0; v < 1202; ++v) {
    Vec3d u = mesh::sphere_template().unit[v] + Vec3d{0, 0.1, 0.15};
    u = u / norm(u);
    moved.vertices_mm.push_back(truth.pose.centre_mm +
                                rotate(truth.pose.rotation, {s.x * u.x, s.y * u.y, s.z * u.z}));
  }
  Refined slid = moved, rigid = moved;
  slide(trained().model, slid);
  CAPTURE(apart(moved.vertices_mm), apart(slid.vertices_mm));
  CHECK(apart(slid.vertices_mm) < 0.4 * apart(moved.vertices_mm));
  CHECK(mesh::flipped_triangles(1, slid.vertices_mm) == 0);
  CHECK(truth.mean_distance(slid.vertices_mm) < 0.08);
  CHECK(slid.probability == moved.probability);

  // Without modes the mean slides; of what is no surface at all come numbers.
  Model mean = trained().model;
  mean.refine.modes = 0;
  slide(mean, rigid);
  CHECK(apart(rigid.vertices_mm) < 0.6 * apart(moved.vertices_mm));
  moved.vertices_mm.assign(1202, Vec3d{1, 2, 3});
  slide(trained().model, moved);
  for (const Vec3d& at : moved.vertices_mm) CHECK(std::isfinite(norm(at)));
}

TEST_CASE("a training that cannot succeed says why") {
  BoundaryCourse course(2);
  course.config.halvings = {0};
  CHECK_NOTHROW(course.train());
  // The surface is where no mesh comes.
  for (TrainingCase& c : course.cases)
    for (float& mm : c.distance_mm) mm += 40;
  CHECK_THROWS_AS(course.train(), InputError);
  CHECK_THROWS_WITH(course.train(), Catch::Contains("never come near the boundary"));
  course.cases.pop_back();
  CHECK_THROWS_WITH(course.train(), Catch::Contains("at least two cases"));
  const std::atomic<int> stop{143};
  Context context;
  context.stop = &stop;
  BoundaryCourse stopped(2);
  CHECK_THROWS_AS(train_boundary(stopped.cases, stopped.start, stopped.config, stopped.shared,
                                 errors_of(stopped.config), {}, stopped.report, context),
                  Stopped);
}

}  // namespace
}  // namespace larch::boundary
