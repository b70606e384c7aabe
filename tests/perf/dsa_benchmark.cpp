// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <span>
#include <string>
#include <vector>

#include <benchmark/benchmark.h>

#include "larch/dsa/match/match.h"
#include "larch/dsa/sequence.h"
#include "larch/phantom/angiogram.h"
#include "tests/perf/benchmarks.h"
#include "tests/perf/synthetic.h"

namespace larch::perf {
namespace {

constexpr int kEdge = 1024;
constexpr int kFrames = 39;  ///< of the sequences in US 2008/0037845
constexpr int kDrawn = 3;    ///< different ones of them: drawing takes longer than matching

/// The mask and the contrast frames of a synthetic angiography whose body moves by up to 1.5
/// pixels.
struct Frames {
  std::vector<uint16_t> mask{}, contrast{};
};
const Frames& drawn_frames() {
  static const Frames frames = [] {
    phantom::AngiogramConfig config;
    config.size = {kEdge, kEdge};
    config.mask_frames = 1;
    config.frames = 1 + kDrawn;
    config.course = phantom::Course::kConstant;
    config.stored = phantom::Stored::kLinear;
    constexpr int kThreads = 4;
    const auto angiogram = phantom::make_angiogram(config, 1, 0, kThreads);
    Frames drawn;
    drawn.mask = phantom::stored_frame(angiogram, 0, kThreads);
    for (int f = 0; f < kFrames; ++f) {
      const auto frame =
          f < kDrawn ? phantom::stored_frame(angiogram, 1 + f, kThreads)
                     : std::vector<uint16_t>(drawn.contrast.end() - kDrawn * kEdge * kEdge,
                                             drawn.contrast.end() - (kDrawn - 1) * kEdge * kEdge);
      drawn.contrast.insert(drawn.contrast.end(), frame.begin(), frame.end());
    }
    return drawn;
  }();
  return frames;
}

/// What is matched.
struct Work {
  std::string name{};
  dsa::DsaConfig config{};
  bool is_half = false;  ///< the region of interest covers half of the frames
};

std::vector<Work> works() {
  std::vector<Work> all;
  all.push_back({"literal", {.literal = true}, false});
  dsa::DsaConfig config;
  all.push_back({"default", config, false});
  all.push_back({"default_half", config, true});
  config.metric = dsa::Metric::kEntropy;
  all.push_back({"entropy", config, false});
  return all;
}

/// Match of all blocks of all frames. Counters: frames per second, and milliseconds for what is
/// before (samples, filter, bin widths).
void match_frames(benchmark::State& state, const Work& work, int frames, const Context& context) {
  const Vec3i size{kEdge, kEdge, 1};
  const Device& device = context.device;
  const auto pixels = static_cast<size_t>(kEdge) * kEdge;
  const Frames& drawn = drawn_frames();
  std::vector<uint8_t> half(pixels, 0);
  for (size_t i = 0; i < pixels / 2; ++i) half[i] = 1;
  const Buffer<uint8_t> region(
      device, work.is_half ? std::span<const uint8_t>(half) : std::span<const uint8_t>());
  const dsa::SampleTable table = dsa::make_sample_table({}, work.config);
  const auto mask = dsa::to_samples(Buffer<uint16_t>(device, std::span<const uint16_t>(drawn.mask)),
                                    size, table, {}, context);
  const auto mask_at_zero = dsa::filter_at_zero(mask, work.config, context);
  const Buffer<uint16_t> stored(
      device,
      std::span<const uint16_t>(drawn.contrast).first(static_cast<size_t>(frames) * pixels));
  const auto contrast = dsa::filter_at_zero(dsa::to_samples(stored, size, table, region, context),
                                            work.config, context);
  const Buffer<int32_t> shifts =
      dsa::bin_shifts(contrast, mask_at_zero.values.data(), nullptr, table, work.config, context);
  const dsa::BlockGrid grid = dsa::make_block_grid(size, {64, 64, 1}, {64, 64, 1});
  Buffer<dsa::BlockMatch> matches(device, static_cast<size_t>(frames * grid.blocks()));
  dsa::MatchJob job;
  job.config = &work.config;
  job.grid = &grid;
  job.mask = mask.values.data();
  job.mask_at_zero = mask_at_zero.values.data();
  job.contrast = contrast.values.data();
  job.frames = frames;
  job.bin_shift = shifts.data();
  job.out = matches.data();
  dsa::BlockMatch last{};
  for (auto _ : state) {
    dsa::match_blocks(job, context);
    matches.download({&last, 1}, matches.size() - 1);  // waits for the device
    benchmark::DoNotOptimize(last);
  }
  state.counters["frames/s"] = benchmark::Counter(static_cast<double>(state.iterations() * frames),
                                                  benchmark::Counter::kIsRate);
}

/// All that is done with a batch of frames: stored pixels on the host to differences on the host.
void subtract_sequence(benchmark::State& state, const dsa::DsaConfig& config, int frames,
                       const Context& context) {
  const auto pixels = static_cast<size_t>(kEdge) * kEdge;
  const Frames& drawn = drawn_frames();
  dsa::MaskInput input;
  input.size = {kEdge, kEdge, 1};
  input.stored = {drawn.mask};
  input.table = dsa::make_sample_table({}, config);
  const dsa::SequenceMask mask = dsa::make_mask(input, config, context);
  const auto stored =
      std::span<const uint16_t>(drawn.contrast).first(static_cast<size_t>(frames) * pixels);
  for (auto _ : state) {
    benchmark::DoNotOptimize(dsa::subtract_frames(mask, stored, config, {}, context));
  }
  state.counters["frames/s"] = benchmark::Counter(static_cast<double>(state.iterations() * frames),
                                                  benchmark::Counter::kIsRate);
}

}  // namespace

void register_dsa() {
  for (const Place& place : places()) {
    const int frames = place.context.device.is_cuda() ? kFrames : 1;
    const auto add = [&](const std::string& name, auto function) {
      benchmark::RegisterBenchmark(("dsa/" + name + "/" + place.name).c_str(), function)
          ->Unit(benchmark::kMillisecond)
          ->UseRealTime();
    };
    for (const Work& work : works()) {
      add(work.name, [work, frames, context = place.context](benchmark::State& state) {
        match_frames(state, work, frames, context);
      });
    }
    dsa::DsaConfig config;
    const auto add_sequence = [&](const std::string& name) {
      add(name, [config, frames, context = place.context](benchmark::State& state) {
        subtract_sequence(state, config, frames, context);
      });
    };
    add_sequence("sequence");
    config.passes = "64/64,64/32,48/16";
    add_sequence("sequence_three_passes");
    if (place.context.device.is_cuda()) continue;
    config.passes.clear();
    config.method = dsa::Method::kFlex;
    add_sequence("sequence_flex");
  }
}

}  // namespace larch::perf
