// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace larch {

/// Watches the events of nlohmann's parser, whose type `Json` is. Both functions throw.
template <class Json>
struct JsonWatcher {
  /// Lists and objects in each other. A copy of JSON calls itself once per level.
  static constexpr int kMaximumLevels = 64;

  std::function<void()> too_deep;
  std::function<void(const std::string& key)> stands_twice;  ///< in one object
  std::vector<std::set<std::string>> keys{};

  bool operator()(int depth, typename Json::parse_event_t event, Json& parsed) {
    if (depth > kMaximumLevels) too_deep();
    if (event == Json::parse_event_t::object_start) keys.emplace_back();
    if (event == Json::parse_event_t::object_end) keys.pop_back();
    if (event == Json::parse_event_t::key) {
      const auto key = parsed.template get<std::string>();
      if (!keys.back().insert(key).second) stands_twice(key);
    }
    return true;
  }
};

}  // namespace larch
