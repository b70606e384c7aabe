// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/message.h"

#include <algorithm>

#include "larch/core/error.h"

namespace larch::io {

void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what);
}

std::string shown(std::string_view text) {
  constexpr size_t kMost = 40;
  std::string out(text.substr(0, kMost));
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return c < 32 || c > 126; }, '?');
  return "'" + out + (text.size() > kMost ? "...'" : "'");
}

}  // namespace larch::io
