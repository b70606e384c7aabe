// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch::pbt {
namespace {

TEST_CASE("a compiled model outlives what it was made of, and serves several threads at once") {
  const Context context = fixtures::context_of();
  const auto voxels = fixtures::noise_volume({21, 15, 12}, 10);
  std::vector<float> wanted;
  image::IntegralSet set;
  CompiledModel compiled;
  {
    const Model model = fixtures::random_ensemble(10, 2);
    set = image::integral_set(voxels.view(), model.channels, model.padding, model.reach(), context);
    const Volume<float> map = evaluate<float>(model, set, voxels.grid(), {}, context);
    wanted.assign(map.begin(), map.end());
    CompiledModel first = compile(model, set, {}, context);
    compiled = std::move(first);
  }
  std::vector<std::vector<float>> found(4);
  std::vector<std::thread> threads;
  for (auto& values : found) {
    threads.emplace_back([&] {
      Buffer<float> out(context.device, wanted.size());
      evaluate_resident(compiled, set, out, context);
      values = out.to_vector();
    });
  }
  for (std::thread& thread : threads) thread.join();
  for (const auto& values : found) CHECK(values == wanted);
}

}  // namespace
}  // namespace larch::pbt
