// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/json_values.h"

#include <array>
#include <charconv>
#include <cmath>

#include "larch/core/error.h"

namespace larch::models {

void bad_value(const std::string& key, const std::string& problem) {
  throw InputError("'" + key + "' " + problem + "; the file is damaged: write it again");
}

Json parse_json(std::string_view text, const std::string& what) {
  try {
    return config::parse(std::string(text), what);
  } catch (const Error& error) {
    throw InputError(error.what());
  }
}

std::string normalised_json(const std::string& text) {
  return text.empty() ? text : parse_json(text, "the JSON text in the model").dump();
}

void check_utf8(const std::string& text) {
  try {
    (void)Json(text).dump();
  } catch (const Json::exception&) {
    throw InputError("a text of the model, such as the class name, is not UTF-8");
  }
}

std::string hex_float(double value) {
  std::array<char, 40> digits{};
  const auto end = std::to_chars(digits.data(), digits.data() + digits.size(), std::abs(value),
                                 std::chars_format::hex);
  return (std::signbit(value) ? "-0x" : "0x") + std::string(digits.data(), end.ptr);
}

std::string text(const Json& value, const std::string& key) {
  if (!value.is_string()) bad_value(key, "is not text");
  return value.get<std::string>();
}

double real(const Json& value, const std::string& key) {
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

}  // namespace larch::models
