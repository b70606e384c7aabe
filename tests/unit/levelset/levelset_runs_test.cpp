// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "tests/unit/levelset/requests.h"

namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

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

}  // namespace
