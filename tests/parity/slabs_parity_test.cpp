// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <set>

#include <catch2/catch.hpp>

#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

using test::sized;

/// The least memory with which the slabs of `problem` are planned.
int64_t least_memory(const pbt::Model& model, voxels::SlabProblem problem) {
  int64_t low = 0, high = int64_t{1} << 40;
  while (high - low > 1) {
    problem.memory_bytes = (low + high) / 2;
    try {
      pbt::plan_slabs(model, problem);
      high = problem.memory_bytes;
    } catch (const MemoryError&) {
      low = problem.memory_bytes;
    }
  }
  return high;
}

/// Slabs of several sizes on a CUDA device against the whole volume on the CPU, for a model whose
/// second channel is at pyramid level `level`.
void check_slabs(int level) {
  Context gpu = fixtures::context_of(4);
  gpu.device = Device::cuda();
  fixtures::RandomTree tree;
  tree.channels = {{image::ChannelKind::kIntensity, 0}, {image::ChannelKind::kGaussian, level}};
  pbt::Model model = fixtures::random_model(20 + static_cast<uint64_t>(level), tree);
  if (level == 1) model.padding = image::Padding::kZero;
  const auto voxels = fixtures::noise_volume(sized<Vec3i>({31, 22, 120}, {17, 9, 50}), 7);
  Volume<uint8_t> roi(voxels.grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = i % 7 < 3 ? 1 : 0;
  const Volume<uint8_t>* const rois[] = {nullptr, &roi};
  for (const Volume<uint8_t>* region : rois) {
    const auto whole = pbt::evaluate_volume({model, {}}, {&voxels, 1}, {}, int64_t{1} << 40,
                                            fixtures::context_of(4), region);
    voxels::SlabProblem problem{voxels.size(), 4, region != nullptr, true, 0};
    const int64_t least = least_memory(model, problem);
    std::set<int> counts;
    for (const int64_t more :
         {0, sized(1 << 17, 1 << 14), sized(1 << 19, 1 << 16), sized(1 << 21, 1 << 18), 1 << 30}) {
      problem.memory_bytes = least + more;
      counts.insert(pbt::plan_slabs(model, problem).count);
      const auto slabs =
          pbt::evaluate_volume({model, gpu.device}, {&voxels, 1}, {}, least + more, gpu, region);
      CHECK(std::equal(whole.begin(), whole.end(), slabs.begin()));
    }
    CHECK(counts.size() >= sized<size_t>(3, 2));
  }
}

// One case for each level: racecheck runs cases side by side, and takes minutes for one.
TEST_CASE("slabs on a CUDA device give the bytes of the whole volume on the CPU") {
  check_slabs(0);
}

TEST_CASE("slabs on a CUDA device, zero padding and a channel at half the resolution") {
  check_slabs(1);
}

TEST_CASE("slabs on a CUDA device, a channel at an eighth of the resolution") {
  check_slabs(3);
}

/// A model of `depth` levels whose nodes are never sure, so that voxels go to both children.
pbt::Model undecided_model(int depth) {
  fixtures::RandomTree spec;
  spec.depth = depth;
  spec.self_tests = false;
  pbt::Model model = fixtures::random_model(77, spec);
  model.e1 = 0.01;
  model.e2 = 0.4;
  return model;
}

TEST_CASE("the queue walk in portions gives the bytes of the tile walk on the CPU") {
  Context gpu = fixtures::context_of(4);
  gpu.device = Device::cuda();
  const pbt::Model model = undecided_model(6);
  const auto voxels = fixtures::noise_volume(sized<Vec3i>({33, 20, 41}, {19, 10, 21}), 9);
  Volume<uint8_t> roi(voxels.grid());
  for (int64_t i = 0; i < roi.voxels(); ++i) roi[i] = i % 5 < 2 ? 1 : 0;
  const auto evaluate_on = [&](const Context& context, const Volume<uint8_t>* region,
                               int64_t queue_items) {
    pbt::EvaluateConfig config;
    config.walk = context.device.is_cuda() ? pbt::Walk::kQueue : pbt::Walk::kTile;
    const auto set = image::integral_set(voxels.view(), model.channels, model.padding,
                                         std::max(1, model.reach()), context);
    return pbt::evaluate({model, context.device}, set, voxels.grid(), config, context, region,
                         queue_items);
  };
  const Volume<uint8_t>* const rois[] = {nullptr, &roi};
  for (const Volume<uint8_t>* region : rois) {
    const auto expected = evaluate_on(fixtures::context_of(4), region, pbt::kMaximumQueueItems);
    for (const int64_t most :
         {int64_t{300}, int64_t{4096}, int64_t{65536}, pbt::kMaximumQueueItems}) {
      const auto queued = evaluate_on(gpu, region, most);
      CHECK(std::equal(expected.begin(), expected.end(), queued.begin()));
    }
  }
}

}  // namespace
}  // namespace larch
