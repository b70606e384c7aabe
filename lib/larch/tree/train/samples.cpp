// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/tree/train/samples.h"

#include <algorithm>
#include <cmath>
#include <numeric>

#include "larch/core/random_math.h"
#include "larch/learning/lowest_hash.h"

namespace larch::tree {

void fit_sum(std::vector<uint64_t>& masses) {
  const double sum = std::accumulate(masses.begin(), masses.end(), 0.0);
  for (uint64_t& mass : masses) mass >>= sum < 0x1p64 ? 0 : std::ilogb(sum) - 61;
}

void sum_masses(const Samples& samples, const NodeSamples& list, uint64_t* positive,
                uint64_t* negative) {
  *positive = *negative = 0;
  for (size_t k = 0; k < list.index.size(); ++k) {
    *(samples.positive[list.index[k]] ? positive : negative) += list.mass[k];
  }
}

std::vector<uint32_t> select_samples(const Samples& samples, const NodeSamples& list,
                                     const TreeConfig& config, uint64_t seed, uint64_t heap_index,
                                     int threads) {
  std::vector<uint32_t> of_class[2];
  for (size_t k = 0; k < list.index.size(); ++k) {
    const uint32_t i = list.index[k];
    if (list.mass[k] > 0) of_class[samples.positive[i]].push_back(i);
  }
  const auto hash = [&](uint32_t i) { return hash64(seed, heap_index, samples.id[i]); };
  const int counts[2] = {config.selected_negatives, config.selected_positives};
  for (size_t c = 0; c < 2; ++c) {
    of_class[c] =
        learning::lowest_hashes(of_class[c], static_cast<size_t>(counts[c]), threads, hash);
  }
  std::vector<uint32_t> selected(of_class[0].size() + of_class[1].size());
  std::merge(of_class[0].begin(), of_class[0].end(), of_class[1].begin(), of_class[1].end(),
             selected.begin());
  return selected;
}

std::vector<double> initial_weights(const Samples& samples, const std::vector<uint32_t>& selected,
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

std::vector<uint32_t> draw_columns(const std::vector<uint32_t>& from, size_t all, size_t wanted,
                                   uint64_t seed, uint64_t id) {
  const size_t count = from.empty() ? all : from.size();
  if (wanted >= count) return from;
  std::vector<uint32_t> columns = from;
  if (from.empty()) {
    columns.resize(all);
    std::iota(columns.begin(), columns.end(), 0u);
  }
  return learning::lowest_hashes(columns, wanted, 1,
                                 [&](uint32_t f) { return hash64(seed, id, f); });
}

}  // namespace larch::tree
