// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/overlap.h"

#include <algorithm>
#include <limits>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "larch/core/error.h"

namespace larch::metrics {
Overlap overlap(int64_t prediction, int64_t reference, int64_t common, int64_t voxels,
                double voxel_mm3) {
  Overlap out;
  out.prediction_voxels = prediction;
  out.reference_voxels = reference;
  out.common_voxels = common;
  const auto a = static_cast<double>(prediction), b = static_cast<double>(reference),
             both = static_cast<double>(common);
  out.prediction_mm3 = a * voxel_mm3;
  out.reference_mm3 = b * voxel_mm3;
  out.volume_difference_mm3 = (a - b) * voxel_mm3;
  const int64_t wrong = prediction + reference - 2 * common;
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

LabelCounts count_labels(const LabelVolume& prediction, const LabelVolume& reference,
                         std::span<const int32_t> ignore) {
  require_on_grid("the prediction", prediction.grid(), "the reference", reference.grid());
  LabelCounts out;
  std::unordered_map<int32_t, size_t> places;
  const auto count_of = [&](int32_t label) -> LabelCount& {
    const auto [place, is_new] = places.try_emplace(label, out.labels.size());
    if (is_new) out.labels.push_back({label});
    return out.labels[place->second];
  };
  for (int64_t i = 0, end = 0; i < prediction.voxels(); i = end) {  // runs along x
    const Vec3i first = prediction.grid().voxel(i);
    const int32_t p = prediction[i], r = reference[i];
    const int64_t row_end = i + prediction.size().x - first.x;
    for (end = i + 1; end < row_end && prediction[end] == p && reference[end] == r;) ++end;
    if (std::find(ignore.begin(), ignore.end(), r) != ignore.end()) continue;
    const int64_t length = end - i;
    const Vec3i last = prediction.grid().voxel(end - 1);
    out.voxels += length;
    LabelCount& found = count_of(p);
    found.prediction += length;
    found.common += p == r ? length : 0;
    found.include(first, last);
    LabelCount& truth = count_of(r);
    truth.reference += length;
    truth.include(first, last);
  }
  std::sort(out.labels.begin(), out.labels.end(),
            [](const LabelCount& a, const LabelCount& b) { return a.label < b.label; });
  return out;
}

std::vector<int32_t> labels_in(const LabelVolume& labels) {
  std::unordered_set<int32_t> values;
  int32_t last = 0;
  for (const int32_t value : labels) {
    if (value != last && value != 0) values.insert(value);
    last = value;
  }
  std::vector<int32_t> sorted(values.begin(), values.end());
  std::sort(sorted.begin(), sorted.end());
  return sorted;
}

Volume<uint8_t> mask_of(const LabelVolume& labels, std::span<const int32_t> values) {
  const std::unordered_set<int32_t> wanted(values.begin(), values.end());
  int32_t last = 0;
  bool is_wanted = wanted.contains(0);
  return mapped<uint8_t>(labels, [&](int32_t label) {
    if (label != last) is_wanted = wanted.contains(last = label);
    return is_wanted;
  });
}

Overlap overlap(const Volume<uint8_t>& prediction, const Volume<uint8_t>& reference) {
  require_on_grid("the prediction", prediction.grid(), "the reference", reference.grid());
  int64_t a = 0, b = 0, common = 0;
  for (int64_t i = 0; i < prediction.voxels(); ++i) {
    const bool in_a = prediction[i] != 0, in_b = reference[i] != 0;
    a += in_a;
    b += in_b;
    common += in_a && in_b;
  }
  return overlap(a, b, common, prediction.voxels(), prediction.grid().voxel_volume_mm3());
}

}  // namespace larch::metrics
