// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>

#include "larch/config/config.h"

namespace larch::config {
namespace {

Json integral_or_double(double value) {
  if (value == std::floor(value) && std::fabs(value) < 9e15) return static_cast<int64_t>(value);
  return value;
}

void put_bounds(const Node& node, Json& json) {
  const bool integer = node.kind == Kind::kInteger;
  if (!node.allowed.empty()) {
    json["enum"] = node.allowed;
    return;
  }
  if (node.odd) json["not"] = {{"multipleOf", 2}};
  if (std::isfinite(node.min)) {
    json["minimum"] = integral_or_double(node.min);
  } else if (integer) {
    json["minimum"] = node.type_min;
  }
  if (std::isfinite(node.max)) {
    json["maximum"] = integral_or_double(node.max);
  } else if (integer) {
    json["maximum"] = node.type_max;
  }
}

Json type_of(const Node& node);

Json element_type(const Node& node) {
  Node element = node.prototype();
  element.min = std::max(element.min, node.min);
  element.max = std::min(element.max, node.max);
  return type_of(element);
}

void put_lengths(const Node& node, Json& json) {
  if (node.fixed_size) json["minItems"] = json["maxItems"] = *node.fixed_size;
  if (node.not_empty) json["minItems"] = 1;
  for (const size_t length : node.allowed_lengths) {
    json["anyOf"].push_back({{"minItems", length}, {"maxItems", length}});
  }
}

Json object_type(const Node& node) {
  Json json{{"type", "object"}, {"additionalProperties", false}};
  Json& properties = json["properties"] = Json::object();
  for (const Node& member : node.members) {
    Json property = Json::object();
    if (!member.help.empty()) property["description"] = member.help;
    property.update(type_of(member));
    if (member.kind != Kind::kObject) property["default"] = to_json(member);
    if (!member.example.empty()) {
      property["examples"] = Json::array({parse(member.example, member.key)});
    }
    properties[member.key] = property;
  }
  return json;
}

Json type_of(const Node& node) {
  Json json = Json::object();
  switch (node.kind) {
    case Kind::kBool:
      json["type"] = "boolean";
      break;
    case Kind::kInteger:
    case Kind::kNumber:
      json["type"] = node.kind == Kind::kInteger ? "integer" : "number";
      put_bounds(node, json);
      break;
    case Kind::kString:
      json["type"] = "string";
      break;
    case Kind::kEnum:
      json["type"] = "string";
      json["enum"] = node.choices;
      break;
    case Kind::kBytes:
      json["type"] = Json::array({"string", "integer"});
      json["pattern"] = R"(^(([0-9]+\.?[0-9]*|\.[0-9]+)([kmgtKMGT]([iI]?[bB])?|[bB])?)?$)";
      json["minimum"] = 0;
      break;
    case Kind::kObject:
      json = object_type(node);
      break;
    case Kind::kVector:
      json["type"] = "array";
      json["items"] = element_type(node);
      put_lengths(node, json);
      break;
    case Kind::kOptional:
      json["anyOf"] = Json::array({element_type(node), Json{{"type", "null"}}});
      break;
  }
  return json;
}

}  // namespace

Json schema(const Node& node, const std::string& title) {
  Json json{{"$schema", "http://json-schema.org/draft-07/schema#"}};
  if (!title.empty()) json["title"] = title;
  json.update(type_of(node));
  return json;
}

}  // namespace larch::config
