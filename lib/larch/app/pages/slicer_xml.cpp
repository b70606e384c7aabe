// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cctype>
#include <cmath>
#include <map>

#include "larch/app/build_info.h"
#include "larch/app/pages/pages.h"
#include "larch/config/json_text.h"

namespace larch::detail {
namespace {

std::string escaped(const std::string& text) {
  static const std::map<char, std::string> kNames{
      {'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}};
  std::string result;
  for (const char c : text) {
    const auto named = kNames.find(c);
    result += named == kNames.end() ? std::string(1, c) : named->second;
  }
  return result;
}

std::string tag(const std::string& name, const std::string& text, int indent) {
  return std::string(static_cast<size_t>(indent), ' ') + "<" + name + ">" + escaped(text) + "</" +
         name + ">\n";
}

/// "--surface-levels" -> "surface_levels", since Slicer wants a C identifier.
std::string identifier(const config::Leaf& leaf) {
  std::string name;
  for (const char c : leaf.flag.substr(2)) {
    name += std::isalnum(static_cast<unsigned char>(c)) != 0 ? c : '_';
  }
  return name;
}

std::string label(const config::Leaf& leaf) {
  std::string text = leaf.flag.substr(2);
  for (char& c : text) c = c == '-' || c == '_' ? ' ' : c;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

/// Returns the tag of a parameter with its attributes; empty if Slicer has no widget for it.
std::string element_of(const config::Node& node) {
  switch (node.kind) {
    case config::Kind::kBool:
      return "boolean";
    case config::Kind::kInteger:
      return node.allowed.empty() ? "integer" : "integer-enumeration";
    case config::Kind::kNumber:
      return "double";
    case config::Kind::kEnum:
      return "string-enumeration";
    case config::Kind::kBytes:
      return "string";
    case config::Kind::kString:
      break;
    case config::Kind::kOptional:  // Slicer leaves flags without a text out, which no number is
      return element_of(node.prototype()) == "double" ? "string" : "";
    case config::Kind::kVector: {
      const config::Node element = node.prototype();
      if (element.kind == config::Kind::kVector) return element_of(element);
      return element.kind == config::Kind::kNumber ? "double-vector" : "";
    }
    default:
      return "";
  }
  if (!node.path) return "string";
  switch (*node.path) {
    case PathRole::kInputImage:
    case PathRole::kOutputImage:
      return "image";
    case PathRole::kOutputLabelmap:
      return "image type=\"label\"";
    case PathRole::kInputMesh:
    case PathRole::kOutputMesh:
      return "geometry";
    case PathRole::kOutputDir:
      return "directory";
    default:
      return "file";
  }
}

std::string constraints(const config::Node& node) {
  const auto number = [&node](double value) {
    const bool integer = node.kind == config::Kind::kInteger;
    return integer ? json_text(static_cast<int64_t>(value)) : json_text(value);
  };
  std::string text;
  if (std::isfinite(node.min)) text += tag("minimum", number(node.min), 8);
  if (std::isfinite(node.max)) text += tag("maximum", number(node.max), 8);
  return text.empty() ? "" : "      <constraints>\n" + text + "      </constraints>\n";
}

std::string parameter(const config::Leaf& leaf) {
  const config::Node& node = leaf.node;
  const std::string element = element_of(node);
  if (element.empty()) return "";
  std::string text = "    <" + element + ">\n";
  text += tag("name", identifier(leaf), 6);
  if (!leaf.short_flag.empty()) text += tag("flag", leaf.short_flag, 6);
  text += tag("longflag", leaf.flag, 6);
  text += tag("label", label(leaf), 6);
  text += tag("description", node.help, 6);
  if (node.path) {
    text += tag("channel", is_output(*node.path) ? "output" : "input", 6);
  } else {
    const config::Json value = config::to_json(node);
    const bool is_empty = value.is_null() || (value.is_array() && value.empty());
    const std::string word = value.is_string() ? value.get<std::string>() : json_text(value);
    text += tag("default",
                is_empty           ? ""
                : value.is_array() ? word.substr(1, word.size() - 2)
                                   : word,
                6);
  }
  for (const std::string& choice : node.choices) text += tag("element", choice, 6);
  for (const int64_t value : node.allowed) text += tag("element", std::to_string(value), 6);
  return text + (element == "string" ? "" : constraints(node)) + "    </" +
         element.substr(0, element.find(' ')) + ">\n";
}

std::string group(const std::string& name, const std::string& content, bool advanced) {
  if (content.empty()) return "";
  return std::string("  <parameters") + (advanced ? " advanced=\"true\"" : "") + ">\n" +
         tag("label", name, 4) + tag("description", name, 4) + content + "  </parameters>\n";
}

}  // namespace

std::string slicer_xml(const Program& program, const CommandLine& line) {
  const AppInfo& info = program.info;
  std::string files, options, advanced;
  for (const config::Leaf& leaf : line.app) (leaf.node.path ? files : options) += parameter(leaf);
  for (const config::Leaf& leaf : line.config) {
    if (leaf.flag.find('.') == std::string::npos) advanced += parameter(leaf);
  }
  for (const config::Leaf& leaf : line.shared) {
    const bool shown = leaf.flag == "--device" || leaf.flag == "--seed" || leaf.flag == "--force";
    if (shown) advanced += parameter(leaf);
  }
  return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<executable>\n" +
         tag("category", "Larch", 2) + tag("title", info.name, 2) +
         tag("description",
             info.description.empty() ? info.summary : info.summary + "\n\n" + info.description,
             2) +
         tag("version", version(), 2) + tag("license", "Apache-2.0", 2) +
         tag("contributor", "The Larch authors", 2) + group("Inputs and outputs", files, false) +
         group("Options", options, false) + group("Configuration", advanced, true) +
         "</executable>\n";
}

}  // namespace larch::detail
