// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/threshold.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include "larch/pbt/evaluate/slabs.h"

namespace larch::pbt {
namespace {

constexpr int kSteps = 100;

/// Voxels by how many of the thresholds their posterior is above, of each class.
using Counts = std::array<std::array<int64_t, kSteps>, 2>;

void count_voxels(const Volume<float>& posterior, const Volume<uint8_t>& truth, Counts& counts) {
  std::array<float, kSteps - 1> thresholds{};
  for (size_t k = 0; k < thresholds.size(); ++k) {
    thresholds[k] = static_cast<float>(static_cast<double>(k + 1) / kSteps);
  }
  for (int64_t i = 0; i < posterior.voxels(); ++i) {
    if (truth[i] == static_cast<uint8_t>(VoxelClass::kIgnored)) continue;
    const auto above = std::lower_bound(thresholds.begin(), thresholds.end(), posterior[i]);
    ++counts[truth[i]][static_cast<size_t>(above - thresholds.begin())];
  }
}

}  // namespace

std::optional<ScoredThreshold> best_threshold(const Model& model,
                                              const std::vector<TrainingVolume>& volumes,
                                              std::span<const size_t> held_out,
                                              const Context& context) {
  Counts counts{};
  for (const size_t v : held_out) {
    const TrainingVolume& volume = volumes[v];
    context.throw_if_stopped("stopped while the held-out volumes were evaluated");
    count_voxels(evaluate_volume<float>(model, volume.components(), {}, 0, context),
                 volume.truth.empty() ? volume.classes : volume.truth, counts);
  }
  int64_t positives = 0;
  for (const int64_t voxels : counts[1]) positives += voxels;
  if (positives == 0) return std::nullopt;
  int best = 0;
  double best_dice = -1;
  int64_t found = 0, right = 0;
  for (int k = kSteps - 1; k > 0; --k) {
    right += counts[1][static_cast<size_t>(k)];
    found += counts[0][static_cast<size_t>(k)] + counts[1][static_cast<size_t>(k)];
    const double dice = 2 * static_cast<double>(right) / static_cast<double>(found + positives);
    const bool is_nearer = std::abs(2 * k - kSteps) <= std::abs(2 * best - kSteps);
    if (dice < best_dice || (dice == best_dice && !is_nearer)) continue;
    best = k;
    best_dice = dice;
  }
  return ScoredThreshold{static_cast<double>(best) / kSteps, best_dice};
}

}  // namespace larch::pbt
