// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/training_cases.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <set>
#include <tuple>
#include <utility>

#include "larch/core/random_math.h"

namespace larch::pipeline {

std::string cell_of(const Case& c, const char* column) {
  const auto cell = c.further.find(column);
  return cell == c.further.end() ? "" : cell->second;
}

void vary_intensity(hdn::TrainingCase& c, double gain, double offset,
                    const image::IntensityRule& rule, uint64_t seed) {
  const uint64_t stream = std::stoull(c.digest.substr(0, 15), nullptr, 16);
  const auto draw = [&](uint64_t k) { return 2 * hash_unit(seed, stream, k) - 1; };
  const double factor = 1 + gain * draw(0);
  const double shift = offset * draw(1) * rule.steps;
  const auto [low, high] = image::value_range(rule);
  for (Volume<int16_t>& level : c.levels) {
    for (int64_t i = 0; i < level.voxels(); ++i) {
      const double value = std::nearbyint(factor * level[i] + shift);
      level[i] = static_cast<int16_t>(
          std::clamp(value, static_cast<double>(low), static_cast<double>(high)));
    }
  }
}

void group_and_sort(std::vector<hdn::TrainingCase>& cases, std::vector<std::string> group_of) {
  for (size_t c = 0; c < cases.size(); ++c) {
    if (group_of[c].empty()) group_of[c] = cases[c].digest;
  }
  const std::set<std::string> groups(group_of.begin(), group_of.end());
  for (size_t c = 0; c < cases.size(); ++c) {
    cases[c].group = static_cast<size_t>(std::distance(groups.begin(), groups.find(group_of[c])));
  }
  std::stable_sort(cases.begin(), cases.end(), [](const auto& a, const auto& b) {
    return std::tie(a.digest, a.group) < std::tie(b.digest, b.group);
  });
}

}  // namespace larch::pipeline
