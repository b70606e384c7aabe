// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/evaluate/candidates.h"

#include <algorithm>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::pbt {
namespace {

constexpr Dispatch<std::vector<Candidate>(const CandidatesJob&, const Context&)> kTop{
    "pbt::top_candidates", cpu::top_candidates, LARCH_CUDA_FN(cuda::top_candidates)};

CandidatesJob job_of(const float* probability, int64_t voxels, int64_t count) {
  return {probability, voxels, std::clamp<int64_t>(count, 0, voxels)};
}

}  // namespace

std::vector<Candidate> top_candidates(const Volume<float>& probability, int64_t count) {
  return cpu::top_candidates(job_of(probability.data(), probability.voxels(), count), {});
}

std::vector<Candidate> top_candidates(const Buffer<float>& probability, int64_t count,
                                      const Context& context) {
  if (!(probability.device() == context.device)) {
    throw UsageError("pbt::top_candidates: the probabilities are on " +
                     to_string(probability.device()) + ", the context on " +
                     to_string(context.device));
  }
  const CandidatesJob job =
      job_of(probability.data(), static_cast<int64_t>(probability.size()), count);
  return job.count == 0 ? std::vector<Candidate>{} : kTop(context.device, job, context);
}

namespace cpu {

std::vector<Candidate> top_candidates(const CandidatesJob& job, const Context& /*context*/) {
  std::vector<Candidate> best;
  if (job.count <= 0) return best;
  // Voxels that may be among the best are collected until they are twice as many as wanted; then
  // the better half is kept, and its last one is the bar for those that follow.
  const auto wanted = static_cast<size_t>(job.count);
  const auto keep = static_cast<std::ptrdiff_t>(wanted);
  Candidate bar;
  bool has_bar = false;
  for (int64_t i = 0; i < job.voxels; ++i) {
    const Candidate candidate{i, job.probability[i]};
    if (has_bar && !comes_before(candidate, bar)) continue;
    best.push_back(candidate);
    if (best.size() < 2 * wanted) continue;
    std::nth_element(best.begin(), best.begin() + (keep - 1), best.end(), comes_before);
    best.resize(wanted);
    bar = best.back();
    has_bar = true;
  }
  std::partial_sort(best.begin(),
                    best.begin() + std::min<std::ptrdiff_t>(keep, best.end() - best.begin()),
                    best.end(), comes_before);
  best.resize(std::min(wanted, best.size()));
  return best;
}

}  // namespace cpu
}  // namespace larch::pbt
