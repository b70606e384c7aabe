// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <clocale>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <string_view>

namespace larch {

// A program that uses the library may have set a locale whose decimal point is a comma.

/// Reads a number as strtod does in the C locale.
inline double parsed_number(const char* text, char** end) {
  static const locale_t c_locale = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return ::strtod_l(text, end, c_locale);
}

/// Prints a number as printf does with "%.<digits>g" in the C locale.
inline std::string number_text(double value, int digits) {
  char text[48];
  const auto format = std::chars_format::general;
  return {text, std::to_chars(text, text + sizeof text, value, format, digits).ptr};
}

/// Returns what printf prints, in at most 255 characters.
[[gnu::format(printf, 1, 2)]] inline std::string formatted(const char* pattern, ...) {
  char text[256];
  va_list values;
  va_start(values, pattern);
  std::vsnprintf(text, sizeof text, pattern, values);
  va_end(values);
  return text;
}

/// Prints a number of bytes for messages: "3.2 GiB", "470 MiB", "12 KiB".
inline std::string bytes_text(int64_t bytes) {
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < 1000) break;
    value /= 1024;
    unit = larger;
  }
  return formatted(value < 10 ? "%.1f %s" : "%.0f %s", value, unit);
}

/// Returns the text for people and for cells of tables: control characters, which a terminal would
/// obey and at which a table would break, as \x1b.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    out += byte >= 32 && byte != 127 ? std::string(1, c) : formatted("\\x%02x", byte);
  }
  return out;
}

}  // namespace larch
