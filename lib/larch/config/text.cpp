// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/config/text.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdio>
#include <string_view>

#include "larch/core/error.h"

namespace larch {
namespace {

/// Returns the factor of a unit such as "G", "GiB" or "GB" in any case; 0 if it is none.
double factor_of(std::string unit) {
  for (char& c : unit) c = static_cast<char>(c >= 'a' && c <= 'z' ? c - 'a' + 'A' : c);
  if (unit.empty() || unit == "B") return 1;
  const size_t power = std::string_view("KMGT").find(unit[0]);
  if (power == std::string_view::npos) return 0;
  const std::string rest = unit.substr(1);
  if (!rest.empty() && rest != "IB" && rest != "B") return 0;
  return std::pow(rest == "B" ? 1000.0 : 1024.0, static_cast<double>(power + 1));
}

}  // namespace

int64_t parse_bytes(const std::string& flag, const std::string& text) {
  double number = 0;
  const char* last = text.data() + text.size();
  const auto [end, error] = std::from_chars(text.data(), last, number, std::chars_format::fixed);
  const double bytes = number * factor_of(std::string(end, last));
  if (error != std::errc{} || !(bytes >= 1 && bytes < 9e18)) {
    throw UsageError(flag + ": '" + text + "' is not a number of bytes such as 4G, 500M or 2GiB");
  }
  return static_cast<int64_t>(bytes);
}

std::string exact_bytes_text(int64_t bytes) {
  const char* unit = "";
  for (const char* larger : {"KiB", "MiB", "GiB", "TiB"}) {
    if (bytes == 0 || bytes % 1024 != 0) break;
    bytes /= 1024;
    unit = larger;
  }
  return std::to_string(bytes) + unit;
}

}  // namespace larch

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
