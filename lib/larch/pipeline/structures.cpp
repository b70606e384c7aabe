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

/// Returns the voxels of each label that occurs.
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

LabelScoreConfig comparison(const LabelTable& table, const Model* model) {
  LabelScoreConfig compared;
  compared.surfaces = false;
  if (model != nullptr) {
    const Model::TrainedLabels trained = model->trained_labels();
    compared.ignore = trained.ignored;
    if (table.size() == 1) {
      compared.merge = true;
      compared.labels = trained.positive;
      compared.prediction_labels = {table[0].value};
      return compared;
    }
  }
  for (const LabelEntry& entry : table) compared.labels.push_back(entry.value);
  return compared;
}

/// Throws InputError if a reference has other labels alone: all scores would be 0.
void require_common_label(const LabelVolume& truth, const std::vector<int>& labels) {
  std::map<int32_t, int64_t> counts = count_labels(truth);
  counts.erase(0);
  if (counts.empty() || labels.empty()) return;
  for (const int label : labels) {
    if (counts.contains(label)) return;
  }
  throw InputError("the reference has none of the labels of the result, but label " +
                   std::to_string(counts.begin()->first));
}

}  // namespace

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
  const LabelScoreConfig compared = comparison(table, model);
  return mapped<int32_t>(truth, [&](int32_t label) {
    const bool is_named = compared.labels.empty() || std::ranges::count(compared.labels, label) > 0;
    return is_named && std::ranges::count(compared.ignore, label) == 0 ? label : 0;
  });
}

void add_scores(const LabelVolume& labels, const LabelVolume& truth, const LabelTable& table,
                const Model* model, const Context& context, Outputs& outputs) {
  const auto scores = score_labels(labels, truth, comparison(table, model), context);
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
    require_common_label(truth, comparison(table, model).labels);
    add_scores(labels, truth, table, model, c.context(), outputs);
  } catch (const Stopped&) {
    throw;
  } catch (const Error& error) {
    outputs.note("no score: " + std::string(error.what()));
  }
}

}  // namespace larch::pipeline
