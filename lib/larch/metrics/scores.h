// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace larch::metrics {

/// A figure of merit. NaN where it does not exist.
struct Score {
  const char* name;  ///< "dice", "surface_mean_mm", ...
  double value;
};

/// The scores "missed", which is 1 for what is there and not found, and "false_positive", which is
/// 1 for what is found and not there; otherwise 0, and NaN for the one that does not apply.
std::array<Score, 2> detection_scores(bool is_there, bool is_found);

/// The share of pairs of one that is there and one that is not in which the former has the higher
/// confidence, equal ones counting half: the area under the curve of the receiver operating
/// characteristic. NaN where either has none.
double area_under_curve(std::span<const double> there, std::span<const double> absent);

/// The scores of one structure: a label, "union", or what has a pose.
struct StructureScores {
  std::string structure;
  std::vector<Score> scores;
};

/// Figures of the values that are not NaN; NaN where there are too few, which for the interval and
/// the deviation (n - 1) are fewer than two.
struct Summary {
  int64_t count = 0;
  double mean, sd, median, p95;
  double ci_low, ci_high;  ///< 95 % interval of the mean by the bootstrap
};

/// Quantiles lie between the values next to them, in proportion. The interval is that of the
/// percentiles 2.5 and 97.5 of the means of 2000 resamples (Efron, Tibshirani, An Introduction to
/// the Bootstrap, 1993, section 13.3), which are drawn by a fixed seed: the same values in any
/// order give the same bytes.
Summary summarise(std::span<const double> values);

/// The scores of one case of a list.
struct CaseScores {
  std::string id;
  std::vector<StructureScores> structures;
};

/// A score of a structure over all cases that have it.
struct SummaryRow {
  std::string structure;
  const char* score;
  Summary summary;
};
/// In the order in which structures and scores first occur.
std::vector<SummaryRow> summarise(std::span<const CaseScores> cases);

/// A TSV with the columns id, structure and one per score; "n/a" for NaN. Numbers are the shortest
/// that read back the same.
std::string to_tsv(std::span<const CaseScores> cases);

}  // namespace larch::metrics
