// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/overlap.h"

#include <algorithm>
#include <limits>
#include <string>

#include "larch/core/error.h"

namespace larch::metrics {
namespace {

struct Counts {
  int64_t prediction = 0, reference = 0, common = 0;
};

Overlap scores(const Counts& counts, int64_t voxels, double voxel_mm3) {
  Overlap out;
  out.prediction_voxels = counts.prediction;
  out.reference_voxels = counts.reference;
  out.common_voxels = counts.common;
  const auto a = static_cast<double>(counts.prediction), b = static_cast<double>(counts.reference),
             both = static_cast<double>(counts.common);
  out.prediction_mm3 = a * voxel_mm3;
  out.reference_mm3 = b * voxel_mm3;
  out.volume_difference_mm3 = (a - b) * voxel_mm3;
  const int64_t wrong = counts.prediction + counts.reference - 2 * counts.common;
  if (voxels > 0) {
    out.total_correct_fraction = static_cast<double>(voxels - wrong) / static_cast<double>(voxels);
  }
  if (a + b > 0) {
    out.dice = 2 * both / (a + b);
    out.jaccard = both / (a + b - both);
    out.relative_volume_difference = b > 0 ? (a - b) / b : std::numeric_limits<double>::quiet_NaN();
  }
  return out;
}

void insert_sorted(std::vector<int32_t>& values, int32_t value) {
  const auto place = std::lower_bound(values.begin(), values.end(), value);
  if (place == values.end() || *place != value) values.insert(place, value);
}

}  // namespace

std::vector<int32_t> labels_in(const LabelVolume& labels) {
  std::vector<int32_t> values;
  int32_t last = 0;
  for (const int32_t value : labels) {
    if (value != last && value != 0) insert_sorted(values, value);
    last = value;
  }
  return values;
}

Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values) {
  return mapped<uint8_t>(labels, [&](int32_t label) {
    return std::find(values.begin(), values.end(), label) != values.end();
  });
}

Overlap overlap(const Volume<uint8_t>& prediction, const Volume<uint8_t>& reference) {
  require_on_grid("the prediction", prediction.grid(), "the reference", reference.grid());
  Counts counts;
  for (int64_t i = 0; i < prediction.voxels(); ++i) {
    const bool a = prediction[i] != 0, b = reference[i] != 0;
    counts.prediction += a;
    counts.reference += b;
    counts.common += a && b;
  }
  return scores(counts, prediction.voxels(), prediction.grid().voxel_volume_mm3());
}

}  // namespace larch::metrics
