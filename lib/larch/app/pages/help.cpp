// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cctype>

#include "larch/app/build_info.h"
#include "larch/app/pages/pages.h"
#include "larch/config/json_text.h"
#include "larch/config/text.h"

namespace larch::detail {
namespace {

constexpr size_t kWidth = 100;
constexpr const char* kExitCodes =
    "0 done, 1 bug, 2 usage, 3 input, 4 device, 5 memory, 6 output, 7 result rejected,\n"
    "130 and 143 stopped by a signal.";

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
    } else if (!result.empty() && result.back() != ' ') {
      result += " ";
      ++column;
    }
    result += word;
    column += word.size();
    begin = end + 1;
  }
  return result;
}

constexpr size_t kColumn = 32;

std::string row(const std::string& left, const std::string& right) {
  std::string text = "  " + left;
  if (text.size() + 2 > kColumn) {
    text += "\n" + std::string(kColumn, ' ');
  } else {
    text += std::string(kColumn - text.size(), ' ');
  }
  return text + wrapped(right, kColumn, kColumn) + "\n";
}

struct ValueWords {
  std::string type;   ///< stands after the flag: "INT", "soft|copy", "FILE"
  std::string range;  ///< stands behind the help: "in [1, 32]"
};

ValueWords value_words(const config::Node& node) {
  constexpr size_t kLongestChoices = 28;
  if (const auto role = role_of(node)) {
    return {*role >= PathRole::kOutputDir    ? "FOLDER"
            : *role == PathRole::kInputImage ? "IMAGE"
                                             : "FILE",
            ""};
  }
  if (node.kind == config::Kind::kBool) return {};
  if (node.kind == config::Kind::kOptional) {
    config::Node element = node.prototype();
    element.min = std::max(element.min, node.min);
    element.max = std::min(element.max, node.max);
    return value_words(element);
  }
  const std::string text = config::value_text(node);
  if (node.kind == config::Kind::kEnum) {
    if (text.size() <= kLongestChoices) return {text, ""};
    return {"WORD", "one of " + config::join(node.choices)};
  }
  if (node.kind == config::Kind::kVector) return {"LIST", text};
  const size_t space = std::min(text.find(' '), text.size());
  return {text.substr(0, space), space < text.size() ? text.substr(space + 1) : ""};
}

bool has_default_worth_showing(const config::Node& node) {
  switch (node.kind) {
    case config::Kind::kInteger:
    case config::Kind::kNumber:
    case config::Kind::kEnum:
      return true;
    case config::Kind::kBytes:
      return std::get<int64_t>(node.get()) > 0;
    case config::Kind::kString:
      return !std::get<std::string>(node.get()).empty();
    default:
      return false;
  }
}

std::string default_text(const config::Node& node) {
  const config::Json json = config::to_json(node);
  const bool bare = json.is_string() && !json.get<std::string>().empty();
  return bare ? json.get<std::string>() : json_text(json);
}

/// A flag or a key, and what is said of it.
struct Entry {
  std::string left, right;
};

Entry flag_entry(const config::Leaf& leaf) {
  const ValueWords value = value_words(leaf.node);
  std::string left = leaf.short_flag.empty() ? "    " : leaf.short_flag + ", ";
  left += leaf.flag;
  if (!value.type.empty()) left += " " + value.type;
  std::vector<std::string> remarks;
  if (leaf.node.required) remarks.emplace_back("required");
  if (!value.range.empty()) remarks.push_back(value.range);
  if (!leaf.node.required && has_default_worth_showing(leaf.node)) {
    remarks.push_back("default " + default_text(leaf.node));
  }
  const std::string tail = remarks.empty() ? "" : " (" + config::join(remarks, "; ") + ")";
  return {left, leaf.node.help + tail};
}

/// Returns the values that a key of the configuration takes.
std::string values_of_key(const config::Leaf& leaf) {
  return config::value_text(leaf.node) + "; default " + default_text(leaf.node);
}

struct Section {
  std::string title;
  std::vector<Entry> entries{};
};

/// Returns the flags but those of the configuration; no section is empty.
std::vector<Section> sections_of(const CommandLine& line) {
  std::vector<Section> sections{{"Inputs"}, {"Outputs"}, {"Options"}, {"Common flags"}};
  for (const config::Leaf& leaf : line.app) {
    const auto role = role_of(leaf.node);
    const size_t place = !role ? 2 : is_output(*role) ? 1 : 0;
    sections[place].entries.push_back(flag_entry(leaf));
  }
  for (const config::Leaf& leaf : line.shared) sections[3].entries.push_back(flag_entry(leaf));
  std::erase_if(sections, [](const Section& section) { return section.entries.empty(); });
  return sections;
}

/// A line or two for each key, if the elements of a list are structs.
std::string keys_of_elements(const config::Node& element) {
  std::string text;
  for (const config::Node& member : element.members) {
    text += std::string(kColumn, ' ') +
            wrapped("- " + member.key + ": " + member.help + " (" + config::value_text(member) +
                        "; default " + default_text(member) + ")",
                    kColumn, kColumn + 2) +
            "\n";
  }
  return text;
}

std::string synopsis(const Program& program, const CommandLine& line) {
  std::string text = program.info.name;
  for (const config::Leaf& leaf : line.app) {
    if (leaf.node.required) text += " " + leaf.flag + " " + value_words(leaf.node).type;
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

/// Text for roff, in which a dot or a quote at the beginning of a line would be a request.
std::string roff(const std::string& text) {
  std::string result;
  for (const char c : text) {
    const bool begins = result.empty() || result.back() == '\n';
    if (begins && (c == '.' || c == '\'')) result += "\\&";
    if (c == '-' || c == '\\') result += '\\';
    result += c == '\\' ? 'e' : c;
  }
  return result;
}

std::string upper(std::string text) {
  for (char& c : text) c = static_cast<char>(std::toupper(static_cast<unsigned char>(c)));
  return text;
}

std::string roff_section(const std::string& title, const std::vector<Entry>& entries) {
  std::string text = ".SH " + title + "\n";
  for (const auto& [left, right] : entries) {
    const size_t begin = std::min(left.find_first_not_of(' '), left.size());
    text += ".TP\n.B " + roff(left.substr(begin)) + "\n" + roff(right) + "\n";
  }
  return text;
}

/// Words that may follow a flag; nothing for free text, numbers and files.
std::string words_of(const config::Leaf& leaf) {
  if (leaf.flag == "--device") return "auto cpu cuda cuda:0";
  const config::Node node =
      leaf.node.kind == config::Kind::kOptional ? leaf.node.prototype() : leaf.node;
  if (!node.allowed.empty()) return config::list_text(node.allowed, " ");
  return config::join(node.choices, " ");
}

}  // namespace

std::string help_page(const Program& program, const CommandLine& line) {
  const AppInfo& info = program.info;
  std::string text =
      info.name + ": " + info.summary + "\n\nUsage: " + synopsis(program, line) + "\n";
  if (!info.examples.empty()) text += "\nExamples:\n";
  for (const std::string& example : info.examples) text += "  " + example + "\n";
  for (const Section& section : sections_of(line)) {
    text += "\n" + section.title + ":\n";
    for (const Entry& entry : section.entries) text += row(entry.left, entry.right);
  }
  if (!line.config.empty()) {
    text += "\nEvery configuration key is a flag too (such as " + line.config.front().flag +
            "); --help-config lists them.\n";
  }
  text += paragraphs(info.description);
  text += std::string("\nExit codes: ") + kExitCodes + "\n";
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
    text += row("", values_of_key(leaf));
    if (leaf.node.prototype) text += keys_of_elements(leaf.node.prototype());
    if (!leaf.node.example.empty()) text += row("", "example " + leaf.node.example);
  }
  return text;
}

std::string manual_page(const Program& program, const CommandLine& line) {
  const AppInfo& info = program.info;
  std::string text = ".TH " + upper(info.name) + " 1 \"\" \"Larch " + version() + "\"\n.SH NAME\n" +
                     info.name + " \\- " + roff(info.summary) + "\n.SH SYNOPSIS\n" +
                     roff(synopsis(program, line)) + "\n";
  if (!info.description.empty()) text += ".SH DESCRIPTION\n" + roff(info.description) + "\n";
  if (!info.examples.empty()) text += ".SH EXAMPLES\n.EX\n";
  for (const std::string& example : info.examples) text += roff(example) + "\n";
  if (!info.examples.empty()) text += ".EE\n";
  for (const Section& section : sections_of(line)) {
    text += roff_section(upper(section.title), section.entries);
  }
  std::vector<Entry> keys;
  for (const config::Leaf& leaf : line.config) {
    keys.push_back({leaf.flag, leaf.node.help + " (" + values_of_key(leaf) + ")"});
  }
  if (!keys.empty()) text += roff_section("CONFIGURATION", keys);
  text += std::string(".SH EXIT STATUS\n") + kExitCodes + "\n";
  if (!info.references.empty()) text += ".SH REFERENCES\n";
  for (const std::string& reference : info.references) text += ".PP\n" + roff(reference) + "\n";
  return text;
}

std::string bash_completion(const Program& program, const CommandLine& line) {
  std::string flags, cases;
  for (const auto* group : {&line.app, &line.shared, &line.config}) {
    for (const config::Leaf& leaf : *group) {
      flags += (flags.empty() ? "" : " ") + leaf.flag;
      const std::string words = words_of(leaf);
      if (words.empty()) continue;
      const std::string names =
          leaf.short_flag.empty() ? leaf.flag : leaf.short_flag + "|" + leaf.flag;
      cases += "    " + names + ") COMPREPLY=($(compgen -W '" + words +
               "' -- \"$current\")); return ;;\n";
    }
  }
  std::string function = "_larch_" + program.info.name;
  for (char& c : function) c = c == '-' ? '_' : c;
  // Where there is no answer, `-o default` completes file names.
  return "# bash completion of " + program.info.name +
         "; put it into\n# ~/.local/share/bash-completion/completions/" + program.info.name + "\n" +
         function +
         "() {\n"
         "  local current=\"${COMP_WORDS[COMP_CWORD]}\" previous=\"${COMP_WORDS[COMP_CWORD-1]}\"\n"
         "  COMPREPLY=()\n"
         "  case \"$previous\" in\n" +
         cases +
         "  esac\n"
         "  if [[ $current == -* ]]; then\n"
         "    COMPREPLY=($(compgen -W '" +
         flags +
         "' -- \"$current\"))\n"
         "  fi\n"
         "}\n"
         "complete -o default -F " +
         function + " " + program.info.name + "\n";
}

}  // namespace larch::detail
