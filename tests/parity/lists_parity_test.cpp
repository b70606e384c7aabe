// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/stream.h"
#include "larch/pbt/evaluate/candidates.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_difference_features.h"

namespace larch {
namespace {

using test::cuda_context;
using test::sized;

std::vector<float> map_of(const fixtures::DifferenceModel& model, const Volume<int16_t>& voxels,
                          const pbt::EvaluateConfig& config, const Context& context) {
  const auto set = image::integral_set(voxels.view(), model.channels, image::Padding::kClamp,
                                       model.pad, context);
  const pbt::CompiledModel compiled =
      pbt::compile(model.trees, model.taps_of(), set, config, context);
  Buffer<float> out(context.device, static_cast<size_t>(voxels.voxels()));
  pbt::evaluate_resident(compiled, set, out, context);
  return out.to_vector();
}

TEST_CASE("differences of channels are the same bytes on both devices, for every walk",
          "[pbt::plan][pbt::evaluate]") {
  for (const uint64_t seed : {1, 2, 3}) {
    const fixtures::DifferenceModel model = fixtures::difference_model(seed);
    const auto voxels = fixtures::noise_volume(sized<Vec3i>({45, 23, 19}, {33, 9, 5}), seed);
    for (const pbt::Walk walk : {pbt::Walk::kTile, pbt::Walk::kStack, pbt::Walk::kQueue}) {
      pbt::EvaluateConfig config;
      config.walk = walk;
      config.e1 = 0.05;
      CHECK(map_of(model, voxels, config, cuda_context()) ==
            map_of(model, voxels, config, fixtures::context_of(2)));
    }
  }
}

TEST_CASE("the posteriors of a list of voxels are the same on both devices", "[pbt::posterior]") {
  for (const int trees : {1, 3}) {
    pbt::Model model = fixtures::random_ensemble(9, trees);
    const auto voxels = fixtures::noise_volume({37, 23, 19}, 9);
    std::vector<Vec3i> list;
    for (uint64_t i = 0; i < 5000; ++i) {
      list.push_back(voxels.grid().voxel(hash_below(1, 2, i, 37 * 23 * 19)));
    }
    for (const pbt::Walk walk : {pbt::Walk::kStack, pbt::Walk::kQueue}) {
      pbt::EvaluateConfig config;
      config.walk = walk;
      std::vector<std::vector<float>> found;
      for (const Context& context : {cuda_context(), fixtures::context_of(2)}) {
        const auto set = image::integral_set(voxels.view(), model.channels, model.padding,
                                             model.reach(), context);
        const pbt::CompiledModel compiled = pbt::compile(model, set, config, context);
        found.push_back(pbt::posterior(compiled, set, list, context));
        CHECK(pbt::posterior(compiled, set, {}, context).empty());
      }
      CHECK(found[0] == found[1]);
    }
  }
}

TEST_CASE("the best candidates are the same on both devices", "[pbt::top_candidates]") {
  for (const uint32_t values : {2u, 300u, 1u << 24}) {  // the fewer, the more voxels are equal
    std::vector<float> p(sized(100003, 8003));
    for (size_t i = 0; i < p.size(); ++i) {
      p[i] = static_cast<float>(hash_below(5, 6, i, values)) / static_cast<float>(values);
    }
    for (const int64_t count : {1, 7, 1000, sized(60000, 5000), sized(100003, 8003), 200000}) {
      std::vector<std::vector<pbt::Candidate>> found;
      for (const Context& context : {cuda_context(), fixtures::context_of(2)}) {
        const Buffer<float> there(context.device, std::span<const float>(p));
        found.push_back(pbt::top_candidates(there, count, context));
      }
      REQUIRE(found[0].size() == found[1].size());
      const bool same = std::equal(found[0].begin(), found[0].end(), found[1].begin(),
                                   [](const pbt::Candidate& a, const pbt::Candidate& b) {
                                     return a.voxel == b.voxel && a.probability == b.probability;
                                   });
      CHECK(same);
    }
  }
}

TEST_CASE("one compiled model serves several threads with streams of their own") {
  const pbt::Model model = fixtures::random_ensemble(11, 2);
  const auto voxels = fixtures::noise_volume(sized<Vec3i>({40, 30, 20}, {37, 12, 9}), 11);
  for (const pbt::Walk walk : {pbt::Walk::kTile, pbt::Walk::kStack, pbt::Walk::kQueue}) {
    pbt::EvaluateConfig config;
    config.walk = walk;
    const Context base = cuda_context();
    const auto set =
        image::integral_set(voxels.view(), model.channels, model.padding, model.reach(), base);
    Buffer<float> first(base.device, static_cast<size_t>(voxels.voxels()));
    pbt::evaluate_resident(pbt::compile(model, set, config, base), set, first, base);
    const std::vector<float> wanted = first.to_vector();
    // Nothing but compile waits for the trees to be there.
    const pbt::CompiledModel compiled = pbt::compile(model, set, config, base);
    std::vector<std::vector<float>> found(4);
    std::vector<std::thread> threads;
    threads.reserve(found.size());
    for (auto& values : found) {
      threads.emplace_back([&] {
        try {
          const Stream stream(base.device);
          Context context = base;
          context.device = stream.device();
          Buffer<float> out(context.device, wanted.size());
          pbt::evaluate_resident(compiled, set, out, context);
          values = out.to_vector();
        } catch (...) {
          values.clear();  // differs from what is wanted
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (const auto& values : found) CHECK(values == wanted);
  }
}

}  // namespace
}  // namespace larch
