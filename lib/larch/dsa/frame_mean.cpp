// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/dsa/frame_mean.h"

#include <algorithm>
#include <utility>

namespace larch::dsa {

std::vector<uint16_t> stored_of_samples(const SampleTable& table) {
  std::vector<std::pair<int32_t, int32_t>> known;  // sample, stored value
  for (int32_t p = std::max(table.least_counted, 0); p <= table.most_counted; ++p) {
    known.emplace_back(table.of_stored[static_cast<size_t>(p)], p);
  }
  if (known.empty()) return {};
  std::sort(known.begin(), known.end());
  std::vector<uint16_t> stored;
  size_t at = 0;
  for (int32_t sample = 0; sample <= kNoSample; ++sample) {
    while (at + 1 < known.size() &&
           known[at + 1].first - sample < std::abs(sample - known[at].first)) {
      ++at;
    }
    stored.push_back(static_cast<uint16_t>(known[at].second));
  }
  return stored;
}

void add_frame(std::span<const uint16_t> stored, const SampleTable& table, FrameSum& sum) {
  sum.samples.resize(stored.size());
  sum.saturated.resize(stored.size(), -1);
  const size_t entries = table.of_stored.size();
  for (size_t i = 0; i < stored.size(); ++i) {
    const int32_t p = stored[i];
    if ((p < table.least_counted || p > table.most_counted) && sum.saturated[i] < 0) {
      sum.saturated[i] = p;
    }
    sum.samples[i] += table.of_stored[std::min<size_t>(stored[i], entries - 1)];
  }
  ++sum.frames;
}

void mean_frame(const FrameSum& sum, std::span<const uint16_t> stored_of,
                std::span<uint16_t> mean) {
  for (size_t i = 0; i < mean.size(); ++i) {
    const int32_t saturated = sum.saturated[i];
    mean[i] = saturated >= 0 ? static_cast<uint16_t>(saturated)
                             : stored_of[(sum.samples[i] + sum.frames / 2) / sum.frames];
  }
}

}  // namespace larch::dsa
