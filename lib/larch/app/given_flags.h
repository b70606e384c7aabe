// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>

namespace larch {

/// The flags that stand on a command line, whatever their values: "--curvature_weight", as
/// --help-config has it. What a configuration file says is not among them, since a file that
/// --print-config wrote holds every key.
struct GivenFlags {
  std::set<std::string> names{};
  bool has(const std::string& flag) const { return names.contains(flag); }
};

}  // namespace larch
