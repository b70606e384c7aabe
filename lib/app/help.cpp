// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <functional>

#include "larch/app/build_info.h"
#include "larch/app/json_text.h"
#include "larch/app/pages.h"

namespace larch::detail {
namespace {

constexpr size_t kWidth = 100;

/// Breaks `text` into lines; the first begins at column `column`, the others are indented.
std::string wrapped(const std::string& text, size_t column, size_t indent) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find_first_of(" \n", begin);
    if (end == std::string::npos) end = text.size();
    const std::string word = text.substr(begin, end - begin);
    if (column > indent && column + 1 + word.size() > kWidth) {
      result += "\n" + std::string(indent, ' ');
      column = indent;
    } else if (column > indent) {
      result += " ";
      ++column;
    }
    result += word;
    column += word.size();
    begin = end + 1;
  }
  return result;
}

std::string row(const std::string& left, const std::string& right) {
  constexpr size_t kColumn = 32;
  std::string text = "  " + left;
  if (text.size() + 2 > kColumn) {
    text += "\n" + std::string(kColumn, ' ');
  } else {
    text += std::string(kColumn - text.size(), ' ');
  }
  return text + wrapped(right, kColumn, kColumn) + "\n";
}

std::optional<PathRole> role_of(const config::Node& node) {
  if (node.path) return node.path;
  return node.prototype ? node.prototype().path : std::nullopt;
}

std::string placeholder(const config::Node& node) {
  if (const auto role = role_of(node)) {
    const bool folder = *role == PathRole::kInputDir || *role == PathRole::kOutputDir;
    return folder ? "FOLDER" : *role == PathRole::kInputImage ? "IMAGE" : "FILE";
  }
  return node.kind == config::Kind::kBool ? "" : config::value_text(node);
}

bool has_default_worth_showing(const config::Node& node) {
  switch (node.kind) {
    case config::Kind::kInteger:
    case config::Kind::kNumber:
    case config::Kind::kEnum:
      return true;
    case config::Kind::kString:
      return !std::get<std::string>(node.get()).empty();
    default:
      return false;
  }
}

std::string default_text(const config::Node& node) {
  const config::Json json = config::to_json(node);
  return json.is_string() ? json.get<std::string>() : json_text(json);
}

std::string flag_row(const config::Leaf& leaf) {
  std::string left = leaf.short_flag.empty() ? "    " : leaf.short_flag + ", ";
  left += leaf.flag;
  const std::string value = placeholder(leaf.node);
  if (!value.empty()) left += " " + value;
  std::string right = leaf.node.help;
  if (leaf.node.required) right += " (required)";
  if (!leaf.node.required && has_default_worth_showing(leaf.node)) {
    right += " (default " + default_text(leaf.node) + ")";
  }
  return row(left, right);
}

std::string section(const std::string& title, const std::vector<config::Leaf>& items,
                    const std::function<bool(const config::Leaf&)>& wanted) {
  std::string text;
  for (const config::Leaf& leaf : items) {
    if (wanted(leaf)) text += flag_row(leaf);
  }
  return text.empty() ? "" : "\n" + title + ":\n" + text;
}

std::string synopsis(const Program& program, const CommandLine& line) {
  std::string text = program.info.name;
  for (const config::Leaf& leaf : line.app) {
    if (leaf.node.required) text += " " + leaf.flag + " " + placeholder(leaf.node);
  }
  return text + " [flags]";
}

std::string paragraphs(const std::string& text) {
  std::string result;
  for (size_t begin = 0; begin < text.size();) {
    size_t end = text.find("\n\n", begin);
    if (end == std::string::npos) end = text.size();
    result += "\n" + wrapped(text.substr(begin, end - begin), 0, 0) + "\n";
    begin = end + 2;
  }
  return result;
}

}  // namespace

std::string help_page(const Program& program, const CommandLine& line) {
  const AppInfo& info = program.info;
  std::string text =
      info.name + ": " + info.summary + "\n\nUsage: " + synopsis(program, line) + "\n";
  if (!info.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : info.examples) text += "  " + example + "\n";
  const auto role = [](const config::Leaf& leaf) { return role_of(leaf.node); };
  text +=
      section("Inputs", line.app, [&](const auto& l) { return role(l) && !is_output(*role(l)); });
  text +=
      section("Outputs", line.app, [&](const auto& l) { return role(l) && is_output(*role(l)); });
  text += section("Options", line.app, [&](const auto& l) { return !role(l); });
  text += section("Common flags", line.shared, [](const auto&) { return true; });
  if (!line.config.empty()) {
    text += "\nEvery configuration key is a flag too (such as " + line.config.front().flag +
            "); --help-config lists them.\n";
  }
  text += paragraphs(info.description);
  text +=
      "\nExit codes: 0 done, 1 bug, 2 usage, 3 input, 4 device, 5 memory, 6 output, 7 result "
      "rejected,\n130 and 143 stopped by a signal.\n";
  if (!info.references.empty()) text += "\nReferences:\n";
  for (const std::string& reference : info.references) {
    text += "  " + wrapped(reference, 2, 4) + "\n";
  }
  return text;
}

std::string config_help_page(const Program& program, const CommandLine& line) {
  std::string text = "Configuration of " + program.info.name +
                     ": keys of the JSON file of --config, and flags. A flag wins over a file.\n\n";
  if (line.config.empty()) return text + "There are none.\n";
  for (const config::Leaf& leaf : line.config) {
    text += row(leaf.flag, leaf.node.help);
    text += row("", config::value_text(leaf.node) + "; default " + default_text(leaf.node));
  }
  return text;
}

}  // namespace larch::detail
