// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

#include "larch/config/config.h"

namespace larch::models {

using config::Json;

/// Parses JSON; every error becomes an InputError that begins with `what`.
Json parse_json(std::string_view text, const std::string& what);

/// JSON text without the spaces and comments that it may have; "" stays "". Throws InputError.
std::string normalised_json(const std::string& text);

/// Throws InputError for text that is not UTF-8.
void check_utf8(const std::string& text);

/// "0x1.8p+1", whatever the locale.
std::string hex_float(double value);

}  // namespace larch::models
