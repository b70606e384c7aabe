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

/// "2024-05-17T09:41:00.123Z".
inline std::string utc_now() {
  const auto now = std::chrono::system_clock::now().time_since_epoch();
  const auto milliseconds = std::chrono::duration_cast<std::chrono::milliseconds>(now).count();
  const std::time_t seconds = milliseconds / 1000;
  std::tm parts{};
  gmtime_r(&seconds, &parts);
  char text[32];
  std::strftime(text, sizeof text, "%Y-%m-%dT%H:%M:%S.", &parts);
  return text + std::to_string(1000 + milliseconds % 1000).substr(1) + "Z";
}

}  // namespace larch::detail
