// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/config/suggest.h"

#include <algorithm>
#include <cstddef>

namespace larch::config {
namespace {

constexpr size_t kLongestWord = 100;  // longer ones are not typing errors, and cost time

size_t edit_distance(const std::string& a, const std::string& b) {
  std::vector<std::vector<size_t>> d(a.size() + 1, std::vector<size_t>(b.size() + 1));
  for (size_t i = 0; i <= a.size(); ++i) d[i][0] = i;
  for (size_t j = 0; j <= b.size(); ++j) d[0][j] = j;
  for (size_t i = 1; i <= a.size(); ++i) {
    for (size_t j = 1; j <= b.size(); ++j) {
      const size_t replaced = d[i - 1][j - 1] + (a[i - 1] == b[j - 1] ? 0 : 1);
      d[i][j] = std::min({d[i - 1][j] + 1, d[i][j - 1] + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        d[i][j] = std::min(d[i][j], d[i - 2][j - 2] + 1);
      }
    }
  }
  return d[a.size()][b.size()];
}

}  // namespace

std::string nearest(const std::string& word, const std::vector<std::string>& allowed) {
  std::string best;
  size_t best_distance = 3;
  if (word.size() > kLongestWord) return best;
  for (const std::string& candidate : allowed) {
    const size_t distance = edit_distance(word, candidate);
    if (distance < best_distance && distance < candidate.size()) {
      best = candidate;
      best_distance = distance;
    }
  }
  return best;
}

std::string did_you_mean(const std::string& word, const std::vector<std::string>& allowed) {
  const std::string candidate = nearest(word, allowed);
  return candidate.empty() ? "" : "; did you mean '" + candidate + "'?";
}

std::string not_allowed(const std::string& word, const std::vector<std::string>& allowed) {
  const std::string hint = did_you_mean(word, allowed);
  return (hint.empty() ? ";" : hint) + " allowed: " + (allowed.empty() ? "none" : join(allowed));
}

std::string join(const std::vector<std::string>& words, const std::string& separator) {
  std::string text;
  for (const std::string& word : words) text += (text.empty() ? "" : separator) + word;
  return text;
}

}  // namespace larch::config
