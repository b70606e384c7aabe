// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "larch/phantom/head.h"
#include "tests/unit/levelset/requests.h"

// White matter of a head whose truth is known; scripts/levelset-accuracy has larger ones.
namespace {

using namespace larch;
using namespace larch::levelset;
using namespace larch::test;

constexpr auto kWhite = static_cast<uint8_t>(phantom::Tissue::kWhiteMatter);

phantom::HeadCase noisy_head(double snr) {
  phantom::HeadConfig config;
  config.size = {64, 64, 64};
  config.snr = snr;
  return phantom::make_head(config, 77, 0, 2);
}

/// Whether all voxels up to `radius` from a place are white matter.
bool is_deep(const LabelVolume& truth, const Vec3i& at, int radius) {
  for (int k = 0; k < 3; ++k) {
    if (at[k] < radius || at[k] + radius >= truth.size()[k]) return false;
  }
  for (int z = -radius; z <= radius; ++z) {
    for (int y = -radius; y <= radius; ++y) {
      for (int x = -radius; x <= radius; ++x) {
        if (x * x + y * y + z * z > radius * radius) continue;
        if (truth({at.x + x, at.y + y, at.z + z}) != kWhite) return false;
      }
    }
  }
  return true;
}

/// Places (world, mm) deep in the white matter, drawn by hash.
std::vector<Vec3d> drawn_seeds(const LabelVolume& truth, size_t count) {
  std::vector<Vec3d> seeds;
  for (uint64_t n = 0; seeds.size() < count; ++n) {
    const auto share = hash_unit(18, 0, n);
    const auto i = static_cast<int64_t>(share * static_cast<double>(truth.voxels()));
    const Vec3i at = truth.grid().voxel(i);
    if (is_deep(truth, at, 4)) seeds.push_back(world_from_index(truth.grid(), at.cast<double>()));
  }
  return seeds;
}

SegmentResult grown(const phantom::HeadCase& head, const Vec3d& seed, Tracker tracker) {
  SegmentRequest request;
  request.image = Volume<float>(head.image.grid());
  std::copy(head.image.begin(), head.image.end(), request.image.begin());
  request.spheres = {{.centre = seed, .radius = 4 * head.image.grid().spacing_mm.x}};
  request.config.lower = 850;
  request.config.upper = 1200;
  request.config.tracker = tracker;
  return segment(request, {});
}

double dice(const SegmentResult& found, const LabelVolume& truth) {
  int64_t both = 0, sum = 0;
  for (int64_t i = 0; i < truth.voxels(); ++i) {
    const bool inside = found.labels[i] != 0, wanted = truth[i] == kWhite;
    both += inside && wanted ? 1 : 0;
    sum += int{inside} + int{wanted};
  }
  return 2 * static_cast<double>(both) / static_cast<double>(sum);
}

TEST_CASE("where the seed lies in a structure makes next to no difference, in noise too") {
  const double snr = GENERATE(0.0, 11.0);
  const phantom::HeadCase head = noisy_head(snr);
  std::vector<double> values;
  for (const Vec3d& seed : drawn_seeds(head.labels, 10)) {
    values.push_back(dice(grown(head, seed, Tracker::kBrick), head.labels));
  }
  const auto [least, most] = std::minmax_element(values.begin(), values.end());
  CAPTURE(snr, *least, *most);
  CHECK(*most - *least < 0.002);
  CHECK(*least > (snr == 0 ? 0.90 : 0.83));
}

}  // namespace
