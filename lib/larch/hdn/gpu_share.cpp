// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/hdn/gpu_share.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace larch::hdn {
namespace {

template <class T>
void read_back(T* to, const T* from, size_t count, const Context& context) {
  if (count > 0) memory::copy(Device::cpu(), to, context.device, from, count * sizeof(T));
}

/// The candidates that segments start from.
struct HostCandidates {
  int32_t count = 0;
  std::vector<Candidate> all;
};

}  // namespace

void run_shared_stage(const StageView& stage, std::span<const Segment> segments,
                      std::span<const DetectorView> on_host, const LevelViews& level,
                      double gpu_share, SharedTimes& times, const Context& context) {
  using Clock = std::chrono::steady_clock;
  std::vector<HostCandidates> candidates(segments.size());
  std::vector<Segment> here(segments.begin(), segments.end());
  for (size_t i = 0; i < here.size(); ++i) {
    HostCandidates& in = candidates[i];
    read_back(&in.count, here[i].in_count, 1, context);
    in.all.resize(static_cast<size_t>(in.count));
    read_back(in.all.data(), here[i].in, in.all.size(), context);
    here[i].in = in.all.data();
    here[i].in_count = &in.count;
    here[i].detector = on_host[i];
  }
  const auto of_gpu =
      static_cast<uint64_t>(std::llround(gpu_share * static_cast<double>(stage.slots)));
  const size_t rest = stage.slots - of_gpu;
  const Clock::time_point start = Clock::now();
  score_stage(stage, 0, of_gpu, context);
  std::vector<uint64_t> keys(stage.slots);
  std::vector<float> probabilities(stage.slots);
  StageView twin = stage;
  twin.level = level;
  twin.segments = here.data();
  twin.keys = keys.data();
  twin.probabilities = probabilities.data();
  cpu::score_stage(twin, of_gpu, stage.slots, context);
  const Clock::time_point scored = Clock::now();
  const auto send = [&](auto* to, const auto* from) {
    memory::copy(context.device, to + of_gpu, Device::cpu(), from + of_gpu, rest * sizeof *from);
  };
  if (rest > 0) {
    send(stage.keys, keys.data());
    send(stage.probabilities, probabilities.data());
  }
  keep_stage(stage, context);
  times.cpu_seconds += std::chrono::duration<double>(scored - start).count();
  times.wait_seconds += std::chrono::duration<double>(Clock::now() - scored).count();
}

}  // namespace larch::hdn
