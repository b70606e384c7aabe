// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <ctime>
#include <string>

#include "larch/config/config.h"

namespace larch::detail {

/// JSON as text. File names are bytes and need not be UTF-8: what is not is replaced.
inline std::string json_text(const config::Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, config::Json::error_handler_t::replace);
}

/// "2024-05-17T09:41:00Z".
inline std::string utc_now() {
  const std::time_t now = std::chrono::system_clock::to_time_t(std::chrono::system_clock::now());
  std::tm parts{};
  gmtime_r(&now, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%SZ", &parts);
  return text;
}

}  // namespace larch::detail
