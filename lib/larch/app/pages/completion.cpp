// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/pages/pages.h"
#include "larch/config/suggest.h"

namespace larch::detail {
namespace {

/// Words that may follow a flag; nothing for free text, numbers and files.
std::string words_of(const config::Leaf& leaf) {
  if (leaf.flag == "--device") return "auto cpu cuda cuda:0";
  const config::Node node =
      leaf.node.kind == config::Kind::kOptional ? leaf.node.prototype() : leaf.node;
  if (!node.allowed.empty()) return config::list_text(node.allowed, " ");
  return config::join(node.choices, " ");
}

}  // namespace

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
