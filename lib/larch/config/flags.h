// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/config/node.h"

namespace CLI {
class App;
}

namespace larch::config {

/// A parameter that has a flag of its own: a scalar, an optional scalar or a list.
struct Leaf {
  Node node;
  std::string flag;                  ///< "--tree.depth"
  std::string short_flag{};          ///< "-i", from a key such as "input,i"; mostly empty
  std::vector<std::string> given{};  ///< what the command line says, in order
};

/// Returns the flag without dashes and dots, as 3D Slicer needs it: "start_labels" of
/// "--start-labels", "structure_threshold" of "--structure.threshold".
std::string identifier(const std::string& flag);

/// All leaves under `node`, in the order of declaration; their nodes refer to the same object.
std::vector<Leaf> leaves(const Node& node, const std::string& prefix = "--");

/// kBare: a bool that is false takes a value only as --flag=true, so that -fq and -vv work.
/// kValue, and a bool that is true: --flag false works too.
enum class BoolStyle { kBare, kValue };

/// Makes one option of CLI11 for each leaf; parsing fills `given`. `items` must stay where it is.
/// A flag with underscores may be written with dashes instead, and any one as its identifier.
void add_flags(CLI::App& parser, std::vector<Leaf>& items, BoolStyle style);

/// Sets the values that were given. Lists are written "1,2,3", lists of lists by repeating the
/// flag, lists of structs as JSON, an empty optional as "null". Throws UsageError that names the
/// flag.
void apply_flags(const std::vector<Leaf>& items);

/// Returns what a leaf takes, for people: "INT in [1, 32]", "soft|copy", "list of {name, labels}".
std::string value_text(const Node& node);

}  // namespace larch::config
