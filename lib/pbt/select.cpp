// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>

#include "larch/core/random_math.h"
#include "larch/pbt/grow.h"

namespace larch::pbt {

void sum_masses(const SampleSet& samples, const NodeSamples& list, uint64_t* positive,
                uint64_t* negative) {
  *positive = *negative = 0;
  for (size_t k = 0; k < list.index.size(); ++k) {
    *(samples.positive[list.index[k]] ? positive : negative) += list.mass[k];
  }
}

std::vector<uint32_t> select_samples(const SampleSet& samples, const NodeSamples& list,
                                     const TreeConfig& config, uint64_t seed, uint64_t heap_index) {
  std::vector<uint32_t> selected;
  for (const bool positive : {false, true}) {
    std::vector<std::pair<uint64_t, uint32_t>> keyed;
    for (size_t k = 0; k < list.index.size(); ++k) {
      const uint32_t i = list.index[k];
      if ((samples.positive[i] != 0) == positive && list.mass[k] > 0) {
        keyed.emplace_back(hash64(seed, heap_index, samples.id(i)), i);
      }
    }
    const auto count =
        static_cast<size_t>(positive ? config.selected_positives : config.selected_negatives);
    if (keyed.size() > count) {
      std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(count),
                       keyed.end());
      keyed.resize(count);
    }
    for (const auto& entry : keyed) selected.push_back(entry.second);
  }
  std::sort(selected.begin(), selected.end());
  return selected;
}

std::vector<double> initial_weights(const SampleSet& samples, const std::vector<uint32_t>& selected,
                                    const NodeSamples& list, Balance balance) {
  uint64_t all[2], chosen[2] = {0, 0};
  sum_masses(samples, list, &all[1], &all[0]);
  // Both lists ascend, so one pass finds the mass of each selected sample.
  std::vector<uint64_t> mass(selected.size());
  size_t k = 0;
  for (size_t s = 0; s < selected.size(); ++s) {
    while (list.index[k] != selected[s]) ++k;
    mass[s] = list.mass[k];
    chosen[samples.positive[selected[s]]] += mass[s];
  }
  double share[2] = {0.5, 0.5};
  if (balance == Balance::kMass) {
    const double total = static_cast<double>(all[0]) + static_cast<double>(all[1]);
    for (int c = 0; c < 2; ++c) share[c] = static_cast<double>(all[c]) / total;
  }
  if (chosen[0] == 0 || chosen[1] == 0) share[0] = share[1] = 1;
  std::vector<double> weight(selected.size());
  for (size_t s = 0; s < selected.size(); ++s) {
    const uint8_t c = samples.positive[selected[s]];
    weight[s] = share[c] * static_cast<double>(mass[s]) / static_cast<double>(chosen[c]);
  }
  return weight;
}

}  // namespace larch::pbt
