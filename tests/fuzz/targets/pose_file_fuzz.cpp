// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Files of poses: what is accepted is sound, and the same when it is written and read again.
#include <cmath>

#include "larch/io/markups/markups.h"
#include "tests/fuzz/fuzz.h"

using namespace larch;

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string name = "case.json";
  const std::string path = fuzz::file_of(name, fuzz::text_of(data, size));
  std::vector<DetectedPose> poses;
  if (!fuzz::accepts({ExitCode::kInput}, name, [&] { poses = read_pose_file(path); })) return 0;
  for (const DetectedPose& found : poses) check_pose(found.pose, "case");
  const std::string copy = fuzz::folder() + "/back.json";
  write_pose_file(copy, poses);
  const std::vector<DetectedPose> back = read_pose_file(copy);
  fuzz::require(back.size() == poses.size(), "a structure was lost");
  for (size_t i = 0; i < back.size(); ++i) {
    const DetectedPose &a = poses[i], &b = back[i];
    fuzz::require(a.name == b.name && a.status == b.status && a.has_pose == b.has_pose &&
                      a.pose == b.pose && a.figures == b.figures &&
                      (a.confidence == b.confidence || std::isnan(a.confidence)),
                  "a structure that was written reads back as another");
  }
  return 0;
}
