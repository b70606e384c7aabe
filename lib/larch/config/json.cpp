// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>
#include <cmath>
#include <fstream>
#include <iostream>
#include <iterator>

#include "larch/config/config.h"
#include "larch/config/text.h"
#include "larch/core/error.h"
#include "larch/core/json_watcher.h"
#include "larch/core/text.h"

namespace larch::config {
namespace {

constexpr size_t kLargestFile = size_t{64} << 20;

[[noreturn]] void fail(const std::string& where, const std::string& what) {
  throw UsageError(where + ": " + what);
}

std::string short_text(double value) {
  char text[32];
  const auto end = std::to_chars(text, text + sizeof text, value).ptr;
  return {text, end};
}

std::string shown(const Json& json) {
  std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 57) + "...";
  return text;
}

std::string range_text(const Node& node) {
  const bool integer = node.kind == Kind::kInteger;
  std::string low = "-inf", high = "inf";
  if (std::isfinite(node.min))
    low = short_text(node.min);
  else if (integer)
    low = std::to_string(node.type_min);
  if (std::isfinite(node.max))
    high = short_text(node.max);
  else if (integer)
    high = std::to_string(node.type_max);
  return "[" + low + ", " + high + "]";
}

/// Rules beside the bounds. `odd` of the magnitude, since the sign does not matter.
void check_value(const Node& node, int64_t value, bool odd, const Json& json,
                 const std::string& where) {
  const auto& allowed = node.allowed;
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), value) == allowed.end()) {
    fail(where, shown(json) + " is not one of " + list_text(allowed));
  }
  if (node.odd && !odd) fail(where, shown(json) + " is not odd");
}

void check_length(const Node& node, size_t length, const std::string& where) {
  const auto& allowed = node.allowed_lengths;
  if (node.fixed_size && length != *node.fixed_size) {
    fail(where, "expected " + std::to_string(*node.fixed_size) + " elements, found " +
                    std::to_string(length));
  }
  if (node.not_empty && length == 0) fail(where, "expected at least one element, found none");
  if (!allowed.empty() && std::find(allowed.begin(), allowed.end(), length) == allowed.end()) {
    fail(where,
         "expected " + list_text(allowed, " or ") + " elements, found " + std::to_string(length));
  }
}

[[noreturn]] void out_of_range(const Node& node, const Json& json, const std::string& where) {
  fail(where, shown(json) + " is out of range " + range_text(node));
}

void read_number(const Node& node, const Json& json, const std::string& where) {
  if (!json.is_number()) fail(where, "expected a number, found " + shown(json));
  const double value = json.get<double>();
  if (!std::isfinite(value)) fail(where, "expected a finite number");
  if (value < node.min || value > node.max) out_of_range(node, json, where);
  node.set(value);
}

/// 5.0 and 5e3 are integers, as in JSON Schema; 2^64 and 0.5 are not.
void read_integer(const Node& node, const Json& json, const std::string& where) {
  if (!json.is_number()) fail(where, "expected an integer, found " + shown(json));
  uint64_t magnitude = 0;
  bool negative = false;
  if (json.is_number_unsigned()) {
    magnitude = json.get<uint64_t>();
  } else if (json.is_number_integer()) {
    const auto value = json.get<int64_t>();
    negative = value < 0;
    magnitude = negative ? ~static_cast<uint64_t>(value) + 1 : static_cast<uint64_t>(value);
  } else {
    const auto value = json.get<double>();
    if (value != std::floor(value)) fail(where, "expected an integer, found " + shown(json));
    if (!(std::fabs(value) < 18446744073709551616.0)) out_of_range(node, json, where);
    negative = value < 0;
    magnitude = static_cast<uint64_t>(std::fabs(value));
  }
  const uint64_t lowest = ~static_cast<uint64_t>(node.type_min) + 1;  // |type_min|
  const double value = negative ? -static_cast<double>(magnitude) : static_cast<double>(magnitude);
  if (magnitude > (negative ? lowest : node.type_max) || value < node.min || value > node.max) {
    out_of_range(node, json, where);
  }
  const auto signed_value = static_cast<int64_t>(negative ? ~magnitude + 1 : magnitude);
  check_value(node, signed_value, magnitude % 2 == 1, json, where);
  if (node.is_unsigned) {
    node.set(magnitude);
  } else {
    node.set(signed_value);
  }
}

void read_text(const Node& node, const Json& json, const std::string& where) {
  if (!json.is_string()) fail(where, "expected a string, found " + shown(json));
  const auto text = json.get<std::string>();
  if (node.kind == Kind::kEnum) {
    bool known = false;
    for (const std::string& choice : node.choices) known = known || choice == text;
    if (!known) {
      fail(where, shown(json) + " is not a choice" + not_allowed(text, node.choices));
    }
  }
  if (text.find('\0') != std::string::npos) fail(where, "a string with a zero byte");
  node.set(text);
}

/// "" is no number of bytes, as the default is written.
void read_bytes(const Node& node, const Json& json, const std::string& where) {
  if (!json.is_string()) return read_integer(node, json, where);
  const auto text = json.get<std::string>();
  node.set(text.empty() ? int64_t{0} : parse_bytes(where, text));
}

/// An element takes the bounds of the field that holds it.
Node element_of(const Node& node, Node element) {
  if (element.kind == Kind::kInteger || element.kind == Kind::kNumber ||
      element.kind == Kind::kVector || element.kind == Kind::kOptional) {
    element.min = std::max(element.min, node.min);
    element.max = std::min(element.max, node.max);
  }
  return element;
}

void read(const Node& node, const Json& json, const std::string& where);

void read_object(const Node& node, const Json& json, const std::string& where) {
  if (!json.is_object()) fail(where, "expected an object {...}, found " + shown(json));
  std::vector<std::string> allowed;
  for (const Node& member : node.members) allowed.push_back(member.key);
  for (const auto& [key, value] : json.items()) {
    const Node* found = nullptr;
    for (const Node& member : node.members) {
      if (member.key == key) found = &member;
    }
    if (found == nullptr) {
      fail(where + "/" + key, "unknown key" + not_allowed(key, allowed));
    }
    read(*found, value, where + "/" + key);
  }
}

void read_vector(const Node& node, const Json& json, const std::string& where) {
  if (!json.is_array()) fail(where, "expected a list [...], found " + shown(json));
  check_length(node, json.size(), where);
  node.resize(json.size());
  for (size_t i = 0; i < json.size(); ++i) {
    read(element_of(node, node.at(i)), json[i], where + "/" + std::to_string(i));
  }
}

void read(const Node& node, const Json& json, const std::string& where) {
  switch (node.kind) {
    case Kind::kBool:
      if (!json.is_boolean()) fail(where, "expected true or false, found " + shown(json));
      return node.set(json.get<bool>());
    case Kind::kInteger:
      return read_integer(node, json, where);
    case Kind::kNumber:
      return read_number(node, json, where);
    case Kind::kString:
    case Kind::kEnum:
      return read_text(node, json, where);
    case Kind::kBytes:
      return read_bytes(node, json, where);
    case Kind::kObject:
      return read_object(node, json, where);
    case Kind::kVector:
      return read_vector(node, json, where);
    case Kind::kOptional:
      node.resize(json.is_null() ? 0 : 1);
      if (!json.is_null()) read(element_of(node, node.at(0)), json, where);
  }
}

Json scalar_to_json(const Node& node) {
  const Scalar value = node.get();
  if (const auto* number = std::get_if<double>(&value)) {
    if (!std::isfinite(*number)) throw std::logic_error(node.key + " is not a finite number");
    // A float is written with the digits that identify it as a float, not as a double.
    if (node.is_float) {
      char text[32];
      *std::to_chars(text, text + sizeof text - 1, static_cast<float>(*number)).ptr = '\0';
      return parsed_number(text, nullptr);
    }
  }
  return std::visit([](const auto& v) { return Json(v); }, value);
}

}  // namespace

Json parse(const std::string& text, const std::string& source) {
  JsonWatcher<Json> watcher{
      [&] { fail(source, "nested deeper than 64 levels"); },
      [&](const std::string& key) { fail(source + "/" + key, "the key stands twice"); }};
  try {
    return Json::parse(text, std::ref(watcher), true, /*ignore_comments=*/true);
  } catch (const Json::exception& error) {
    // "[json.exception.parse_error.101] parse error at line 1, column 2: ..." without its tag.
    const std::string what = error.what();
    const size_t end = what.find("] ");
    fail(source, end == std::string::npos ? what : what.substr(end + 2));
  }
}

Json parse_file(const std::string& path) {
  std::ifstream file;
  std::istream* in = &std::cin;
  if (path != "-") {
    file.open(path, std::ios::binary);
    if (!file) fail(path, "cannot be read; is the name right and may it be read?");
    in = &file;
  }
  std::string text;
  char chunk[1 << 16];
  while (in->read(chunk, sizeof chunk) || in->gcount() > 0) {
    text.append(chunk, static_cast<size_t>(in->gcount()));
    if (text.size() > kLargestFile) fail(path, "is larger than 64 MiB: not a configuration");
  }
  if (in->bad() || (path != "-" && text.empty() && !file.eof())) fail(path, "cannot be read");
  return parse(text, path == "-" ? "stdin" : path);
}

void from_json(const Node& node, const Json& json, const std::string& source) {
  read(node, json, source);
}

Json to_json(const Node& node) {
  switch (node.kind) {
    case Kind::kObject: {
      Json json = Json::object();
      for (const Node& member : node.members) json[member.key] = to_json(member);
      return json;
    }
    case Kind::kVector: {
      Json json = Json::array();
      for (size_t i = 0; i < node.size(); ++i) json.push_back(to_json(node.at(i)));
      return json;
    }
    case Kind::kOptional:
      return node.size() == 0 ? Json(nullptr) : to_json(node.at(0));
    case Kind::kBytes: {
      const auto bytes = std::get<int64_t>(node.get());
      return bytes == 0 ? "" : exact_bytes_text(bytes);
    }
    default:
      return scalar_to_json(node);
  }
}

}  // namespace larch::config
