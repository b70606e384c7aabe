// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pose/correction.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>
#include <span>

#include "larch/data/symmetric_matrix.h"

namespace larch::pose {
namespace {

constexpr double kRidge = 0.3;

/// Returns the inputs of a case; `mean` stands for what was not found.
std::vector<double> inputs_of(const FoundPoses& found, size_t own,
                              const std::vector<double>& mean) {
  const Pose& self = *found[own];
  std::vector<double> inputs{log_of(self.edges_mm[0]), log_of(self.edges_mm[1]),
                             log_of(self.edges_mm[2])};
  for (size_t s = 0; s < found.size(); ++s) {
    if (s == own) continue;
    if (found[s] != nullptr) {
      const RelativePose r = relative_pose(self, *found[s]);
      inputs.insert(inputs.end(), r.begin(), r.end());
    } else {
      for (int k = 0; k < 9; ++k) inputs.push_back(mean.empty() ? 0 : mean[inputs.size()]);
    }
  }
  return inputs;
}

/// The inputs as they are weighted: from the mean, as far as training knows them.
std::vector<double> centred_inputs(const PoseCorrection& correction, const FoundPoses& found,
                                   size_t own) {
  std::vector<double> x = inputs_of(found, own, correction.input_mean);
  for (size_t i = 0; i < x.size(); ++i) {
    const double most = 3 * correction.input_sd[i];
    x[i] = std::clamp(x[i] - correction.input_mean[i], -most, most);
  }
  return x;
}

/// Means of the inputs, each over the cases in which its structure was found.
std::vector<double> mean_inputs(std::span<const FoundPoses> found, size_t own) {
  std::vector<double> mean, count;
  for (const FoundPoses& f : found) {
    const std::vector<double> inputs = inputs_of(f, own, {});
    mean.resize(inputs.size(), 0);
    count.resize(inputs.size(), 0);
    for (size_t i = 0; i < inputs.size(); ++i) {
      const size_t other = i < 3 ? own : (i - 3) / 9, s = i < 3 || other < own ? other : other + 1;
      if (f[s] == nullptr) continue;
      mean[i] += inputs[i];
      count[i] += 1;
    }
  }
  for (size_t i = 0; i < mean.size(); ++i) mean[i] /= std::max(count[i], 1.0);
  return mean;
}

/// Row k of the correction: a constant and a weight per input.
double row_value(const PoseCorrection& correction, size_t k, const std::vector<double>& x) {
  const double* row = correction.weights.data() + k * (x.size() + 1);
  double sum = row[0];
  for (size_t i = 0; i < x.size(); ++i) sum += row[1 + i] * x[i];
  return sum;
}

/// Returns the correction that fits some cases; without weights it has constants alone.
PoseCorrection fit_correction(const CorrectionCases& all, size_t own, bool has_weights) {
  const std::vector<FoundPoses>& found = all.found;
  PoseCorrection correction;
  if (found.empty()) return correction;
  correction.input_mean = mean_inputs(found, own);
  const size_t n = correction.input_mean.size(), cases = found.size();
  correction.input_sd.assign(n, 0);
  for (const FoundPoses& f : found) {
    const std::vector<double> x = inputs_of(f, own, correction.input_mean);
    for (size_t i = 0; i < n; ++i) {
      const double d = x[i] - correction.input_mean[i];
      correction.input_sd[i] += d * d / static_cast<double>(cases);
    }
  }
  for (double& sd : correction.input_sd) sd = std::sqrt(sd);
  std::vector<double> gram(n * n, 0), products(9 * n, 0), constants(9, 0);
  for (size_t c = 0; c < cases; ++c) {
    const std::vector<double> x = centred_inputs(correction, found[c], own);
    const RelativePose wanted = relative_pose(*found[c][own], all.truth[c]);
    for (size_t k = 0; k < 9; ++k) constants[k] += wanted[k] / static_cast<double>(cases);
    for (size_t i = 0; i < n; ++i) {
      for (size_t j = 0; j < n; ++j) gram[i * n + j] += x[i] * x[j];
      for (size_t k = 0; k < 9; ++k) products[k * n + i] += x[i] * wanted[k];
    }
  }
  for (size_t i = 0; i < n; ++i) gram[i * n + i] = gram[i * n + i] * (1 + kRidge) + 1e-9;
  if (has_weights) factorise(gram, n);
  for (size_t k = 0; k < 9; ++k) {
    const std::span<double> row = std::span(products).subspan(k * n, n);
    if (has_weights) {
      solve(gram, row);
    } else {
      std::fill(row.begin(), row.end(), 0.0);
    }
    correction.weights.push_back(constants[k]);
    correction.weights.insert(correction.weights.end(), row.begin(), row.end());
  }
  return correction;
}

/// Corrections by fold, each learned without the cases of the fold.
using CorrectionsByFold = std::map<size_t, PoseCorrection>;

CorrectionCases without_fold(const CorrectionCases& all, size_t fold) {
  CorrectionCases part;
  for (size_t c = 0; c < all.found.size(); ++c) {
    if (all.fold_of[c] == fold) continue;
    part.found.push_back(all.found[c]);
    part.truth.push_back(all.truth[c]);
    part.fold_of.push_back(all.fold_of[c]);
  }
  return part;
}

/// Tells of each row if its weights lessen the squared errors of held-out cases more than the
/// constant alone does, summed over the folds.
std::array<bool, 9> useful_rows(const CorrectionCases& all, const CorrectionsByFold& corrections,
                                size_t own) {
  double gain[9] = {};
  for (const auto& [fold, learned] : corrections) {
    for (size_t c = 0; c < all.found.size(); ++c) {
      if (all.fold_of[c] != fold) continue;
      const std::vector<double> x = centred_inputs(learned, all.found[c], own);
      const RelativePose wanted = relative_pose(*all.found[c][own], all.truth[c]);
      for (size_t k = 0; k < 9; ++k) {
        const double without = wanted[k] - learned.weights[k * (x.size() + 1)];
        const double with = wanted[k] - row_value(learned, k, x);
        gain[k] += without * without - with * with;
      }
    }
  }
  std::array<bool, 9> useful{};
  for (size_t k = 0; k < 9; ++k) useful[k] = gain[k] > 0;
  return useful;
}

/// Leaves the constant alone in the rows that are not useful.
void drop_rows(PoseCorrection& correction, const std::array<bool, 9>& useful) {
  const size_t inputs = correction.input_mean.size();
  for (size_t k = 0; k < 9; ++k) {
    if (useful[k]) continue;
    const auto first = static_cast<std::ptrdiff_t>(k * (inputs + 1) + 1);
    std::fill_n(correction.weights.begin() + first, inputs, 0);
  }
}

}  // namespace

LearnedCorrection learn_correction(const CorrectionCases& cases, size_t own) {
  const bool has_weights = cases.found.size() >= kFewestCorrected;
  const std::set<size_t> folds(cases.fold_of.begin(), cases.fold_of.end());
  LearnedCorrection learned{fit_correction(cases, own, has_weights), {}};
  CorrectionsByFold by_fold;
  for (const size_t fold : folds) {
    by_fold[fold] = folds.size() == 1 ? learned.correction
                                      : fit_correction(without_fold(cases, fold), own, has_weights);
  }
  if (has_weights && folds.size() > 1) {
    const std::array<bool, 9> useful = useful_rows(cases, by_fold, own);
    drop_rows(learned.correction, useful);
    for (auto& [fold, correction] : by_fold) drop_rows(correction, useful);
  }
  for (size_t c = 0; c < cases.found.size(); ++c) {
    learned.held_out.push_back(corrected_pose(by_fold.at(cases.fold_of[c]), cases.found[c], own));
  }
  return learned;
}

Pose corrected_pose(const PoseCorrection& correction, const FoundPoses& found, size_t own) {
  if (correction.weights.empty()) return *found[own];
  const std::vector<double> x = centred_inputs(correction, found, own);
  RelativePose r{};
  for (size_t k = 0; k < 9; ++k) r[k] = row_value(correction, k, x);
  return pose_from_relative(*found[own], r);
}

}  // namespace larch::pose
