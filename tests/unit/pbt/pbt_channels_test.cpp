// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/unit/pbt/pbt_difference_features.h"

namespace larch::pbt {
namespace {

using fixtures::DifferenceModel;

/// The posterior of a voxel from the direct sums of its features.
float expected(const DifferenceModel& model, const image::IntegralSet& set,
               const tree::EvaluationRule& rule, const Vec3i& at) {
  std::vector<int32_t> responses;
  for (const auto& taps : model.taps) {
    uint32_t sum = 0;
    for (const features::Tap& tap : taps) {
      const image::IntegralLayout& layout = set.layouts[tap.channel];
      sum += static_cast<uint32_t>(tap.weight) *
             set.data.data()[layout.base(at) + layout.linear_offset(tap.dx, tap.dy, tap.dz)];
    }
    responses.push_back(static_cast<int32_t>(sum));
  }
  const auto q = tree::node_probabilities(model.trees);
  return tree::probability_float(tree::posterior_q60(model.trees, rule, q, responses));
}

TEST_CASE("a feature may be the difference of two channels, of one level or of two") {
  const Context context = fixtures::context_of(2);
  for (const Vec3i size : {Vec3i{23, 14, 9}, Vec3i{5, 9, 8}}) {  // wider and narrower than a slot
    const DifferenceModel model = fixtures::difference_model(3);
    const auto voxels = fixtures::noise_volume(size, 3);
    const auto set = image::integral_set(voxels.view(), model.channels, image::Padding::kClamp,
                                         model.pad, context);
    for (const Walk walk : {Walk::kTile, Walk::kStack}) {
      EvaluateConfig config;
      config.walk = walk;
      config.e1 = 0.05;
      const CompiledModel compiled = compile(model.trees, model.taps_of(), set, config, context);
      Buffer<float> out(context.device, static_cast<size_t>(voxels.voxels()));
      evaluate_resident(compiled, set, out, context);
      for (int64_t i = 0; i < voxels.voxels(); ++i) {
        REQUIRE(out.data()[i] == expected(model, set, {0.05}, voxels.grid().voxel(i)));
      }
    }
  }
}

TEST_CASE("taps beyond the padding, or of a channel that is not there, are refused") {
  const Context context = fixtures::context_of();
  const DifferenceModel model = fixtures::difference_model(4);
  const auto voxels = fixtures::noise_volume({9, 9, 9}, 4);
  const auto near = image::integral_set(voxels.view(), model.channels, image::Padding::kClamp,
                                        model.pad - 1, context);
  CHECK_THROWS_AS(compile(model.trees, model.taps_of(), near, {}, context), UsageError);
  const auto one = image::integral_set(voxels.view(), std::span(model.channels).first(1),
                                       image::Padding::kClamp, model.pad, context);
  CHECK_THROWS_AS(compile(model.trees, model.taps_of(), one, {}, context), UsageError);
}

TEST_CASE("the posteriors of a list of voxels are those of the map") {
  const Context context = fixtures::context_of(2);
  for (const int trees : {1, 3}) {
    const Model model = fixtures::random_ensemble(9, trees);
    const auto voxels = fixtures::noise_volume({17, 13, 11}, 9);
    const auto set =
        image::integral_set(voxels.view(), model.channels, model.padding, model.reach(), context);
    const Volume<float> map = evaluate<float>(model, set, voxels.grid(), {}, context);
    std::vector<Vec3i> list;
    for (int64_t i = 0; i < 300; ++i) {
      list.push_back(voxels.grid().voxel(hash_below(1, 2, static_cast<uint64_t>(i), 17 * 13 * 11)));
    }
    EvaluateConfig config;
    config.walk = Walk::kStack;
    const CompiledModel compiled = compile(model, set, config, context);
    const std::vector<float> found = posterior(compiled, set, list, context);
    REQUIRE(found.size() == list.size());
    for (size_t i = 0; i < list.size(); ++i) REQUIRE(found[i] == map(list[i]));
    CHECK(posterior(compiled, set, {}, context).empty());
    for (const Vec3i outside :
         {Vec3i{-1, 0, 0}, Vec3i{17, 0, 0}, Vec3i{0, 13, 0}, Vec3i{0, 0, 11}}) {
      CHECK_THROWS_AS(posterior(compiled, set, std::vector{outside}, context), UsageError);
    }
    config.walk = Walk::kTile;
    const CompiledModel for_tiles = compile(model, set, config, context);
    CHECK_THROWS_AS(posterior(for_tiles, set, list, context), Error);
  }
}

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
