// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The rules of the Mask Subtraction Sequence (PS3.3, C.7.6.10) and of --mask-frames.
#include <numeric>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/pipeline/angiography/input/angiography_input.h"

using namespace larch;
using pipeline::MaskPlan;
using pipeline::parse_frames;
using pipeline::plan_by_file;
using Frames = std::vector<int>;

namespace {

Frames all_of(int64_t count) {
  Frames frames(static_cast<size_t>(count));
  std::iota(frames.begin(), frames.end(), 0);
  return frames;
}

Angiogram with_item(int64_t frames, const MaskItem& item) {
  Angiogram about;
  about.path = "cine.dcm";
  about.frames = frames;
  about.masks = {item};
  return about;
}

MaskPlan plan_of(int64_t frames, const MaskItem& item) {
  return plan_by_file(with_item(frames, item), all_of(frames));
}

}  // namespace

TEST_CASE("frames are named from 1, in any order, each once") {
  CHECK(parse_frames("1-3,7", 9, "--mask-frames") == Frames{0, 1, 2, 6});
  CHECK(parse_frames("5,2-3,3", 0, "--mask-frames") == Frames{1, 2, 4});
  CHECK(dsa::frames_text({0, 1, 2, 6}) == "1-3,7");
  CHECK(dsa::frames_text({4}) == "5");
  for (const char* text : {"", "0", "3-1", "1-", "-2", "a", "1,,2", "1;2", "1-2-3", "9999999999"}) {
    INFO(text);
    CHECK_THROWS_AS(parse_frames(text, 9, "--mask-frames"), UsageError);
  }
  CHECK_THROWS_WITH(parse_frames("8-12", 10, "--mask-frames"),
                    Catch::Contains("there is no frame 12") && Catch::Contains("has 10"));
}

TEST_CASE("frames that are no mask are contrast frames") {
  const dsa::MaskGroup group = dsa::group_of_masks({1, 2}, {0, 1, 2, 3});
  CHECK(group.mask_frames == Frames{1, 2});
  CHECK(group.frames == Frames{0, 3});
  CHECK_THROWS_AS(dsa::group_of_masks({0}, {0}), InputError);
}

TEST_CASE("AVG_SUB: the mean of the mask frames, up to the last frame that can be averaged") {
  MaskItem item;
  item.operation = MaskOperation::kAverage;
  item.mask_frames = {2, 0};
  item.contrast_averaging = 3;
  item.shift_px = {0.5, -1, 0};
  const MaskPlan plan = plan_of(6, item);
  REQUIRE(plan.groups.size() == 1);
  CHECK(plan.groups[0].mask_frames == Frames{0, 2});
  CHECK(dsa::frames_of(plan.groups) == Frames{0, 1, 2, 3});
  CHECK(plan.groups[0].averaging == 3);
  CHECK(plan.groups[0].shift_px == Vec3d{0.5, -1, 0});
  item.ranges = {{1, 2}, {3, 3}};
  CHECK(dsa::frames_of(plan_of(6, item).groups) == Frames{1, 2, 3});
  item.ranges = {{4, 5}};
  CHECK_THROWS_AS(plan_of(6, item), InputError);
}

TEST_CASE("TID: the frame some frames before, also later ones") {
  MaskItem item;
  item.operation = MaskOperation::kTid;
  item.tid_offset = 2;
  const MaskPlan before = plan_of(5, item);
  REQUIRE(before.groups.size() == 3);
  CHECK(before.groups[0].frames == Frames{2});
  CHECK(before.groups[0].mask_frames == Frames{0});
  CHECK(before.groups[2].mask_frames == Frames{2});
  item.tid_offset = -1;
  const MaskPlan later = plan_of(3, item);
  CHECK(dsa::frames_of(later.groups) == Frames{0, 1});
  CHECK(later.groups[1].mask_frames == Frames{2});
  item.ranges = {{2, 2}};
  CHECK_THROWS_WITH(plan_of(3, item), Catch::Contains("frame 4 of 3"));
}

TEST_CASE("REV_TID: the mask runs backwards") {
  MaskItem item;
  item.operation = MaskOperation::kReverseTid;
  item.ranges = {{5, 7}};
  item.tid_offset = 1;
  const MaskPlan plan = plan_of(10, item);
  REQUIRE(plan.groups.size() == 3);
  CHECK(plan.groups[0].mask_frames == Frames{4});
  CHECK(plan.groups[1].mask_frames == Frames{3});
  CHECK(plan.groups[2].mask_frames == Frames{2});
  // Frames that the ranges leave out count: the mask frame is 2 * 5 - 1 - frame.
  item.ranges = {{5, 5}, {8, 8}};
  const MaskPlan gap = plan_of(10, item);
  REQUIRE(gap.groups.size() == 2);
  CHECK(gap.groups[0].mask_frames == Frames{4});
  CHECK(gap.groups[1].mask_frames == Frames{1});
  item.ranges = {{2, 9}};
  CHECK_THROWS_AS(plan_of(10, item), InputError);
}

TEST_CASE("a sequence for other frames than those that are asked for is no missing sequence") {
  MaskItem item;
  item.operation = MaskOperation::kAverage;
  item.mask_frames = {0};
  item.ranges = {{2, 3}, {5, 5}};
  const Angiogram about = with_item(8, item);
  CHECK(dsa::frames_of(plan_by_file(about, {1, 3, 5}).groups) == Frames{3, 5});
  CHECK_THROWS_WITH(plan_by_file(about, {1, 4}), Catch::Contains("is for frames 3-4,6, none"));
  CHECK_THROWS_AS(plan_by_file(about, {1, 4}), UsageError);
}

TEST_CASE("a problem of the file is told; NONE subtracts nothing; the first item counts") {
  MaskItem item;
  CHECK(plan_of(4, item).groups.empty());
  item.operation = MaskOperation::kAverage;
  item.mask_frames = {0};
  item.ranges = {{1, 2}};
  Angiogram two = with_item(4, item);
  MaskItem second = item;
  second.mask_frames = {3};
  second.ranges = {{2, 3}};
  two.masks.push_back(second);
  const MaskPlan plan = plan_by_file(two, all_of(4));
  REQUIRE(plan.groups.size() == 2);
  CHECK(plan.groups[0].frames == Frames{1, 2});
  CHECK(plan.groups[1].frames == Frames{3});
  CHECK(plan.warnings.size() == 1);
  two.mask_problem = "'cine.dcm': told so";
  CHECK_THROWS_WITH(plan_by_file(two, all_of(4)), "'cine.dcm': told so");
}
