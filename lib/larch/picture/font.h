// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <string_view>

namespace larch::picture {

constexpr int kLetterWidth = 5, kLetterHeight = 7;  ///< dots

/// The dots of a character, rows from top to bottom: '#' is set.
using Glyph = std::array<std::string_view, kLetterHeight>;

/// Null for what is no printable character of ASCII.
const Glyph* find_glyph(char character);

}  // namespace larch::picture
