// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <limits>
#include <string>
#include <string_view>

#include "larch/config/config.h"

namespace larch::models {

using config::Json;

/// Throws InputError about the member `key` of a JSON text.
[[noreturn]] void bad_value(const std::string& key, const std::string& problem);

/// Parses JSON; every error becomes an InputError that begins with `what`.
Json parse_json(std::string_view text, const std::string& what);

/// JSON text without the spaces and comments that it may have; "" stays "". Throws InputError.
std::string normalised_json(const std::string& text);

/// Throws InputError for text that is not UTF-8.
void check_utf8(const std::string& text);

/// "0x1.8p+1", whatever the locale.
std::string hex_float(double value);

/// A finite double, as a number or as a hexadecimal string. Throws InputError.
double real(const Json& value, const std::string& key);

/// Throws InputError unless the value is text.
std::string text(const Json& value, const std::string& key);

/// An integer that fits T. Throws InputError.
template <std::integral T>
T integer(const Json& value, const std::string& key) {
  using Limits = std::numeric_limits<T>;
  if (value.is_number_unsigned()) {
    const auto number = value.get<uint64_t>();
    if (number <= static_cast<uint64_t>(Limits::max())) return static_cast<T>(number);
  } else if (value.is_number_integer()) {  // negative, or made by a program
    const auto number = value.get<int64_t>();
    if (number < 0 ? Limits::is_signed && number >= static_cast<int64_t>(Limits::min())
                   : static_cast<uint64_t>(number) <= static_cast<uint64_t>(Limits::max())) {
      return static_cast<T>(number);
    }
  }
  bad_value(key, "is not an integer in range");
}

}  // namespace larch::models
