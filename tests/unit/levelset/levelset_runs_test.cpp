// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/unit/levelset/requests.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

TEST_CASE("threads and trackers make no difference, with all terms on") {
  SegmentRequest request = halves_request();
  for (int64_t i = 0; i < request.image.voxels(); ++i) {
    request.image[i] += static_cast<float>(10 * hash_unit(4, 0, static_cast<uint64_t>(i)));
  }
  request.config.advection_weight = 0.3;
  request.config.max_distance_mm = 15;
  request.config.max_iterations = 150;
  const SegmentResult one = segment(request, {});
  REQUIRE(one.by_label[0].voxels > 5000);
  Context two;
  two.threads = GENERATE(2, 7);
  request.config.tracker = GENERATE(Tracker::kBuffers, Tracker::kBrick);
  const SegmentResult other = segment(request, two);
  CHECK(same_phi(one, other));
  CHECK(same_labels(one, other));
  CHECK(one.progress.iterations == other.progress.iterations);
}

TEST_CASE("calls of any length give the same bytes") {
  SegmentRequest request = ball_request(20);
  const SegmentResult whole = segment(request, {});
  REQUIRE(whole.progress.iterations > 60);
  SegmentRun run = start_segmentation(request, {});
  for (const int64_t steps : {1, 12, 7, 21}) evolve(run.job, steps, {});
  REQUIRE(run.job.progress.iterations == 41);
  while (run.job.progress.stop == Stop::kNone) evolve(run.job, 29, {});
  const SegmentResult in_pieces = finish_segmentation(std::move(run), {});
  CHECK(same_phi(whole, in_pieces));
  CHECK(whole.progress.iterations == in_pieces.progress.iterations);
  CHECK(whole.history[0].size() == in_pieces.history[0].size());
}

TEST_CASE("a run is interrupted and goes on to the same bytes") {
  const SegmentRequest request = ball_request(20);
  const SegmentResult whole = segment(request, {});
  std::atomic<int> stop{143};
  Context context;
  context.stop = &stop;
  SegmentRun run = start_segmentation(request, context);
  evolve(run.job, 1000, context);
  CHECK(run.job.progress.stop == Stop::kNone);
  stop = 0;
  while (run.job.progress.stop == Stop::kNone) evolve(run.job, 1000, context);
  const SegmentResult continued = finish_segmentation(std::move(run), context);
  CHECK(same_phi(whole, continued));
}

TEST_CASE("a segmentation tells its progress, warns by the name of the image, and stops") {
  SegmentRequest request = ball_request(20);
  request.name = "ball.mha";
  request.config.max_iterations = 100;
  std::atomic<int> stop{0};
  std::vector<std::string> phrases, lines;
  Context context;
  context.stop = &stop;
  context.progress_sink = [&](double, std::string_view text) { phrases.emplace_back(text); };
  context.log_sink = [&](LogLevel, std::string_view text) { lines.emplace_back(text); };
  const SegmentResult result = segment(request, context);
  REQUIRE(phrases.size() >= 3);
  CHECK(phrases.front() == "speed and seeds");
  CHECK(phrases[1].starts_with("iteration 64, "));
  REQUIRE(lines.size() == result.warnings.size());
  CHECK(lines.back() == "'ball.mha': " + result.warnings.back());
  CHECK(result.seconds.size() == 3);
  context.progress_sink = [&](double, std::string_view text) {
    if (text.starts_with("iteration")) stop = 143;
  };
  CHECK_THROWS_AS(segment(request, context), Stopped);
}

TEST_CASE("a series is segmented frame by frame from the surface of the last one") {
  const Grid grid = levelset_grid({40, 40, 40});
  const auto frame = [&](int t) {
    return volume_of<float>(grid, [&](const Vec3d& at) {
      return norm(at - Vec3d{14.0 + 2 * t, 20, 20}) < 9 + 0.5 * t ? 100 : 10;
    });
  };
  SegmentRequest request;
  request.image = frame(0);
  request.spheres = {{.centre = {14, 20, 20}, .radius = 4, .label = 3}};
  SegmentResult result = segment(request, {});
  const Window window = *result.resolved.labels[0].window;
  for (int t = 1; t < 4; ++t) {
    request = next_frame(std::move(request), result, frame(t));
    result = segment(request, {});
    CAPTURE(t);
    REQUIRE(result.by_label[0].label == 3);
    CHECK(result.resolved.labels[0].window->lower == window.lower);
    CHECK(result.progress.stop == Stop::kAtRest);
    CHECK(ball_radius(result.by_label[0].phi_mm) == Approx(9 + 0.5 * t).margin(0.3));
  }
}

}  // namespace
