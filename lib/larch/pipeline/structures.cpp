// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/structures.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/evaluate.h"
#include "larch/image.h"

namespace larch::pipeline {
namespace {

/// Returns the comparisons that together score all labels of a table.
std::vector<LabelScoreConfig> comparisons(const LabelTable& table, const Model* model) {
  LabelScoreConfig compared;
  compared.surfaces = false;
  if (model != nullptr && (table.size() == 1 || model->kind() == ModelKind::kBoundary)) {
    std::vector<LabelScoreConfig> all;
    for (size_t k = 0; k < table.size(); ++k) {
      const Model::TrainedLabels trained = model->trained_labels(k);
      compared.ignore = trained.ignored;
      compared.merge = true;
      compared.labels = trained.positive;
      compared.prediction_labels = {table[k].value};
      all.push_back(compared);
    }
    return all;
  }
  if (model != nullptr) compared.ignore = model->trained_labels().ignored;
  for (const LabelEntry& entry : table) compared.labels.push_back(entry.value);
  return {compared};
}

/// Throws InputError if a reference has other labels alone: all scores would be 0.
void require_common_label(const LabelVolume& truth, const std::vector<LabelScoreConfig>& compared) {
  std::map<int32_t, int64_t> counts = count_labels(truth);
  counts.erase(0);
  if (counts.empty()) return;
  for (const LabelScoreConfig& one : compared) {
    if (one.labels.empty()) return;
    for (const int label : one.labels) {
      if (counts.contains(label)) return;
    }
  }
  throw InputError("the reference has none of the labels of the result, but label " +
                   std::to_string(counts.begin()->first));
}

}  // namespace

std::map<int32_t, int64_t> count_labels(const LabelVolume& labels) {
  std::map<int32_t, int64_t> counts;
  for (auto at = labels.begin(); at != labels.end();) {
    // Neighbours mostly have the same label.
    const auto begin = at;
    at = std::find_if(begin, labels.end(), [&](int32_t label) { return label != *begin; });
    counts[*begin] += at - begin;
  }
  return counts;
}

std::map<int32_t, int64_t> add_structures(const LabelVolume& labels, const LabelTable& table,
                                          Outputs& outputs) {
  std::map<int32_t, int64_t> counts = count_labels(labels);
  const double voxel_ml = labels.grid().voxel_volume_mm3() / 1000;
  for (const LabelEntry& entry : table) {
    ResultStructure& one = outputs.structures.emplace_back();
    one.name = entry.name;
    one.rgb = {entry.rgb[0], entry.rgb[1], entry.rgb[2]};
    one.volume_ml = static_cast<double>(counts[entry.value]) * voxel_ml;
  }
  return counts;
}

LabelVolume compared_labels(const LabelVolume& truth, const LabelTable& table, const Model* model) {
  const std::vector<LabelScoreConfig> compared = comparisons(table, model);
  return mapped<int32_t>(truth, [&](int32_t label) {
    const auto counts = [&](const LabelScoreConfig& one) {
      const bool is_named = one.labels.empty() || std::ranges::count(one.labels, label) > 0;
      return is_named && std::ranges::count(one.ignore, label) == 0;
    };
    return std::ranges::any_of(compared, counts) ? label : 0;
  });
}

void add_scores(const LabelVolume& labels, const LabelVolume& truth, const LabelTable& table,
                const Model* model, const Context& context, Outputs& outputs) {
  std::vector<StructureScores> scores;
  for (const LabelScoreConfig& one : comparisons(table, model)) {
    for (auto& of : score_labels(labels, truth, one, context)) scores.push_back(of);
  }
  double sum = 0;
  int count = 0;
  for (size_t k = 0; k < table.size(); ++k) {
    const double dice = scores.at(k).scores.at(0).value;
    if (!std::isfinite(dice)) continue;  // neither of them has the structure
    outputs.structures.at(k).dice = dice;
    sum += dice;
    ++count;
  }
  if (count > 0) outputs.metric("dice", sum / count);
}

void add_dice(const cases::CaseJob& c, const std::string& reference, const LabelVolume& labels,
              const LabelTable& table, const Model* model, Outputs& outputs) {
  if (reference.empty() || reference == "n/a") return;
  try {
    const LabelVolume truth = read_labels(reference, label_options(c.read, labels.grid()));
    cases::require_same_grid(reference, truth.grid(), c.row.image, labels.grid());
    require_common_label(truth, comparisons(table, model));
    add_scores(labels, truth, table, model, c.context(), outputs);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    outputs.note("no score: " + std::string(error.what()));
  }
}

}  // namespace larch::pipeline
