// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "larch/boundary/refine.h"
#include "larch/hdn/model.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/io/markups/markups.h"
#include "larch/models/model_file.h"

// larch-boundary-benchmark MODEL IMAGE POSES [DEVICE [REPEATS [THREADS]]]: times the refinement of
// the model's structure in one image from its pose, and prints JSON: with the upload of the image
// and the read-back of the mesh, and the upload with the resolutions alone. On a GPU the former
// ends with the read-back, so that the host's clock sees all of the work.
namespace {

using namespace larch;
using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

struct Times {
  double median = 0, least = 0, most = 0;
};
template <class F>
Times time_of(int repeats, const F& body) {
  body();
  std::vector<double> times;
  for (int k = 0; k < repeats; ++k) {
    const auto start = Clock::now();
    body();
    times.push_back(milliseconds_since(start));
  }
  std::sort(times.begin(), times.end());
  return {times[times.size() / 2], times.front(), times.back()};
}

int run(int argc, char** argv) {
  const int repeats = argc > 5 ? std::atoi(argv[5]) : 20;
  Context context;
  context.device = choose_device(argc > 4 ? argv[4] : "cpu");
  context.threads = argc > 6 ? std::atoi(argv[6]) : 2;
  boundary::Model model = models::read_model<boundary::Model>(argv[1]);
  size_t nodes = 0, weaks = 0;
  for (const boundary::Stage& stage : model.stages) {
    nodes += stage.trees.nodes.size();
    weaks += stage.trees.weaks.size();
  }
  const boundary::ResidentModel resident =
      boundary::make_resident(std::move(model), context.device);
  const Volume<int16_t> voxels =
      image::to_model_space(read_volume<float>(argv[2]), resident.model.space, context, argv[2]);
  boundary::Start start;
  for (const DetectedPose& pose : read_any_poses(argv[3])) {
    if (pose.name != resident.model.structure || !pose.has_pose) continue;
    start.pose = hdn::grid_from_world(voxels.grid(), pose.pose);
  }
  const int last = resident.model.levels() - 1;
  const Times whole = time_of(repeats, [&] {
    const auto images = boundary::make_images(resident, voxels, {}, context);
    boundary::refine(resident, images, start, 0, last, context);
  });
  const Times upload = time_of(repeats, [&] {
    const auto images = boundary::make_images(resident, voxels, {}, context);
    int16_t one = 0;
    images.back().voxels.download({&one, 1});
  });
  std::printf(
      "{\"device\": \"%s\", \"nodes\": %zu, \"weaks\": %zu, \"size\": [%d, %d, %d], \"levels\": "
      "%d, \"refine_median_ms\": %.3f, \"refine_least_ms\": %.3f, \"refine_most_ms\": %.3f, "
      "\"upload_median_ms\": %.3f, \"upload_least_ms\": %.3f, \"upload_most_ms\": %.3f, "
      "\"repeats\": %d}\n",
      describe(context.device, context.threads).c_str(), nodes, weaks, voxels.size().x,
      voxels.size().y, voxels.size().z, last + 1, whole.median, whole.least, whole.most,
      upload.median, upload.least, upload.most, repeats);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 4) {
    std::fprintf(
        stderr, "usage: larch-boundary-benchmark MODEL IMAGE POSES [DEVICE [REPEATS [THREADS]]]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "larch-boundary-benchmark: error: %s\n", error.what());
    return 1;
  }
}
