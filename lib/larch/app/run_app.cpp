// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <future>
#include <optional>

#include "larch/app/build_info.h"
#include "larch/app/command_line.h"
#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/outputs/paths_check.h"
#include "larch/app/pages/pages.h"
#include "larch/app/process.h"
#include "larch/app/records/case_record.h"
#include "larch/config/json_text.h"
#include "larch/config/text.h"
#include "larch/core/parallel.h"
#include "larch/core/text.h"
#include "larch/files/file.h"

namespace larch::detail {

void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw OutputError("cannot write to standard output; is the disk behind it full?");
  }
}

namespace {

using Clock = std::chrono::steady_clock;

std::string version_page(const Program& program, bool json) {
  if (json) {
    config::Json info{{"App", program.info.name}};
    info.update(build_info());
    return json_text(info, 2) + "\n";
  }
  return "larch " + version() + "\n" + program.info.name + ", git " + git_revision() +
         (built_with_cuda() ? ", with CUDA\n" : ", without CUDA\n");
}

/// The text of --help, --version and their kin, if one of them is asked for.
std::optional<std::string> information(const Program& program, const CommandLine& line) {
  const CommonFlags& flags = line.common;
  if (flags.help) return help_page(program, line);
  if (flags.help_config) return config_help_page(program, line);
  if (flags.version) return version_page(program, line.json);
  if (flags.slicer_xml) return slicer_xml(program, line);
  if (flags.manual_page) return manual_page(program, line);
  if (flags.completion) return bash_completion(program, line);
  return std::nullopt;
}

/// Returns the same for the pages that show values, after the configuration is read.
std::optional<std::string> configuration(const Program& program, const CommandLine& line) {
  if (line.common.print_config) return json_text(config::to_json(program.config), 2) + "\n";
  if (line.common.print_schema) {
    const std::string title = "Configuration of " + program.info.name;
    return json_text(config::schema(program.config, title), 2) + "\n";
  }
  return std::nullopt;
}

namespace fs = std::filesystem;

/// Makes output folders, and takes away again those that a failed run leaves empty.
class NewFolders {
 public:
  NewFolders() = default;
  ~NewFolders() {
    // The deepest first; removal fails for those that hold something, as it should.
    std::error_code ignored;
    for (auto folder = made_.rbegin(); folder != made_.rend(); ++folder) {
      fs::remove(*folder, ignored);
    }
  }
  NewFolders(const NewFolders&) = delete;
  NewFolders& operator=(const NewFolders&) = delete;

  void make(const fs::path& folder) {
    std::error_code error;
    if (folder.empty() || fs::is_directory(folder, error)) return;
    make(folder.has_filename() ? folder.parent_path() : folder.parent_path().parent_path());
    const bool made = fs::create_directory(folder, error);
    if (error)
      throw OutputError("cannot make folder '" + folder.string() + "': " + error.message());
    if (made) made_.push_back(folder);
  }

 private:
  std::vector<fs::path> made_;
};

/// All that is known before a run starts.
struct Start {
  const CheckedRun& run;
  const PlannedOutputs& planned;
  const EarlierCase& earlier;
};

/// Writes outputs, record and report, all or none of them.
void write_all(const Start& start, const Context& context, Outputs& outputs,
               Clock::time_point began) {
  const ResultsBasis basis = start.run.basis();
  const std::string& report_name = start.run.line.common.report;
  const RunRecord record{basis, context, outputs, began, start.run.digests};
  const auto report_text = [&] { return json_text(report(record), 2) + "\n"; };
  if (report_name != "-") {
    outputs.add(report_name, [&](const std::string& path) { text_writer(report_text())(path); });
  }
  NewFolders folders;
  for (const Outputs::File& file : outputs.files) {
    if (is_below(file.path, start.planned.folders)) {
      folders.make(fs::path(file.path).lexically_normal().parent_path());
    }
  }
  write_case(start.planned.files, start.earlier, record, context);
  if (start.run.program.committed) start.run.program.committed();
  if (report_name == "-") print(report_text());
}

void log_end(Console& console, const Outputs& outputs, double seconds) {
  std::vector<std::string> names, metrics;
  for (const Outputs::File& file : outputs.files) names.push_back(file.path);
  for (const Outputs::Text& metric : outputs.metrics) {
    const std::string figure = outputs.figure(metric.name);
    metrics.push_back(metric.name + " " + (figure.empty() ? "n/a" : figure));
  }
  if (!metrics.empty()) console.log(LogLevel::kInfo, config::join(metrics));
  constexpr size_t kNamed = 6;
  const size_t further = names.size() > kNamed ? names.size() - kNamed : 0;
  names.resize(names.size() - further);
  std::string what = names.empty() ? "done" : "wrote " + config::join(names);
  if (further > 0) what += " and " + std::to_string(further) + " more files";
  console.log(LogLevel::kInfo, what + formatted(" in %.1f s", seconds));
}

/// Returns the rows with their cells in columns, two spaces apart.
std::string aligned(std::vector<std::vector<std::string>> table) {
  for (auto& row : table) std::transform(row.begin(), row.end(), row.begin(), escaped);
  std::vector<size_t> widths;
  for (const auto& row : table) {
    widths.resize(std::max(widths.size(), row.size()), 0);
    for (size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : table) {
    for (size_t i = 0; i < row.size(); ++i) {
      text += row[i];
      if (i + 1 < row.size()) text.append(widths[i] - row[i].size() + 2, ' ');
    }
    text += '\n';
  }
  return text;
}

/// --dry-run: the names of the outputs, what the program says of its cases, and the exit code that
/// the run would have.
int show_plan(const Start& start, Console& console, const Context& context) {
  for (const std::string& path : start.planned.folders) {
    console.log(LogLevel::kInfo, "would write " + path);
  }
  for (const CaseOutput& output : start.planned.files.outputs) {
    console.log(LogLevel::kInfo, "would write " + output.path);
  }
  if (!start.run.program.plan) return 0;
  const Plan plan = start.run.program.plan(context, start.run);
  console.finish();
  print(aligned(plan.table));
  for (const std::string& problem : plan.problems) console.log(LogLevel::kError, problem);
  if (!plan.problems.empty()) {
    throw Error(plan.code,
                "the run would end with this exit code: " + std::to_string(plan.problems.size()) +
                    (plan.problems.size() == 1 ? " problem" : " problems") + ", named above");
  }
  for (const std::string& note : plan.notes) context.info(note);
  const auto free = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
  if (plan.memory_bytes > 0) {
    context.log(plan.memory_bytes > free ? LogLevel::kWarning : LogLevel::kInfo,
                "memory: " + bytes_text(plan.memory_bytes) + " for the largest case, " +
                    bytes_text(free) + " are free");
  }
  return 0;
}

/// Says why a result is rejected: an error, unless the run ends with 0. Returns the exit code.
int reject(const std::string& text, ExitCode code, Console& console) {
  console.log(code == ExitCode::kDone ? LogLevel::kWarning : LogLevel::kError, text);
  return static_cast<int>(code);
}

int run_and_write(const Start& start, Console& console, const std::atomic<int>* stop) {
  const auto began = Clock::now();
  const CommonFlags& flags = start.run.line.common;
  const ChosenDevice chosen = choose_run_device(flags.device, start.run.program.cpu_alone());
  Context context;
  context.device = chosen.device;
  context.more_devices = chosen.more_devices;
  context.threads = choose_threads(flags.threads);
  context.seed = flags.seed;
  context.stop = stop;
  context.digest_sink = start.run.digests.sink();
  context.log_sink = [&](LogLevel level, std::string_view text) { console.log(level, text); };
  context.progress_sink = [&](double part, std::string_view text) { console.progress(part, text); };
  const std::string action = flags.dry_run ? "would run on " : "running on ";
  console.log(LogLevel::kInfo, action + describe(context.device, context.threads) + " (" +
                                   chosen.reason + "), version " + version());
  start_threads(context.threads);
  if (flags.dry_run) return show_plan(start, console, context);
  // A card needs a third of a second until it can be used: time to read the model and the image.
  // The first work on the device finds again if this fails.
  const auto waking = std::async(
      context.device.is_cuda() ? std::launch::async | std::launch::deferred : std::launch::deferred,
      [device = context.device] { wait_for(device); });
  NewFolders folders;
  for (const std::string& folder : start.planned.folders) folders.make(folder);
  const double starting = seconds_since(began);
  Outputs outputs = start.run.program.run(context, start.run).step("starting", starting);
  console.finish();
  context.throw_if_stopped("stopped by a signal; no output was written");
  write_all(start, context, outputs, began);
  // The report may have stdout for itself.
  if (!flags.quiet && flags.report != "-") print(aligned(outputs.table));
  const bool is_rejected = outputs.status_word == "rejected";
  const ExitCode code = is_rejected
                            ? outputs.rejected_code.value_or(start.run.program.reject_code())
                            : ExitCode::kDone;
  log_fields().code = static_cast<int>(code);
  log_end(console, outputs, seconds_since(began));
  if (!is_rejected) return 0;
  return reject("result rejected: " + outputs.status_reason, code, console);
}

/// The exit code is that of the run which made the outputs.
int skip(const EarlierCase& earlier, const Program& program, Console& console) {
  console.log(LogLevel::kInfo, earlier.what + "; nothing to do (--skip-existing)");
  if (!earlier.is_rejected) return 0;
  return reject("result rejected by the run that made it: " + earlier.reason, program.reject_code(),
                console);
}

PlannedOutputs planned_of(const Program& program, const CommandLine& line,
                          const std::vector<GivenPath>& paths) {
  std::vector<std::string> companions;
  if (program.companions) companions = program.companions();
  return planned_outputs(line, paths, companions, program.by_case());
}

/// Tells whether the report of a list, which has no record, may be replaced by a run that goes on.
bool goes_on_with_report(const Program& program, const CommonFlags& flags) {
  return program.by_case() && flags.skip_existing &&
         report_status(flags.report, program.info.name).has_value();
}

/// The report of a run that failed with `failure`, if it is wanted and may be written.
void write_failure_report(const CheckedRun& run, const Failure& failure, double seconds,
                          Console& console) {
  const CommonFlags& flags = run.line.common;
  const std::string& path = flags.report;
  if (path.empty() || flags.dry_run || failure.stopped || failure.code == ExitCode::kUsage) return;
  const std::string text = json_text(failure_report(run.basis(), failure, seconds), 2) + "\n";
  // The list may be too broken to tell whether it names this file, so that --force is not enough.
  const auto status = report_status(path, run.program.info.name);
  const bool may_replace =
      status && (flags.force || status == kFailed || goes_on_with_report(run.program, flags));
  if (path != "-" && !may_replace && !stamp_of(path).empty()) return;
  try {
    if (path == "-") return print(text);
    write_file(path, text);
  } catch (const Error& error) {
    console.log(LogLevel::kWarning, error.what());
  }
}

/// A run whose names do not clash; `listed` are the inputs that `run` refers to.
int run_planned(const CheckedRun& run, const PlannedOutputs& planned, ListedInputs& listed,
                Console& console, const std::atomic<int>* stop) {
  const Program& program = run.program;
  const CommonFlags& flags = run.line.common;
  check_inputs(run.paths);
  if (program.listed_inputs) {
    listed = program.listed_inputs();
    refuse_replacing(listed.inputs, planned);
  }
  EarlierCase earlier = look_at_case(planned.files, run.basis(), run.digests);
  // Of a run over a list the report alone is written here, anew each time.
  if (goes_on_with_report(program, flags)) earlier.state = EarlierCase::State::kCompute;
  if (earlier.state == EarlierCase::State::kOther) throw OutputError(earlier.what);
  if (earlier.state == EarlierCase::State::kSkip) return skip(earlier, program, console);
  check_outputs(planned);
  return run_and_write({run, planned, earlier}, console, stop);
}

int run_checked(const Program& program, const CommandLine& line, Console& console,
                const std::atomic<int>* stop) {
  const auto began = Clock::now();
  const CommonFlags& flags = line.common;
  const std::vector<GivenPath> paths = given_paths(line);
  check_usage(line);
  if (program.check) program.check(given_flags(line));
  if (flags.no_sidecar && (program.by_case() || flags.skip_existing)) {
    throw UsageError(
        "--no-sidecar: without their records the cases of a list, and outputs that are to be "
        "skipped, cannot be told apart; leave it out");
  }
  const PlannedOutputs planned = planned_of(program, line, paths);
  check_distinct(flag_inputs(paths, line, program.by_case()), planned);
  ListedInputs listed;
  InputDigests digests;
  const CheckedRun run{program, line, paths, listed, digests};
  try {
    return run_planned(run, planned, listed, console, stop);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    write_failure_report(run, failure, seconds_since(began), console);
    throw;
  }
}

int report_failure(Failure failure, const std::string& app, Console* console, int stop_code) {
  std::optional<Console> spare;
  if (console == nullptr) console = &spare.emplace(ConsoleSettings{app});
  if (failure.stopped) {
    console->log(LogLevel::kWarning, failure.chain.front());
    return stop_code != 0 ? stop_code : static_cast<int>(failure.code);
  }
  if (!failure.expected) failure.chain.front() = "unexpected: " + failure.chain.front();
  log_fields().code = static_cast<int>(failure.code);
  console->error(failure.chain);
  return static_cast<int>(failure.code);
}

}  // namespace

ResultsBasis CheckedRun::basis(const std::vector<RunInput>& further) const {
  ResultsBasis basis{program, line, flag_inputs(paths, line, program.by_case()),
                     listed.order_matters};
  for (const auto* inputs : {&listed.inputs, &further}) {
    basis.inputs.insert(basis.inputs.end(), inputs->begin(), inputs->end());
  }
  return basis;
}

std::string command_of(const CheckedRun& run) {
  return run.line.text;
}

int run_program(const Program& program, int argc, char** argv) {
  const std::atomic<int>* stop = nullptr;
  std::optional<Console> console;
  open_standard_streams();
  catch_terminate();
  prepare_for_limits();
  // 3D Slicer names a folder of libraries with it, which ITK would load into this process.
  ::unsetenv("ITK_AUTOLOAD_PATH");
  try {
    CommandLine line;
    parse_command_line(program, argc, argv, line);
    if (const auto text = information(program, line)) {
      print(*text);
      return 0;
    }
    const CommonFlags& flags = line.common;
    if (!flags.log_file.empty()) {
      const std::vector<GivenPath> paths = given_paths(line);
      check_log_file(line, paths, planned_of(program, line, paths));
    }
    console.emplace(ConsoleSettings{program.info.name,
                                    choose_log_level(flags.quiet, line.verbosity), flags.log_format,
                                    flags.progress, flags.log_file});
    apply_config(program, line);
    if (const auto text = configuration(program, line)) {
      print(*text);
      return 0;
    }
    stop = catch_signals();
    return run_checked(program, line, *console, stop);
  } catch (...) {
    const Failure failure = failure_of(std::current_exception());
    return report_failure(failure, program.info.name, console ? &*console : nullptr,
                          stop != nullptr ? stop->load() : 0);
  }
}

}  // namespace larch::detail
