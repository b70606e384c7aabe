// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include <benchmark/benchmark.h>

#include "larch/image/integral.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

const pbt::Model& reference_tree() {
  static const pbt::Model model = synthetic_model();
  return model;
}
const pbt::Model& deep_tree() {
  static const pbt::Model model = synthetic_model({10, 1});
  return model;
}
const pbt::Model& two_level_tree() {
  static const pbt::Model model = synthetic_model({6, 2});
  return model;
}
const pbt::Model& strong_tree() {
  static const pbt::Model model = single_classifier();
  return model;
}

using ModelOf = const pbt::Model& (*)();

/// One volume of a size serves all benchmarks; larger ones repeat a block of 128 voxels a side.
const Volume<int16_t>& image_of(const Vec3i& size) {
  static Volume<int16_t> image;
  if (image.size() == size) return image;
  const Volume<int16_t> block =
      noise_and_blobs({std::min(size.x, 144), std::min(size.y, 144), std::min(size.z, 144)}, 3)
          .voxels;
  image = Volume<int16_t>(Grid{size, {1, 1, 1}, {0, 0, 0}, {}});
  for (int z = 0; z < size.z; ++z) {
    for (int y = 0; y < size.y; ++y) {
      for (int x = 0; x < size.x; ++x) {
        image({x, y, z}) = block({x % block.size().x, y % block.size().y, z % block.size().z});
      }
    }
  }
  return image;
}

struct Variant {
  std::string name;
  ModelOf model;
  Vec3i size;
  pbt::EvaluateConfig config;
  bool with_integral = false;
};

/// From voxels on the device (with_integral) or the integral volume on it to
/// probabilities on the host.
void evaluate(benchmark::State& state, const Variant& variant, const Context& context) {
  const pbt::Model& model = variant.model();
  const Volume<int16_t>& image = image_of(variant.size);
  const Buffer<int16_t> voxels(
      context.device, std::span<const int16_t>(image.data(), static_cast<size_t>(image.voxels())));
  image::IntegralSet set;
  set.size = variant.size;
  set.layouts = image::layouts_for(variant.size, model.channels, model.reach_along());
  set.data =
      Buffer<uint32_t>(context.device, static_cast<size_t>(image::total_elements(set.layouts)));
  const auto integrate = [&] {
    image::integrate_resident(voxels, variant.size, model.channels, model.padding, set.layouts,
                              set.data, context);
  };
  integrate();
  const pbt::ResidentModel resident(model, context.device);
  pbt::evaluate(resident, set, image.grid(), variant.config, context);
  for (auto _ : state) {
    if (variant.with_integral) integrate();
    pbt::evaluate(resident, set, image.grid(), variant.config, context);
  }
  state.SetItemsProcessed(state.iterations() * image.voxels());
  const double taps = taps_per_voxel(model, image_of({140, 101, 144}));
  state.counters["taps_per_voxel"] = taps;
  state.counters["taps"] =
      benchmark::Counter(taps * static_cast<double>(image_of(variant.size).voxels()),
                         benchmark::Counter::kIsIterationInvariantRate);
}

std::vector<Variant> variants(bool cuda) {
  pbt::EvaluateConfig tile, stack, queue, hard;
  tile.walk = pbt::Walk::kTile;
  stack.walk = pbt::Walk::kStack;
  queue.walk = pbt::Walk::kQueue;
  hard.hard = true;
  const Vec3i seeds{140, 101, 144};
  std::vector<Variant> all{{"tile", reference_tree, seeds, tile, true},
                           {"tile/no_integral", reference_tree, seeds, tile},
                           {"stack/no_integral", reference_tree, seeds, stack},
                           {"hard", reference_tree, seeds, hard, true},
                           {"two_levels", two_level_tree, seeds, tile, true}};
  if (!cuda) return all;
  all.push_back({"queue/no_integral", reference_tree, seeds, queue});
  for (const auto& [name, config] : {std::pair{"stack", stack}, {"queue", queue}}) {
    all.push_back({std::string("deep/") + name, deep_tree, seeds, config});
  }
  const Vec3i middle{256, 256, 256}, large{512, 512, 512};
  all.push_back({"strong_classifier/256", strong_tree, middle, tile});
  all.push_back({"strong_classifier/256/stack", strong_tree, middle, stack});
  all.push_back({"tile/256", reference_tree, middle, tile, true});
  all.push_back({"stack/256/no_integral", reference_tree, middle, stack});
  all.push_back({"tile/512", reference_tree, large, tile, true});
  return all;
}

}  // namespace

void register_evaluate() {
  for (const Place& place : places()) {
    for (const Variant& variant : variants(place.context.device.is_cuda())) {
      const std::string name = "evaluate/" + variant.name + "/" + place.name;
      benchmark::RegisterBenchmark(name.c_str(),
                                   [variant, context = place.context](benchmark::State& state) {
                                     evaluate(state, variant, context);
                                   })
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    }
  }
}

}  // namespace larch::perf
