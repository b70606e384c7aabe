// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/boost.h"

#include <algorithm>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"

namespace larch::learning {
namespace {

constexpr Dispatch<std::vector<std::vector<BoostRound>>(const BoostJob&)> kBoost{
    "learning::boost", cpu::boost, LARCH_CUDA_FN(cuda::boost)};

void check(const BoostProblem& problem) {
  if (problem.bins < 2 || problem.bins > kBins) {
    throw UsageError("a weak classifier has 2 to " + std::to_string(kBins) + " bins, not " +
                     std::to_string(problem.bins));
  }
  const size_t samples = problem.samples.size();
  if (samples == 0 || problem.positive.size() != samples || problem.weight.size() != samples) {
    throw UsageError("boosting needs a class and a weight for each of at least one sample, not " +
                     std::to_string(problem.positive.size()) + " classes and " +
                     std::to_string(problem.weight.size()) + " weights for " +
                     std::to_string(samples) + " samples");
  }
}

}  // namespace

std::vector<std::vector<BoostRound>> boost(const FeatureSource& source,
                                           std::span<const BoostProblem> problems,
                                           const Context& context) {
  for (const BoostProblem& problem : problems) check(problem);
  return kBoost(source.device(), BoostJob{source, problems, context});
}

std::vector<BoostRound> boost(const FeatureSource& source, const BoostProblem& problem,
                              const Context& context) {
  return boost(source, {&problem, 1}, context).front();
}

size_t samples_at_once(const PreparedColumns& columns) {
  constexpr size_t kMaximumBytes = size_t{8} << 30;  // some tenths of a second on a large device
  const Device& device = columns.on_device.device();
  if (!device.is_cuda()) return 1;
  // A row of the matrix, and what else is by sample.
  const size_t bytes = columns.slots.size() + 17;
  return std::max<size_t>(1, std::min(kMaximumBytes, free_memory_bytes(device) / 2) / bytes);
}

}  // namespace larch::learning
