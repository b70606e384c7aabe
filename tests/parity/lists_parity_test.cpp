// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/device.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

using test::cuda_context;
using test::sized;

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
