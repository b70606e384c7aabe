// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/json_layout.h"

#include <array>
#include <charconv>
#include <cmath>

#include "larch/core/error.h"

namespace larch::models {

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

}  // namespace larch::models
