// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/config/node.h"
#include "larch/core/context.h"
#include "larch/core/error.h"

namespace larch {

/// The flags that stand on a command line, whatever their values: "--curvature_weight", as
/// --help-config has it. What a configuration file says is not among them, since a file that
/// --print-config wrote holds every key.
struct GivenFlags {
  std::set<std::string> names{};
  bool has(const std::string& flag) const { return names.contains(flag); }
};

struct AppInfo {
  std::string name;                     ///< "pbt-detect"
  std::string summary;                  ///< one line
  std::string description{};            ///< paragraphs, separated by empty lines; may be empty
  std::vector<std::string> examples{};  ///< two whole command lines, the simplest first
  std::vector<std::string> references{};
  /// Raised whenever the same inputs and configuration give other bytes than before: then
  /// --skip-existing does not take results of earlier versions for those of this one.
  int results_version = 1;
  bool uses_seed = true;  ///< false: results do not depend on --seed
};

namespace detail {
struct CommandLine;
struct GivenPath;
struct Program;
struct ResultsBasis;
class InputDigests;

/// A run whose command line is read and checked.
struct CheckedRun {
  const Program& program;
  const CommandLine& line;
  const std::vector<GivenPath>& paths;
  const ListedInputs& listed;
  InputDigests& digests;

  /// Returns all that decides the bytes of a result with these inputs beside those of the flags.
  ResultsBasis basis(const std::vector<RunInput>& further = {}) const;
};

/// A program without the type of its options; members as in Hooks.
struct Program {
  AppInfo info{};
  config::Node flags{};   ///< the fields of the options
  config::Node config{};  ///< their member `config`, or an empty object
  std::function<void(const GivenFlags&)> check{};
  std::function<std::vector<std::string>()> companions{};
  std::function<ListedInputs()> listed_inputs{};
  /// The run is over a list, whose cases have records of their own.
  std::function<bool()> by_case = [] { return false; };
  /// The exit code of a run whose results are rejected and of which nothing failed.
  std::function<ExitCode()> reject_code = [] { return ExitCode::kRejected; };
  std::function<Outputs(Context&, const CheckedRun&)> run{};
  std::function<Plan(const Context&, const CheckedRun&)> plan{};
  std::function<void()> committed{};
  /// Returns what of this run has no code for a card, such as "flexible pixel shift"; empty:
  /// nothing.
  std::function<std::string()> cpu_alone = [] { return std::string(); };
};
int run_program(const Program& program, int argc, char** argv);
/// Returns the command line as one for a shell.
std::string command_of(const CheckedRun& run);

}  // namespace detail
}  // namespace larch
