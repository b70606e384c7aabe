// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/scores.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include "larch/core/escaped.h"
#include "larch/core/random_math.h"

namespace larch::metrics {
namespace {

constexpr uint64_t kResamples = 2000;

/// The value below which a share of the sorted values lies.
double quantile(const std::vector<double>& sorted, double share) {
  const double place = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<size_t>(place);
  const size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (place - static_cast<double>(below));
}

/// Sorted means of as many values as there are, drawn with replacement.
std::vector<double> resampled_means(const std::vector<double>& values) {
  std::vector<double> means(kResamples);
  const auto n = static_cast<uint32_t>(values.size());
  for (uint64_t resample = 0; resample < kResamples; ++resample) {
    double sum = 0;
    for (uint64_t i = 0; i < n; ++i) sum += values[hash_below(/*seed=*/0, resample, i, n)];
    means[resample] = sum / n;
  }
  std::sort(means.begin(), means.end());
  return means;
}

}  // namespace

Summary summarise(std::span<const double> values) {
  std::vector<double> sorted;
  for (const double value : values) {
    if (!std::isnan(value)) sorted.push_back(value);
  }
  std::sort(sorted.begin(), sorted.end());
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  Summary out{static_cast<int64_t>(sorted.size()), kNone, kNone, kNone, kNone, kNone, kNone};
  if (sorted.empty()) return out;
  const auto n = static_cast<double>(sorted.size());
  double sum = 0, squares = 0;
  for (const double value : sorted) sum += value;
  out.mean = sum / n;
  out.median = quantile(sorted, 0.5);
  out.p95 = quantile(sorted, 0.95);
  if (sorted.size() < 2) return out;
  for (const double value : sorted) squares += (value - out.mean) * (value - out.mean);
  out.sd = std::sqrt(squares / (n - 1));
  const std::vector<double> means = resampled_means(sorted);
  out.ci_low = quantile(means, 0.025);
  out.ci_high = quantile(means, 0.975);
  return out;
}

std::array<Score, 2> detection_scores(bool is_there, bool is_found) {
  const double none = std::numeric_limits<double>::quiet_NaN();
  return {Score{"missed", !is_there  ? none
                          : is_found ? 0
                                     : 1},
          Score{"false_positive", is_there   ? none
                                  : is_found ? 1
                                             : 0}};
}

double area_under_curve(std::span<const double> there, std::span<const double> absent) {
  double wins = 0;
  for (const double a : there) {
    for (const double b : absent) wins += a > b ? 1 : a == b ? 0.5 : 0;
  }
  const auto pairs = static_cast<double>(there.size()) * static_cast<double>(absent.size());
  return pairs > 0 ? wins / pairs : std::numeric_limits<double>::quiet_NaN();
}

std::vector<SummaryRow> summarise(std::span<const CaseScores> cases) {
  std::vector<std::pair<std::string, const char*>> order;
  std::map<std::pair<std::string, std::string>, std::vector<double>> values;
  for (const CaseScores& scored : cases) {
    for (const StructureScores& s : scored.structures) {
      for (const Score& score : s.scores) {
        auto& list = values[{s.structure, score.name}];
        if (list.empty()) order.emplace_back(s.structure, score.name);
        list.push_back(score.value);
      }
    }
  }
  std::vector<SummaryRow> out;
  out.reserve(order.size());
  for (const auto& [structure, name] : order) {
    out.push_back({structure, name, summarise(values[{structure, name}])});
  }
  return out;
}

std::string to_tsv(std::span<const CaseScores> cases) {
  std::string text = "id\tstructure";
  if (cases.empty() || cases[0].structures.empty()) return text + "\n";
  for (const Score& score : cases[0].structures[0].scores) text += std::string("\t") + score.name;
  for (const CaseScores& scored : cases) {
    for (const StructureScores& s : scored.structures) {
      text += "\n" + scored.id + "\t" + escaped(s.structure);
      for (const Score& score : s.scores) {
        char number[32];
        const auto end = std::to_chars(number, number + sizeof number, score.value).ptr;
        text += "\t" + (std::isnan(score.value) ? "n/a" : std::string(number, end));
      }
    }
  }
  return text + "\n";
}

}  // namespace larch::metrics
