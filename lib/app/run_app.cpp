// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"

#include <chrono>
#include <cstdio>
#include <filesystem>
#include <optional>

#include "larch/app/build_info.h"
#include "larch/app/command_line.h"
#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/app/file_set.h"
#include "larch/app/folder_record.h"
#include "larch/app/json_text.h"
#include "larch/app/pages.h"
#include "larch/app/paths_check.h"
#include "larch/app/resources.h"
#include "larch/app/shared_folder.h"
#include "larch/app/sidecar.h"
#include "larch/app/signals.h"
#include "larch/config/suggest.h"
#include "larch/core/parallel.h"

namespace larch::detail {
namespace {

using Clock = std::chrono::steady_clock;

double seconds_since(Clock::time_point start) {
  return std::chrono::duration<double>(Clock::now() - start).count();
}

/// Results on stdout count as an output: a full disk behind it is an error too.
void print(const std::string& text) {
  std::fwrite(text.data(), 1, text.size(), stdout);
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    throw OutputError("cannot write to standard output; is the disk behind it full?");
  }
}

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
  if (flags.completion) return bash_completion(program, line);
  return std::nullopt;
}

/// The same for the pages that show values, after the configuration is read.
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

/// Folders below an OutputDir are made as they are needed; others must exist.
void make_folder_for(const std::string& file, const std::vector<std::string>& output_folders,
                     NewFolders& folders) {
  for (const std::string& folder : output_folders) {
    const fs::path below =
        fs::path(file).lexically_normal().lexically_relative(fs::path(folder).lexically_normal());
    if (!below.empty() && *below.begin() != "..") folders.make(fs::path(file).parent_path());
  }
}

struct Run {
  const Program& program;
  const CommandLine& line;
  const std::vector<GivenPath>& paths;
  const PlannedOutputs& planned;
  bool replace;
};

/// Adds this run to larch.json of a folder into which other runs write at the same time.
void write_folder_record(const std::string& folder, const RunRecord& record) {
  const FolderLock lock(folder, kLockSeconds);
  const bool has_lock = lock.state() != FolderLock::State::kBusy;
  const auto warn = [&](const std::string& text) { record.context.warn(text); };
  const FolderRecord united = folder_record(folder, sidecar(record), has_lock, warn);
  if (!has_lock) {
    warn("another run holds the lock of '" + folder + "' and does not let it go: the record of " +
         "this run is '" + united.path + "', and the next run into the folder takes it over");
  }
  Context to_the_end = record.context;
  to_the_end.stop = nullptr;
  FileSet files(/*replace=*/true, to_the_end);
  files.write(united.path, text_writer(json_text(united.json, 2) + "\n"));
  files.commit();
  std::error_code ignored;
  for (const std::string& part : united.taken_in) fs::remove(part, ignored);
}

/// Writes outputs, sidecars and the report, all or none of them.
void write_all(const Run& run, const Context& context, const Outputs& outputs,
               Clock::time_point start) {
  NewFolders folders;
  FileSet files(run.replace, context);
  for (const Outputs::File& file : outputs.files) {
    make_folder_for(file.path, run.planned.folders, folders);
    files.write(file.path, file.writer);
  }
  const RunRecord record{
      run.program,         run.line, context, outputs, input_names(run.paths, run.line, outputs),
      seconds_since(start)};
  if (!run.line.common.no_sidecar) {
    std::vector<std::string> names;
    for (const Outputs::File& file : outputs.files) {
      for (const GivenPath& given : run.paths) {
        if (is_output(given.role) && given.path == file.path && !is_stream(file.path))
          names.push_back(sidecar_name(file.path));
      }
    }
    for (const std::string& folder : run.planned.folders) {
      if (!run.planned.by_case) names.push_back(folder_sidecar_name(folder));
    }
    const std::string text = names.empty() ? "" : json_text(sidecar(record), 2) + "\n";
    for (const std::string& name : names) files.write(name, text_writer(text));
  }
  const std::string& report_name = run.line.common.report;
  const std::string text = report_name.empty() ? "" : json_text(report(record), 2) + "\n";
  if (!report_name.empty() && report_name != "-") files.write(report_name, text_writer(text));
  files.commit();
  if (run.planned.by_case && !run.line.common.no_sidecar) {
    for (const std::string& folder : run.planned.folders) write_folder_record(folder, record);
  }
  if (report_name == "-") print(text);
}

/// The files of one case and their sidecars, all or none.
void write_case(const Run& run, const Context& context, const Outputs& outputs, double seconds) {
  Context to_the_end = context;
  to_the_end.stop = nullptr;
  FileSet files(run.replace, to_the_end);
  for (const Outputs::File& file : outputs.files) files.write(file.path, file.writer);
  if (!run.line.common.no_sidecar) {
    const RunRecord record{
        run.program, run.line, context, outputs, input_names(run.paths, run.line, outputs),
        seconds};
    const std::string text = json_text(sidecar(record), 2) + "\n";
    for (const Outputs::File& file : outputs.files) {
      if (!file.companion && !is_stream(file.path))
        files.write(sidecar_name(file.path), text_writer(text));
    }
  }
  files.commit();
}

void log_end(Console& console, const Outputs& outputs, double seconds) {
  std::vector<std::string> names, metrics;
  for (const Outputs::File& file : outputs.files) names.push_back(file.path);
  for (const Outputs::Text& metric : outputs.metrics)
    metrics.push_back(metric.name + " " + metric.text);
  if (!metrics.empty()) console.log(LogLevel::kInfo, config::join(metrics));
  char time[32];
  std::snprintf(time, sizeof time, "%.1f s", seconds);
  constexpr size_t kNamed = 6;
  const size_t further = names.size() > kNamed ? names.size() - kNamed : 0;
  names.resize(names.size() - further);
  std::string what = names.empty() ? "done" : "wrote " + config::join(names);
  if (further > 0) what += " and " + std::to_string(further) + " more files";
  console.log(LogLevel::kInfo, what + " in " + time);
}

/// --dry-run: the names of the outputs, what the program says of its cases, and the exit code that
/// the run would have.
int show_plan(const Run& run, Console& console, const Context& context, const CaseWriter& cases) {
  for (const auto* group : {&run.planned.folders, &run.planned.main}) {
    for (const std::string& path : *group) console.log(LogLevel::kInfo, "would write " + path);
  }
  if (!run.program.plan) return 0;
  const Plan plan = run.program.plan(context, cases);
  console.finish();
  print(aligned(plan.table));
  for (const std::string& problem : plan.problems) console.log(LogLevel::kError, problem);
  if (!plan.problems.empty()) {
    throw Error(plan.code,
                "the run would end with this exit code: " + std::to_string(plan.problems.size()) +
                    (plan.problems.size() == 1 ? " problem" : " problems") + ", named above");
  }
  log_plan(plan, context);
  return 0;
}

int run_and_write(const Run& run, Console& console, const std::atomic<int>* stop) {
  const auto start = Clock::now();
  const CommonFlags& flags = run.line.common;
  const ChosenDevice chosen = choose_run_device(flags.device);
  Context context;
  context.device = chosen.device;
  context.threads = choose_threads(flags.threads);
  context.seed = flags.seed;
  context.stop = stop;
  context.log_sink = [&](LogLevel level, std::string_view text) { console.log(level, text); };
  context.progress_sink = [&](double part, std::string_view text) { console.progress(part, text); };
  const std::string action = flags.dry_run ? "would run on " : "running on ";
  console.log(LogLevel::kInfo, action + describe(context.device, context.threads) + " (" +
                                   chosen.reason + "), version " + version());
  start_threads(context.threads);
  CaseWriter cases;
  cases.skip_existing = flags.skip_existing;
  cases.require_free = [&](std::vector<std::string> outputs) {
    if (run.replace) return;
    const size_t count = outputs.size();
    for (size_t i = 0; i < count; ++i) outputs.push_back(sidecar_name(outputs[i]));
    require_free(outputs);
  };
  cases.write = [&](const Outputs& outputs, double seconds) {
    write_case(run, context, outputs, seconds);
  };
  if (flags.dry_run) return show_plan(run, console, context, cases);
  NewFolders folders;
  for (const std::string& folder : run.planned.folders) folders.make(folder);
  const Outputs outputs = run.program.run(context, cases);
  console.finish();
  if (context.stop_requested()) {
    throw Stopped("stopped by a signal; no output was written",
                  static_cast<ExitCode>(stop->load()));
  }
  write_all(run, context, outputs, start);
  log_end(console, outputs, seconds_since(start));
  if (outputs.status_word != "rejected") return 0;
  console.error({"result rejected: " + outputs.status_reason});
  return static_cast<int>(ExitCode::kRejected);
}

int run_checked(const Program& program, const CommandLine& line, Console& console,
                const std::atomic<int>* stop) {
  const std::vector<GivenPath> paths = given_paths(line);
  check_usage(line, paths);
  if (program.check) program.check();
  std::vector<std::string> companions;
  if (program.companions) companions = program.companions();
  PlannedOutputs planned = planned_outputs(line, paths, companions);
  planned.by_case = program.by_case && program.by_case();
  check_inputs(paths);
  check_distinct(paths, planned);
  const OutputState state = check_outputs(line.common, planned);
  if (state == OutputState::kSkip) {
    console.log(LogLevel::kInfo, "all outputs exist; nothing to do (--skip-existing)");
    return 0;
  }
  return run_and_write({program, line, paths, planned, state == OutputState::kReplace}, console,
                       stop);
}

/// Before the console opens it.
void refuse_log_file(const Program& program, const CommandLine& line) {
  if (line.common.log_file.empty()) return;
  const std::vector<GivenPath> paths = given_paths(line);
  std::vector<std::string> companions;
  if (program.companions) companions = program.companions();
  check_log_file(line, paths, planned_outputs(line, paths, companions));
}

int report_failure(Failure failure, const std::string& app, Console* console, int stop_code) {
  std::optional<Console> spare;
  if (console == nullptr) console = &spare.emplace(ConsoleSettings{app});
  if (failure.stopped) {
    console->log(LogLevel::kWarning, failure.chain.front());
    return stop_code != 0 ? stop_code : static_cast<int>(failure.code);
  }
  if (!failure.expected) failure.chain.front() = "unexpected: " + failure.chain.front();
  console->error(failure.chain);
  return static_cast<int>(failure.code);
}

}  // namespace

int run_program(const Program& program, int argc, char** argv) {
  const std::atomic<int>* stop = nullptr;
  std::optional<Console> console;
  catch_terminate();
  prepare_for_limits();
  try {
    CommandLine line;
    parse_command_line(program, argc, argv, line);
    if (const auto text = information(program, line)) {
      print(*text);
      return 0;
    }
    const CommonFlags& flags = line.common;
    refuse_log_file(program, line);
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
