// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/config/bytes.h"

#include <charconv>
#include <cmath>
#include <cstdio>
#include <string_view>

#include "larch/core/error.h"

namespace larch {
namespace {

/// The factor of a unit such as "G", "GiB" or "GB" in any case; 0 if it is none.
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
