// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/markups/json_file.h"

#include <cmath>

#include "larch/core/guard.h"
#include "larch/files/file.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {

constexpr int64_t kMostBytes = 64 << 20;
constexpr int kMostLevels =
    64;  ///< of lists and objects in each other; Slicer writes fewer than 10

/// Copies of JSON and messages about it call themselves once per level.
bool is_nested_deeply(const std::string& json) {
  int level = 0;
  bool in_text = false;
  for (size_t i = 0; i < json.size(); ++i) {
    const char c = json[i];
    if (in_text && c == '\\') ++i;  // what follows does not end the text
    if (c == '"') in_text = !in_text;
    if (in_text) continue;
    if (c == '[' || c == '{') ++level;
    if (c == ']' || c == '}') --level;
    if (level > kMostLevels) return true;
  }
  return false;
}

}  // namespace

Json read_json(const std::string& path) {
  if (file_bytes(path) > kMostBytes) bad(path, "more than 64 MiB, which no points or boxes take");
  const std::string json_text = read_file(path);
  if (guarded(Guard::kMarkupsDepth) && is_nested_deeply(json_text)) {
    bad(path, "lists and objects in more than 64 levels, which no markups have; it is damaged");
  }
  Json json = Json::parse(json_text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded()) bad(path, "no JSON, or damaged");
  return json;
}

void write_json(const std::string& path, const OrderedJson& json) {
  // Names that are no UTF-8 must not keep the positions from being written.
  write_file(path, json.dump(2, ' ', false, OrderedJson::error_handler_t::replace) + "\n");
}

std::string text(const Json& json, const char* key) {
  const auto found = json.find(key);
  return found != json.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::vector<double> numbers(const Json& json, const char* key, size_t count,
                            const std::string& path, const std::string& where) {
  std::vector<double> out;
  const auto found = json.find(key);
  if (found != json.end() && found->is_array() && found->size() == count) {
    for (const Json& number : *found) {
      if (number.is_number() && std::isfinite(number.get<double>())) out.push_back(number);
    }
  }
  if (out.size() != count) {
    bad(path,
        where + "/" + key + ": expected an array of " + std::to_string(count) + " finite numbers");
  }
  return out;
}

OrderedJson json_of(const Vec3d& v) {
  return OrderedJson::array({v.x, v.y, v.z});
}

}  // namespace larch::io
