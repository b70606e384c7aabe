// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>
#include <charconv>
#include <map>
#include <vector>

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

/// Returns the last key of a flag in words: "Graph cut" of "--structure.graph-cut".
std::string label(const std::string& flag) {
  std::string text = flag.substr(std::max(flag.rfind('.') + 1, size_t{2}));
  for (char& c : text) c = c == '-' || c == '_' ? ' ' : c;
  text[0] = static_cast<char>(std::toupper(static_cast<unsigned char>(text[0])));
  return text;
}

/// Images, surfaces, points and tables of colours are nodes of Slicer's scene, which it writes to
/// temporary files and reads from them; everything else is a file that its user names.
std::string element_of(PathRole role, const std::string& endings) {
  switch (role) {
    case PathRole::kInputImage:  // label maps are no scalar volumes in Slicer
      return "image type=\"any\"";
    case PathRole::kOutputImage:
      return "image";
    case PathRole::kOutputLabelmap:
      return "image type=\"label\"";
    case PathRole::kInputMesh:
      return "geometry fileExtensions=\".vtk\"";
    case PathRole::kOutputMesh:
      return "geometry";
    case PathRole::kInputPoints:
      return "pointfile fileExtensions=\".mrk.json\" coordinateSystem=\"lps\"";
    case PathRole::kOutputColours:
      return "table type=\"color\"";
    case PathRole::kOutputDir:
    case PathRole::kOutputPage:
      return "directory";
    case PathRole::kOutputPicture:
      return "file fileExtensions=\".png\"";
    default:
      return "file" + (endings.empty() ? "" : " fileExtensions=\"" + endings + "\"");
  }
}

/// Returns the tag of a parameter with its attributes; empty if Slicer has no widget for it.
std::string element_of(const config::Node& node) {
  if (const auto role = role_of(node)) return element_of(*role, node.endings);
  switch (node.kind) {
    case config::Kind::kBool:  // Slicer says nothing of a box that is not ticked
      return std::get<bool>(node.get()) ? "string-enumeration" : "boolean";
    case config::Kind::kInteger:
      return node.allowed.empty() ? "integer" : "integer-enumeration";
    case config::Kind::kNumber:
      return "double";
    case config::Kind::kEnum:
      return "string-enumeration";
    case config::Kind::kBytes:
    case config::Kind::kString:
      return "string";
    case config::Kind::kOptional:  // Slicer leaves flags without a text out, which no number is
      return element_of(node.prototype()).empty() ? "" : "string";
    case config::Kind::kVector: {
      const config::Node element = node.prototype();
      // Lists of lists have brackets, unless one is all that there is.
      if (element.kind == config::Kind::kVector)
        return node.size() > 0 ? "string" : element_of(element);
      return element.kind == config::Kind::kNumber    ? "double-vector"
             : element.kind == config::Kind::kInteger ? "integer-vector"
             : element.kind == config::Kind::kObject  ? ""
                                                      : "string-vector";
    }
    default:
      return "";
  }
}

/// Slicer takes the digits behind the point of a default for all that its user may choose.
std::string decimals(double value) {
  char text[400];
  std::string out(text,
                  std::to_chars(text, text + sizeof text, value, std::chars_format::fixed).ptr);
  if (out.find('.') == out.npos) out += '.';
  while (out.size() - out.find('.') <= 3) out += '0';
  return out;
}

std::string default_of(const config::Node& node) {
  if (node.kind == config::Kind::kNumber) return decimals(std::get<double>(node.get()));
  const config::Json value = config::to_json(node);
  if (value.is_null()) return "";
  if (value.is_string()) return value.get<std::string>();
  const bool is_list = value.is_array() && (value.empty() || !value[0].is_array());
  if (!is_list) return json_text(value);
  std::string list;
  for (const config::Json& one : value) {
    list += (list.empty() ? "" : ",") + (one.is_string() ? one.get<std::string>() : json_text(one));
  }
  return list;
}

/// Slicer makes a slider of a number with bounds, whose steps are counted by 31 bits.
std::string constraints(const config::Node& node) {
  constexpr double kFarthest = 1e6;
  if (!(node.min >= -kFarthest && node.max <= kFarthest)) return "";
  const auto number = [&node](double value) {
    const bool integer = node.kind == config::Kind::kInteger;
    return integer ? json_text(static_cast<int64_t>(value)) : decimals(value);
  };
  return "      <constraints>\n" + tag("minimum", number(node.min), 8) +
         tag("maximum", number(node.max), 8) + "      </constraints>\n";
}

/// `hidden`: the value that Slicer gives without asking.
std::string parameter(const config::Leaf& leaf, const char* hidden = nullptr) {
  const config::Node& node = leaf.node;
  const std::string element = element_of(node), name = element.substr(0, element.find(' '));
  if (element.empty() || node.of_lists) return "";
  std::string text = "    <" + element + (hidden ? " hidden=\"true\"" : "") + ">\n";
  text += tag("name", config::identifier(leaf.flag), 6);
  if (!leaf.short_flag.empty()) text += tag("flag", leaf.short_flag, 6);
  text += tag("longflag", "--" + config::identifier(leaf.flag), 6);
  text += tag("label", label(leaf.flag), 6);
  text += tag("description", node.help, 6);
  if (const auto role = role_of(node)) {
    text += tag("channel", is_output(*role) ? "output" : "input", 6);
  } else {
    text += tag("default", hidden ? hidden : default_of(node), 6);
  }
  std::vector<std::string> choices = node.choices;
  for (const int64_t value : node.allowed) choices.push_back(std::to_string(value));
  if (node.kind == config::Kind::kBool && name != "boolean") choices = {"true", "false"};
  if (name.ends_with("enumeration")) {
    for (const std::string& choice : choices) text += tag("element", choice, 6);
  }
  if (name == "integer" || name == "double") text += constraints(node);
  return text + "    </" + name + ">\n";
}

std::string group(const std::string& name, const std::string& content, bool advanced) {
  if (content.empty()) return "";
  return std::string("  <parameters") + (advanced ? " advanced=\"true\"" : "") + ">\n" +
         tag("label", name, 4) + tag("description", name, 4) + content + "  </parameters>\n";
}

}  // namespace

std::string slicer_xml(const Program& program, const CommandLine& line) {
  const AppInfo& info = program.info;
  std::string files, options, run;
  for (const config::Leaf& leaf : line.app) {
    (role_of(leaf.node) ? files : options) += parameter(leaf);
  }
  // Slicer names the files of a node alike each time, and removes those alone that it knows.
  const std::map<std::string, const char*> hidden{
      {"--force", "true"}, {"--no-sidecar", "true"}, {"--progress", "slicer"}};
  for (const config::Leaf& leaf : line.shared) {
    if (leaf.flag == "--config") files += parameter(leaf);
    if (leaf.flag == "--device" || leaf.flag == "--seed") run += parameter(leaf);
    if (hidden.contains(leaf.flag)) run += parameter(leaf, hidden.at(leaf.flag));
  }
  std::vector<std::pair<std::string, std::string>> groups{{"", ""}};
  for (const config::Leaf& leaf : line.config) {
    const size_t dot = std::max(leaf.flag.rfind('.') + 1, size_t{1}) - 1;
    const std::string name = dot == 0 ? "" : leaf.flag.substr(2, dot - 2);
    auto found = std::ranges::find(groups, name, [](const auto& group) { return group.first; });
    if (found == groups.end()) found = groups.insert(found, {name, ""});
    found->second += parameter(leaf);
  }
  std::string advanced;
  for (const auto& [name, content] : groups) {
    advanced += group(name.empty() ? "Configuration" : "Configuration: " + name, content, true);
  }
  return "<?xml version=\"1.0\" encoding=\"utf-8\"?>\n<executable>\n" +
         tag("category", "Larch", 2) + tag("title", info.name, 2) +
         tag("description",
             info.description.empty() ? info.summary : info.summary + "\n\n" + info.description,
             2) +
         tag("version", version(), 2) + tag("documentation-url", "", 2) +
         tag("license", "Apache-2.0", 2) + tag("contributor", "The Larch authors", 2) +
         group("Inputs and outputs", files, false) + group("Options", options, false) + advanced +
         group("Run", run, true) + "</executable>\n";
}

}  // namespace larch::detail
