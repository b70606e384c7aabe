// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/command_line.h"

#include <CLI/CLI.hpp>

#include "larch/config/config.h"
#include "larch/config/text.h"

namespace larch::detail {
namespace {

std::string quoted_for_shell(const std::string& word) {
  const char* plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-+=.,:/@%";
  if (!word.empty() && word.find_first_not_of(plain) == std::string::npos) return word;
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

[[noreturn]] void refuse(const std::string& word, const CommandLine& line) {
  if (word.rfind('-', 0) != 0) {
    throw UsageError("unexpected argument '" + word +
                     "': every value follows its flag; see --help");
  }
  std::vector<std::string> flags;
  for (const auto* group : {&line.app, &line.shared, &line.config}) {
    for (const config::Leaf& leaf : *group) flags.push_back(leaf.flag);
  }
  const std::string flag = word.substr(0, word.find('='));
  const std::string hint = config::did_you_mean(flag, flags);
  throw UsageError("unknown flag " + flag + (hint.empty() ? "; see --help" : hint));
}

}  // namespace

void parse_command_line(const Program& program, int argc, char** argv, CommandLine& line) {
  const config::Node shared = config::describe(line.common);
  line.app = config::leaves(program.flags);
  line.config = config::leaves(program.config);
  line.shared = config::leaves(shared);

  CLI::App parser(program.info.summary, program.info.name);
  parser.set_help_flag("");
  parser.allow_extras();
  config::add_flags(parser, line.app, config::BoolStyle::kBare);
  config::add_flags(parser, line.shared, config::BoolStyle::kBare);
  config::add_flags(parser, line.config, config::BoolStyle::kValue);
  parser.add_flag("--json", line.json);
  std::vector<std::string> words;
  line.text = program.info.name;
  for (int i = 1; i < argc; ++i) {
    line.text += " " + quoted_for_shell(argv[i]);
    words.emplace_back(i == 1 && std::string(argv[i]) == "--xml" ? "--slicer-xml" : argv[i]);
  }
  std::reverse(words.begin(), words.end());  // CLI11 takes them from the back
  try {
    parser.parse(words);
  } catch (const CLI::ArgumentMismatch& error) {
    const std::string what = error.what();  // "--depth: 1 required TEXT missing"
    throw UsageError(what.substr(0, what.find(':')) + ": the value is missing; see --help");
  } catch (const CLI::ParseError& error) {
    throw UsageError(std::string(error.what()) + "; see --help");
  }
  const std::vector<std::string> extras = parser.remaining();
  for (const std::string& word : extras) {
    if (word.rfind('-', 0) == 0) refuse(word, line);
  }
  if (!extras.empty()) refuse(extras[0], line);
  config::apply_flags(line.shared);
  config::apply_flags(line.app);
  for (const config::Leaf& leaf : line.shared) {
    if (leaf.flag == "--verbose") line.verbosity = static_cast<int>(leaf.given.size());
  }
  if (line.json && !line.common.version) throw UsageError("--json belongs to --version");
}

GivenFlags given_flags(const CommandLine& line) {
  GivenFlags given;
  for (const auto* group : {&line.app, &line.config, &line.shared}) {
    for (const config::Leaf& leaf : *group) {
      if (!leaf.given.empty()) given.names.insert(leaf.flag);
    }
  }
  return given;
}

void apply_config(const Program& program, const CommandLine& line) {
  for (const InputFile& file : line.common.configs) {
    config::from_json(program.config, config::parse_file(file),
                      file.path == "-" ? "stdin" : file.path);
  }
  config::apply_flags(line.config);
}

}  // namespace larch::detail
