// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/config/flags.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>

#include <CLI/CLI.hpp>

#include "larch/config/config.h"
#include "larch/config/text.h"
#include "larch/core/error.h"

namespace larch::config {
namespace {

Json number_from_text(std::string text) {
  text.erase(0, text.find_first_not_of(" \t"));
  text.erase(text.find_last_not_of(" \t") + 1);
  Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_number()) return json;
  // Not JSON, but people write these too: +5, .5, 1.
  const std::string body = !text.empty() && text[0] == '+' ? text.substr(1) : text;
  double value = 0;
  const auto [end, error] = std::from_chars(body.data(), body.data() + body.size(), value);
  if (error == std::errc{} && end == body.data() + body.size() && std::isfinite(value))
    return value;
  return text;
}

Json value_from_text(const Node& node, const std::string& text, const std::string& flag);

Json list_from_text(const Node& node, const std::string& text, const std::string& flag) {
  const size_t first = text.find_first_not_of(" \t");
  if (first != std::string::npos && (text[first] == '[' || text[first] == '{')) {
    return parse(text, flag);
  }
  Json list = Json::array();
  const Node element = node.prototype();
  if (element.kind == Kind::kObject || element.kind == Kind::kVector) return parse(text, flag);
  for (size_t begin = 0; !text.empty() && begin <= text.size();) {
    const size_t comma = std::min(text.find(',', begin), text.size());
    list.push_back(value_from_text(element, text.substr(begin, comma - begin), flag));
    begin = comma + 1;
  }
  return list;
}

/// Returns the JSON that a flag's text stands for; from_json then judges it, so that flags and
/// files have the same rules and messages.
Json value_from_text(const Node& node, const std::string& text, const std::string& flag) {
  switch (node.kind) {
    case Kind::kBool:
      if (text == "true" || text == "1" || text == "yes" || text == "on") return true;
      if (text == "false" || text == "0" || text == "no" || text == "off") return false;
      return text;
    case Kind::kInteger:
    case Kind::kNumber:
      return number_from_text(text);
    case Kind::kString:
    case Kind::kEnum:
    case Kind::kBytes:
      return text;
    case Kind::kVector:
      return list_from_text(node, text, flag);
    case Kind::kOptional:
      return text == "null" ? Json(nullptr) : value_from_text(node.prototype(), text, flag);
    case Kind::kObject:
      return parse(text, flag);
  }
  return text;
}

std::string bounds_text(const Node& node) {
  const auto number = [](double value) {
    char text[32];
    return std::string(text, std::to_chars(text, text + sizeof text, value).ptr);
  };
  if (std::isfinite(node.min) && std::isfinite(node.max)) {
    return " in [" + number(node.min) + ", " + number(node.max) + "]" + (node.odd ? ", odd" : "");
  }
  if (std::isfinite(node.min)) return " >= " + number(node.min);
  if (std::isfinite(node.max)) return " <= " + number(node.max);
  return "";
}

bool is_list_of_lists(const Node& node) {
  return node.kind == Kind::kVector && node.prototype().kind == Kind::kVector;
}

/// Returns one list per repetition of a flag: "1,2,3". All of them may stand in one as JSON:
/// "[[1,2,3]]".
Json lists_from_words(const Node& node, const std::vector<std::string>& words,
                      const std::string& flag) {
  const Node element = node.prototype();
  Json lists = Json::array();
  for (const std::string& word : words) {
    const Json list = list_from_text(element, word, flag);
    if (!list.empty() && list.front().is_array()) {
      lists.insert(lists.end(), list.begin(), list.end());
    } else {
      lists.push_back(list);
    }
  }
  return lists;
}

}  // namespace

std::string identifier(const std::string& flag) {
  std::string name = flag.substr(2);
  std::ranges::replace_if(
      name, [](char c) { return c == '-' || c == '.'; }, '_');
  return name;
}

std::vector<Leaf> leaves(const Node& node, const std::string& prefix) {
  std::vector<Leaf> found;
  for (const Node& member : node.members) {
    const size_t comma = member.key.find(',');
    if (member.kind == Kind::kObject) {
      for (Leaf& leaf : leaves(member, prefix + member.key + ".")) found.push_back(std::move(leaf));
    } else if (comma == std::string::npos) {
      found.push_back({member, prefix + member.key});
    } else {
      found.push_back(
          {member, prefix + member.key.substr(0, comma), "-" + member.key.substr(comma + 1)});
    }
  }
  return found;
}

void add_flags(CLI::App& parser, std::vector<Leaf>& items, BoolStyle style) {
  for (Leaf& leaf : items) {
    std::string names = leaf.short_flag;
    std::string dashed = leaf.flag;  // "--edge_scale_mm" may be written "--edge-scale-mm" too
    std::ranges::replace(dashed, '_', '-');
    for (const std::string& name : std::set{leaf.flag, dashed, "--" + identifier(leaf.flag)}) {
      names += (names.empty() ? "" : ",") + name;
    }
    const bool is_bool = leaf.node.kind == Kind::kBool;
    if (is_bool && style == BoolStyle::kBare && !std::get<bool>(leaf.node.get())) {
      parser.add_flag(names, leaf.given);
      continue;
    }
    CLI::Option* option = parser.add_option_function<std::vector<std::string>>(
        names, [&leaf](const std::vector<std::string>& words) {
          // CLI11 hands an option without its value over as "".
          const std::string bare = leaf.node.kind == Kind::kBool ? "true" : "";
          for (const std::string& word : words) leaf.given.push_back(word.empty() ? bare : word);
        });
    option->type_size(1)->expected(is_bool ? 0 : 1, 1)->allow_extra_args(false);
    option->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  }
}

void apply_flags(const std::vector<Leaf>& items) {
  for (const Leaf& leaf : items) {
    if (leaf.given.empty()) continue;
    // A flag of paths is repeated: names may hold commas.
    if (leaf.node.kind == Kind::kVector && leaf.node.prototype().path) {
      from_json(leaf.node, Json(leaf.given), leaf.flag);
      continue;
    }
    if (is_list_of_lists(leaf.node)) {
      from_json(leaf.node, lists_from_words(leaf.node, leaf.given, leaf.flag), leaf.flag);
      continue;
    }
    if (leaf.given.size() > 1 && leaf.node.kind != Kind::kBool) {
      throw UsageError(leaf.flag + ": given more than once");
    }
    from_json(leaf.node, value_from_text(leaf.node, leaf.given.back(), leaf.flag), leaf.flag);
  }
}

std::string value_text(const Node& node) {
  switch (node.kind) {
    case Kind::kBool:
      return "true|false";
    case Kind::kInteger:
      return node.allowed.empty() ? "INT" + bounds_text(node) : list_text(node.allowed, "|");
    case Kind::kNumber:
      return "NUMBER" + bounds_text(node);
    case Kind::kString:
      return "TEXT";
    case Kind::kBytes:
      return "BYTES";
    case Kind::kEnum:
      return join(node.choices, "|");
    case Kind::kObject: {
      std::string keys;
      for (const Node& member : node.members) keys += (keys.empty() ? "" : ", ") + member.key;
      return "{" + keys + "}";
    }
    case Kind::kVector:
    case Kind::kOptional: {
      if (is_list_of_lists(node)) return value_text(node.prototype()) + "; may be repeated";
      Node element = node.prototype();
      element.min = std::max(element.min, node.min);
      element.max = std::min(element.max, node.max);
      if (node.kind == Kind::kOptional) return value_text(element) + " or null";
      std::string count = node.not_empty ? "at least one, " : "";
      if (!node.allowed_lengths.empty()) count = list_text(node.allowed_lengths, " or ") + ", ";
      return "list of " + (count.empty() ? "" : count + "each ") + value_text(element);
    }
  }
  return "";
}

}  // namespace larch::config
