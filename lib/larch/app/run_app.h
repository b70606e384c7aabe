// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "larch/app/given_flags.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/outputs/paths.h"
#include "larch/app/plan.h"
#include "larch/config/node.h"
#include "larch/core/context.h"
#include "larch/core/error.h"

// The skeleton of every executable. A whole one, that copies a text with repetitions:
//
//     struct RepeatConfig {
//       int times = 2;
//       template <class F> void fields(F&& f) { f(Field{"times", times, "repetitions", 1, 9}); }
//     };
//     struct Options {
//       InputFile input;
//       OutputFile output;
//       RepeatConfig config;  // --config, --print-config and the flag --times come from it
//       template <class F> void fields(F&& f) {
//         f(Field{"input,i", input, "text to repeat"}.required(),
//           Field{"output,o", output, "the repeated text"}.required());
//       }
//     };
//     int main(int argc, char** argv) {
//       return run_app<Options>(
//           {"repeat", "Repeat a text.", "", {"repeat -i a.txt -o b.txt", "repeat -i a.txt -o b.txt
//           --times 3"}}, argc, argv, [](const Options& o, Context& context) {
//             const std::string text = read_text(o.input);
//             context.progress(0.5, "repeating");
//             return Outputs{}.metric("bytes", double(text.size())).add(o.output,
//                 [=](const std::string& temporary) { write_text(temporary, text, o.config.times);
//                 });
//           });
//     }

namespace larch {

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
struct Program {
  AppInfo info{};
  config::Node flags{};   ///< the fields of the options
  config::Node config{};  ///< their member `config`, or an empty object
  std::function<void(const GivenFlags&)> check{};
  std::function<std::vector<std::string>()> companions{};
  /// An OutputDir receives case after case, and an interrupted run goes on in it.
  std::function<bool()> by_case{};
  std::function<ListedInputs()> listed_inputs{};
  std::function<Outputs(Context&, const CaseWriter&)> run{};
  /// What --dry-run prints beside the names of the outputs; empty: nothing.
  std::function<Plan(const Context&, const CaseWriter&)> plan{};
};
/// For executables whose arguments tell all about a run.
struct NoPlan {};
int run_program(const Program& program, int argc, char** argv);
}  // namespace detail

/// Parses the command line, answers --help and its kin, checks inputs and outputs, chooses the
/// device, calls `run`, writes outputs, sidecars and report, and returns the exit code of error.h.
/// No exception leaves it.
///
/// Options has fields(): the flags of this executable, whose keys are flag names without dashes in
/// front ("probability", "input,i"). A member named `config` is the JSON configuration: its leaves
/// are flags too ("--tree.depth"), and it is what --config, --print-config and --print-schema
/// handle; it is not listed in fields(). Path members (paths.h) are checked: inputs must exist,
/// outputs must not, unless --force. If Options has `void check() const`, it is called before that,
/// and throws UsageError for combinations of flags that make no sense; with `void check(const
/// GivenFlags&) const` it learns as well which flags were given, for those whose value may be the
/// default. Once Context::stop is set
/// nothing is written.
///
/// If Options has `ListedInputs listed_inputs() const`, these inputs are recorded and compared like
/// those that flags name; it may throw InputError.
///
/// `run` takes (const Options&, Context&), or for runs over many cases (const Options&, Context&,
/// const CaseWriter&). If `bool by_case() const` of Options is true, --skip-existing is left to
/// `run`, case by case (CaseWriter::earlier). It throws Stopped itself when it sees Context::stop.
///
/// `plan` takes (const Options&, const Context&, const CaseWriter&) and is called instead of `run`
/// with --dry-run. It checks all that `run` would check before it computes and throws the same
/// errors, or puts them into Plan::problems if there may be several.
template <class Options, class Run, class MakePlan = detail::NoPlan>
int run_app(const AppInfo& info, int argc, char** argv, Run&& run, MakePlan&& plan = {}) {
  Options options;
  detail::Program program;
  program.info = info;
  program.flags = config::describe(options);
  if constexpr (requires { options.config; }) program.config = config::describe(options.config);
  if constexpr (requires { options.check(GivenFlags{}); }) {
    program.check = [&options](const GivenFlags& given) { options.check(given); };
  } else if constexpr (requires { options.check(); }) {
    program.check = [&options](const GivenFlags&) { options.check(); };
  }
  if constexpr (requires { options.companions(); }) {
    program.companions = [&options] { return options.companions(); };
  }
  if constexpr (requires { options.by_case(); }) {
    program.by_case = [&options] { return options.by_case(); };
  }
  if constexpr (requires { options.listed_inputs(); }) {
    program.listed_inputs = [&options] { return options.listed_inputs(); };
  }
  program.run = [&](Context& context, const CaseWriter& cases) -> Outputs {
    constexpr bool kByCase = requires {
      run(std::as_const(options), context, cases);
    };
    if constexpr (kByCase) {
      return run(std::as_const(options), context, cases);
    } else {
      return run(std::as_const(options), context);
    }
  };
  if constexpr (!std::is_same_v<std::decay_t<MakePlan>, detail::NoPlan>) {
    program.plan = [&](const Context& context, const CaseWriter& cases) -> Plan {
      return plan(std::as_const(options), context, cases);
    };
  }
  return detail::run_program(program, argc, argv);
}

}  // namespace larch
