// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <initializer_list>
#include <string>

#include <nlohmann/json.hpp>

#include "larch/config/node.h"
#include "larch/core/error.h"

namespace larch::config {

/// Keys keep their order, so that files come out as the structs declare them.
using Json = nlohmann::ordered_json;

/// Parses JSON with // and /* */ comments. `source` (a file name, a flag) begins every message.
/// Throws UsageError for broken JSON, a key that stands twice in one object, or nesting over 64.
Json parse(const std::string& text, const std::string& source);

/// Parses a file, or standard input for "-". Throws UsageError, also if it cannot be read.
Json parse_file(const std::string& path);

/// Sets what `json` mentions and leaves the rest. Throws UsageError that names source and path,
/// such as "a.json/tree/depth: 99 is out of range [1, 32]", for an unknown key (with the nearest
/// and all allowed ones), a wrong type or a value out of range.
void from_json(const Node& node, const Json& json, const std::string& source);

/// Returns the values, all of them. Throws std::logic_error for a number that is not finite.
Json to_json(const Node& node);

/// JSON Schema, draft 7, with the present values as defaults. It accepts what from_json accepts.
Json schema(const Node& node, const std::string& title = "");

template <class T>
void from_json(T& value, const Json& json, const std::string& source) requires HasFields<T> {
  from_json(describe(value), json, source);
}
template <class T>
Json to_json(const T& value) requires HasFields<T> {
  return to_json(describe(value));
}
template <class T>
Json schema(const T& value, const std::string& title = "") requires HasFields<T> {
  return schema(describe(value), title);
}

/// Throws UsageError for a key that is not as it is by default: it would have no effect, since the
/// keys of `value` are those of another kind, which `kind` names: "--kind phantom". `prefix` stands
/// before the key: "phantom.". `keys`: those that are of the other kind; none: all.
template <class T>
void require_default(const T& value, const std::string& prefix, const std::string& kind,
                     std::initializer_list<const char*> keys = {}) {
  const Json said = to_json(value), usual = to_json(T{});
  const auto check = [&](const std::string& key) {
    if (said.at(key) != usual.at(key)) throw UsageError("--" + prefix + key + " is of " + kind);
  };
  for (const char* key : keys) check(key);
  if (keys.size() > 0) return;
  for (const auto& item : usual.items()) check(item.key());
}

}  // namespace larch::config
