// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "larch/app/outputs/paths.h"
#include "larch/app/program.h"

// The frame of every executable. A whole one, which copies a text with repetitions:
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
//     Outputs run(const Options& o, Context& context) {
//       const std::string text = repeated(read_file(o.input), o.config.times);
//       return Outputs{}.metric("bytes", double(text.size())).add(o.output,
//           [=](const std::string& temporary) { write_file(temporary, text); });
//     }
//     int main(int argc, char** argv) {
//       return run_app<Options>({"repeat", "Repeat a text.", "", {"repeat -i a.txt -o b.txt",
//           "repeat -i a.txt -o b.txt --times 3"}}, argc, argv, {.run = run});
//     }
//
// A program over many images is a larch::cases::CaseProgram (larch/cases/case_program.h).

namespace larch {

/// A program with one result. All but `run` may be left out.
template <class Options>
struct Hooks {
  /// The result. Throws Stopped when it sees Context::stop; nothing is written once that is set.
  std::function<Outputs(const Options&, Context&)> run;
  /// Called instead of `run` with --dry-run: checks all that `run` would check before it computes
  /// and throws the same errors, or puts them into Plan::problems if there may be several.
  std::function<Plan(const Options&, const Context&)> plan{};
  /// Throws UsageError for combinations of flags that make no sense.
  std::function<void(const Options&, const GivenFlags&)> check{};
  /// Inputs that no flag names; they are recorded and compared like those of flags. Throws
  /// InputError.
  std::function<ListedInputs(const Options&)> listed_inputs{};
  /// Files beside the outputs that may not be there, such as a label table or a checkpoint.
  std::function<std::vector<std::string>(const Options&)> companions{};
  /// Called once the outputs have their names, to remove a checkpoint.
  std::function<void(const Options&)> committed{};
};

namespace detail {
/// Prints a result. Stdout counts as an output: throws OutputError if a full disk is behind it.
void print(const std::string& text);

/// Returns the parts of a program that its options decide.
template <class Options>
Program describe_program(const AppInfo& info, Options& options) {
  Program program;
  program.info = info;
  program.flags = config::describe(options);
  if constexpr (requires { options.config; }) program.config = config::describe(options.config);
  return program;
}

/// `hook` of these options; none if it is empty.
template <class Options, class Result, class... Arguments>
std::function<Result(Arguments...)> bound(
    const std::function<Result(const Options&, Arguments...)>& hook, const Options& options) {
  if (!hook) return {};
  return [&options, hook](Arguments... arguments) -> Result {
    return hook(options, std::forward<Arguments>(arguments)...);
  };
}
}  // namespace detail

/// Parses the command line, answers --help and its kin, checks inputs and outputs, chooses the
/// device, runs, writes outputs, record and report, and returns the exit code of error.h. No
/// exception leaves it.
///
/// Options has fields(): the flags of this executable, whose keys are flag names without dashes in
/// front ("probability", "input,i"). A member named `config` is the JSON configuration: its leaves
/// are flags too ("--tree.depth"), and it is what --config, --print-config and --print-schema
/// handle; it is not listed in fields(). Path members (paths.h) are checked: inputs must exist,
/// outputs must not, unless --force. A member named `command` receives the command line.
template <class Options>
int run_app(const AppInfo& info, int argc, char** argv, const Hooks<Options>& hooks) {
  Options options;
  detail::Program program = detail::describe_program(info, options);
  program.check = detail::bound(hooks.check, options);
  program.companions = detail::bound(hooks.companions, options);
  program.listed_inputs = detail::bound(hooks.listed_inputs, options);
  program.committed = detail::bound(hooks.committed, options);
  program.run = [&](Context& context, const detail::CheckedRun& run) {
    if constexpr (requires { options.command; }) options.command = detail::command_of(run);
    const auto start = std::chrono::steady_clock::now();
    return hooks.run(options, context).step("computing", seconds_since(start));
  };
  if (hooks.plan) {
    program.plan = [&](const Context& context, const detail::CheckedRun&) {
      return hooks.plan(options, context);
    };
  }
  return detail::run_program(program, argc, argv);
}

}  // namespace larch
