// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/dsa/field_samples.cuh"
#include "cuda/dsa/match_field.cuh"
#include "cuda/dsa/search_kinds.cuh"

namespace larch::dsa::cuda {
namespace {

/// Shared memory allows for no more blocks of threads on a multiprocessor.
constexpr int kResident = 2;

/// One block of threads for each block of each frame.
template <class Kind>
__global__ void __launch_bounds__(kThreads, kResident)
    field_kernel(const __grid_constant__ MatchArguments a, const __grid_constant__ SharedPlan plan,
                 uint8_t* is_left) {
  __shared__ Scratch scratch;
  FieldSamples samples(a, plan);
  BlockSearch<Kind, FieldSamples> search(a, samples, scores_of(plan), similarities_of(plan),
                                         scratch);
  const auto blocks = static_cast<uint32_t>(a.blocks);
  const bool is_done = search.search(static_cast<int32_t>(blockIdx.x / blocks),
                                     static_cast<int32_t>(blockIdx.x % blocks));
  if (threadIdx.x == 0) is_left[blockIdx.x] = is_done ? 0 : 1;
}

SharedPlan plan_of(const MatchArguments& a, int64_t* words) {
  const int64_t pixels = int64_t{a.block.x} * a.block.y;
  SharedPlan plan;
  Layout layout;
  layout.add(int64_t{plan.histograms} * kBins);
  plan.contrast = layout.add((pixels + 1) / 2);
  plan.base = layout.add(pixels);
  plan.mask = layout.add(int64_t{kFieldRow} * kFieldRows / 2);
  plan.taps = layout.add(kTapWords + 4);
  add_scores(a, true, layout, plan);
  *words = layout.words();
  plan.words = static_cast<uint32_t>(std::min<int64_t>(layout.words(), INT32_MAX));
  return plan;
}

template <class Kind>
void launch(const MatchArguments& a, uint8_t* is_left, const Device& device) {
  int64_t words = 0;
  const SharedPlan plan = plan_of(a, &words);
  const auto kernel = field_kernel<Kind>;
  allow_shared(kernel, plan);
  kernel<<<static_cast<uint32_t>(a.items), kThreads, plan.words * sizeof(uint32_t),
           larch::cuda::stream_of(device)>>>(a, plan, is_left);
  larch::cuda::check_launch("dsa field_kernel");
}

}  // namespace

bool can_match_over_field(const MatchArguments& a, const Device& device) {
  if (int64_t{a.block.x} * a.block.y > kFieldPixels || a.block.x > kFieldRow ||
      a.block.y > kFieldRows) {
    return false;
  }
  int64_t words = 0;
  plan_of(a, &words);
  const int most = larch::cuda::most_shared_bytes(device);
  return words * 4 + static_cast<int64_t>(sizeof(Scratch)) + 1024 <= most;
}

void match_over_field(const MatchArguments& a, uint8_t* is_left, const Device& device) {
  const bool fits = a.plan.search == Search::kFull && searches_lattice(a.plan) &&
                    a.plan.subsearch == SubSearch::kFit && a.overflow == Overflow::kWrap;
  (fits ? launch<FitKind> : launch<AnyKind>)(a, is_left, device);
}

}  // namespace larch::dsa::cuda
