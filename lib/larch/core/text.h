// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <charconv>
#include <clocale>
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

/// Prints a number of bytes for messages: "3.2 GiB", "470 MiB", "12 KiB".
inline std::string bytes_text(int64_t bytes) {
  double value = static_cast<double>(bytes) / 1024;
  const char* unit = "KiB";
  for (const char* larger : {"MiB", "GiB", "TiB"}) {
    if (value < 1000) break;
    value /= 1024;
    unit = larger;
  }
  char text[32];
  std::snprintf(text, sizeof text, value < 10 ? "%.1f %s" : "%.0f %s", value, unit);
  return text;
}

/// Returns the text for people and for cells of tables: control characters, which a terminal would
/// obey and at which a table would break, as \x1b.
inline std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte >= 32 && byte != 127) {
      out += c;
      continue;
    }
    char code[8];
    std::snprintf(code, sizeof code, "\\x%02x", byte);
    out += code;
  }
  return out;
}

}  // namespace larch
