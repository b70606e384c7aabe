// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <string>
#include <vector>

#include "larch/hdn/detect.h"
#include "larch/image/preprocess.h"
#include "larch/io/image/image.h"
#include "larch/models/model_file.h"

// larch-hdn-benchmark MODEL IMAGE [DEVICE [REPEATS [THREADS [GPU_SHARE]]]]: times the detection of
// all structures of a network in one image, upload and read-back included, and prints JSON. On a
// GPU every call ends with the read-back, so that the host's clock sees all of the work.
namespace {

using Clock = std::chrono::steady_clock;

double milliseconds_since(Clock::time_point start) {
  return std::chrono::duration<double, std::milli>(Clock::now() - start).count();
}

int run(int argc, char** argv) {
  using namespace larch;
  const std::string device = argc > 3 ? argv[3] : "cpu";
  const int repeats = argc > 4 ? std::atoi(argv[4]) : 20;
  Context context;
  context.device = choose_device(device);
  context.threads = argc > 5 ? std::atoi(argv[5]) : 2;
  const double gpu_share = argc > 6 ? std::atof(argv[6]) : 1;
  const Volume<float> image = read_volume<float>(argv[2]);
  auto start = Clock::now();
  const Buffer<int> first_use(context.device, 1);
  const double device_start_ms = milliseconds_since(start);
  start = Clock::now();
  hdn::Model model = models::read_model<hdn::Model>(argv[1]);
  const double read_ms = milliseconds_since(start);
  size_t nodes = 0, weaks = 0;
  for (const hdn::Structure& s : model.structures) {
    for (const hdn::Detector& d : s.detectors) {
      nodes += d.trees.nodes.size();
      weaks += d.trees.weaks.size();
    }
  }
  start = Clock::now();
  const hdn::ResidentModel resident =
      hdn::make_resident(std::move(model), {}, context.device, gpu_share);
  const double resident_ms = milliseconds_since(start);
  start = Clock::now();
  const Volume<int16_t> voxels =
      image::to_model_space(image, resident.model.space, context, argv[2]);
  const double space_ms = milliseconds_since(start);
  std::vector<double> times;
  hdn::SharedTimes shared;
  size_t found = 0;
  for (int k = 0; k < repeats + 1; ++k) {
    start = Clock::now();
    const auto result = hdn::detect(resident, voxels, voxels.grid(), context, &shared);
    times.push_back(milliseconds_since(start));
    found = 0;
    for (const auto& s : result) found += s.status == hdn::FoundStatus::kFound ? 1 : 0;
  }
  const double first_ms = times.front();
  times.erase(times.begin());
  std::sort(times.begin(), times.end());
  std::printf(
      "{\"device\": \"%s\", \"structures\": %zu, \"found\": %zu, \"nodes\": %zu, \"weaks\": %zu, "
      "\"size\": [%d, %d, %d], \"device_start_ms\": %.3f, \"model_read_ms\": %.3f, "
      "\"model_to_device_ms\": %.3f, "
      "\"model_space_ms\": %.3f, \"first_ms\": %.3f, \"detect_median_ms\": %.3f, "
      "\"detect_least_ms\": %.3f, \"detect_most_ms\": %.3f, \"repeats\": %d, \"gpu_share\": %g, "
      "\"cpu_mean_ms\": %.3f, \"wait_mean_ms\": %.3f}\n",
      describe(context.device, context.threads).c_str(), resident.model.structures.size(), found,
      nodes, weaks, voxels.size().x, voxels.size().y, voxels.size().z, device_start_ms, read_ms,
      resident_ms, space_ms, first_ms, times[times.size() / 2], times.front(), times.back(),
      repeats, gpu_share, 1000 * shared.cpu_seconds / (repeats + 1),
      1000 * shared.wait_seconds / (repeats + 1));
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) {
    std::fprintf(
        stderr,
        "usage: larch-hdn-benchmark MODEL IMAGE [DEVICE [REPEATS [THREADS [GPU_SHARE]]]]\n");
    return 2;
  }
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "larch-hdn-benchmark: error: %s\n", error.what());
    return 1;
  }
}
