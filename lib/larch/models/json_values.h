// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <string>

#include "larch/config/config.h"
#include "larch/core/error.h"

namespace larch::models {

using config::Json;

[[noreturn]] inline void bad_value(const std::string& key, const std::string& problem) {
  throw InputError("'" + key + "' " + problem + "; the file is damaged: write it again");
}

inline const Json& member(const Json& object, const char* key) {
  if (!object.is_object() || !object.contains(key)) bad_value(key, "is missing");
  return object.at(key);
}

inline const Json& list(const Json& object, const char* key) {
  const Json& value = member(object, key);
  if (!value.is_array()) bad_value(key, "is not a list");
  return value;
}

inline std::string text(const Json& value, const char* key) {
  if (!value.is_string()) bad_value(key, "is not text");
  return value.get<std::string>();
}

/// An integer that fits T.
template <class T>
T integer(const Json& value, const char* key) {
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
template <class T>
T integer_at(const Json& object, const char* key) {
  return integer<T>(member(object, key), key);
}

/// "0x1.8p+1", whatever the locale.
inline std::string hex_float(double value) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::abs(value),
                                 std::chars_format::hex);
  return (std::signbit(value) ? "-0x" : "0x") + std::string(digits.data(), end.ptr);
}

/// A finite double, as a number or as a hexadecimal string.
inline double real(const Json& value, const char* key) {
  if (value.is_number()) return value.get<double>();
  const std::string all = text(value, key);
  const bool negative = !all.empty() && all[0] == '-';
  const size_t skip = negative ? 3 : 2;
  double number = 0;
  if (all.size() > skip && all.compare(skip - 2, 2, "0x") == 0) {
    const char* end = all.data() + all.size();
    const auto result = std::from_chars(all.data() + skip, end, number, std::chars_format::hex);
    if (result.ec == std::errc() && result.ptr == end && std::isfinite(number) &&
        !std::signbit(number)) {
      return negative ? -number : number;
    }
  }
  bad_value(key, "is not a number");
}

template <class E>
std::string enum_name(E value) {
  for (const auto& entry : enum_names(static_cast<E*>(nullptr))) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}
template <class E>
E enum_at(const Json& object, const char* key) {
  const std::string name = text(member(object, key), key);
  for (const auto& entry : enum_names(static_cast<E*>(nullptr))) {
    if (name == entry.name) return entry.value;
  }
  bad_value(key, "has the unknown value '" + name + "'");
}

/// The enumerator from 0 to `last` whose to_string is the text.
template <class E>
E named_at(const Json& object, const char* key, E last) {
  const std::string name = text(member(object, key), key);
  for (int i = 0; i <= static_cast<int>(last); ++i) {
    if (name == to_string(static_cast<E>(i))) return static_cast<E>(i);
  }
  bad_value(key, "has the unknown value '" + name + "'");
}

}  // namespace larch::models
