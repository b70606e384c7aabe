// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>

namespace larch::io {

/// Throws InputError "'path': what".
[[noreturn]] void bad(const std::string& path, const std::string& what);

/// Text of a file for a message: in quotation marks, at most 40 bytes of it, and with ? for those
/// that are not printable ASCII, which a terminal might obey.
std::string shown(std::string_view text);

}  // namespace larch::io
