// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <string>
#include <string_view>

#include "larch/core/error.h"

namespace larch::io {

/// Throws InputError "'path': what".
[[noreturn]] inline void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

/// Throws InputError "cannot read 'path': what".
[[noreturn]] inline void bad_path(const std::string& path, const std::string& what) {
  throw InputError("cannot read '" + path + "': " + what);
}

/// Returns the text of a file for a message: in quotation marks, at most 40 bytes of it, and with ?
/// for those that are not printable ASCII, which a terminal might obey.
inline std::string shown(std::string_view text) {
  std::string out(text.substr(0, 40));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return "'" + out + (text.size() > 40 ? "...'" : "'");
}

}  // namespace larch::io
