// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/run_app.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <optional>
#include <set>

#include "larch/app/build_info.h"
#include "larch/app/command_line.h"
#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/app/outputs/file_set.h"
#include "larch/app/outputs/paths_check.h"
#include "larch/app/pages/pages.h"
#include "larch/app/records/existing.h"
#include "larch/app/records/folder_record.h"
#include "larch/app/records/output_record.h"
#include "larch/app/records/sidecar.h"
#include "larch/app/records/sidecar_commit.h"
#include "larch/app/resources.h"
#include "larch/app/signals.h"
#include "larch/config/json_text.h"
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
  const ListedInputs& listed;
  InputDigests& digests;
  SeenOutputs& seen;
  bool replace;

  /// With --force it does not matter what is replaced, and without --skip-existing nothing is.
  const SeenOutputs* may_replace_only() const { return line.common.force ? nullptr : &seen; }
};

ResultsBasis basis_of(const Run& run, const std::vector<RunInput>& further) {
  ResultsBasis basis{run.program, run.line, flag_inputs(run.paths, run.line),
                     run.listed.order_matters};
  for (const auto* inputs : {&run.listed.inputs, &further}) {
    basis.inputs.insert(basis.inputs.end(), inputs->begin(), inputs->end());
  }
  return basis;
}

/// Writes a file under its temporary name; what the sidecars tell of it, if they are `wanted`.
config::Json write_file(FileSet& files, const Outputs::File& file, bool wanted) {
  std::string temporary;
  if (file.filled) {
    temporary = file.filled->temporary();
    files.take(file.filled);
  } else {
    files.write(file.path, [&](const std::string& path) {
      temporary = path;
      file.writer(path);
    });
  }
  return wanted && !is_stream(file.path) ? content_record(temporary) : config::Json();
}

/// The sidecars of the files that have a role, without their text if none is `wanted`.
std::vector<Sidecar> file_sidecars(
    const RunRecord& record, bool wanted,
    const std::function<std::string(const Outputs::File&)>& role_of) {
  std::vector<Sidecar> sidecars;
  config::Json json;
  const std::vector<Outputs::File>& files = record.outputs.files;
  for (auto file = files.begin(); file != files.end(); ++file) {
    const std::string role = role_of(*file);
    if (role.empty() || is_stream(file->path)) continue;
    Sidecar one{file->path, sidecar_name(file->path)};
    std::vector<std::string> companions;
    one.names.push_back(fs::path(file->path).filename().string());
    for (auto next = file + 1; next != files.end() && next->companion; ++next) {
      companions.push_back(next->path);
      one.names.push_back(fs::path(next->path).filename().string());
    }
    if (wanted) {
      if (json.is_null()) json = sidecar(record);  // reads the inputs
      json["Larch"]["Outputs"] = outputs_of(record, *file, role, companions);
      one.text = json_text(json, 2) + "\n";
    }
    sidecars.push_back(one);
  }
  return sidecars;
}

/// Hashes the inputs beside what is written and hashed of the outputs. What cannot be read is left
/// for the sidecars to find.
std::future<void> start_digests(const Run& run, const ResultsBasis& basis) {
  return std::async(std::launch::async | std::launch::deferred, [&] {
    try {
      for (const RunInput& input : basis.inputs) {
        if (input.text.empty()) run.digests.record(input.path);
      }
    } catch (const std::exception&) {  // NOLINT(bugprone-empty-catch)
    }
  });
}

/// Writes outputs, sidecars and the report, all or none of them.
void write_all(const Run& run, const Context& context, const Outputs& outputs,
               Clock::time_point start) {
  NewFolders folders;
  FileSet files(run.replace, context);
  const bool no_sidecar = run.line.common.no_sidecar;
  std::map<std::string, config::Json> written;
  const ResultsBasis basis = basis_of(run, outputs.inputs);
  std::future<void> digests;
  if (!no_sidecar) digests = start_digests(run, basis);
  for (const Outputs::File& file : outputs.files) {
    make_folder_for(file.path, run.planned.folders, folders);
    written[file.path] = write_file(files, file, !no_sidecar);
  }
  const RunRecord record{basis, context, outputs, seconds_since(start), run.digests, written};
  if (digests.valid()) digests.wait();
  std::vector<Sidecar> sidecars = file_sidecars(
      record, !no_sidecar,
      [&](const Outputs::File& file) { return role_of_output(run.paths, file.path); });
  for (const std::string& folder : run.planned.folders) {
    if (run.planned.by_case) continue;
    sidecars.push_back({folder, folder_sidecar_name(folder), "", /*may_hold_files=*/true, {}});
    if (!no_sidecar) sidecars.back().text = json_text(folder_sidecar(record, folder), 2) + "\n";
  }
  const std::string& report_name = run.line.common.report;
  const std::string text = report_name.empty() ? "" : json_text(report(record), 2) + "\n";
  if (!report_name.empty() && report_name != "-") files.write(report_name, text_writer(text));
  commit_with_sidecars(files, sidecars, run.program.info.name, run.replace, context,
                       run.may_replace_only());
  if (run.planned.by_case && !no_sidecar) {
    for (const std::string& folder : run.planned.folders) {
      write_folder_record(folder, sidecar(record), context);
    }
  }
  if (report_name == "-") print(text);
}

CaseFiles names_of(const Outputs& outputs) {
  CaseFiles names;
  for (const Outputs::File& file : outputs.files) {
    if (file.companion) {
      names.companions.push_back(file.path);
    } else {
      names.outputs.push_back({file.path, file.role});
    }
  }
  return names;
}

EarlierOutputs earlier_of_case(const Run& run, const CaseFiles& files,
                               const std::vector<RunInput>& inputs) {
  for (const RunInput& input : inputs) {
    if (input.text.empty()) run.digests.note(input.path);
  }
  std::vector<RecordedOutput> recorded;
  recorded.reserve(files.outputs.size());
  for (const CaseOutput& output : files.outputs) {
    recorded.push_back({output.path, RecordedOutput::Kind::kFile, output.role});
  }
  return earlier_outputs(recorded, files.companions, basis_of(run, inputs), run.digests);
}

/// The files of one case and their sidecars, all or none.
void write_case(const Run& run, const Context& context, const Outputs& outputs, double seconds) {
  Context to_the_end = context;
  to_the_end.stop = nullptr;
  FileSet files(run.replace, to_the_end);
  const bool no_sidecar = run.line.common.no_sidecar;
  std::map<std::string, config::Json> written;
  for (const Outputs::File& file : outputs.files) {
    written[file.path] = write_file(files, file, !no_sidecar);
  }
  const ResultsBasis basis = basis_of(run, outputs.inputs);
  const RunRecord record{basis, context, outputs, seconds, run.digests, written};
  const std::vector<Sidecar> sidecars =
      file_sidecars(record, !no_sidecar, [](const Outputs::File& file) { return file.role; });
  try {
    commit_with_sidecars(files, sidecars, run.program.info.name, run.replace, to_the_end,
                         run.may_replace_only());
  } catch (const OutputAppeared&) {
    if (earlier_of_case(run, names_of(outputs), outputs.inputs).state !=
        EarlierOutputs::State::kSkip) {
      throw;
    }
    context.info("'" + outputs.files.front().path +
                 "' was written by another run meanwhile, from the same inputs; it stays");
  }
}

/// Said once for all of them.
std::string orphans_found(const std::vector<std::string>& orphans) {
  if (orphans.size() == 1) {
    return "'" + orphans[0] +
           "' is the sidecar of an output that is not there, as an interrupted run leaves it; it "
           "may be replaced";
  }
  return "'" + orphans[0] + "' and " + std::to_string(orphans.size() - 1) +
         " more files are sidecars of outputs that are not there, as an interrupted run leaves "
         "them; they may be replaced";
}

/// What a run over many cases asks the skeleton for.
CaseWriter case_writer(const Run& run, const Context& context) {
  CaseWriter cases;
  cases.require_free = [&](const CaseFiles& files) {
    if (run.replace) return;
    std::vector<std::string> outputs;
    for (const CaseOutput& output : files.outputs) outputs.push_back(output.path);
    const std::vector<std::string> orphans = orphans_of(outputs);
    const std::set<std::string> may_go(orphans.begin(), orphans.end());
    std::vector<std::string> names = outputs;
    names.insert(names.end(), files.companions.begin(), files.companions.end());
    for (const std::string& path : outputs) {
      if (!may_go.contains(sidecar_name(path))) names.push_back(sidecar_name(path));
    }
    require_free(names);
    if (!orphans.empty()) context.info(orphans_found(orphans));
  };
  cases.earlier = [&](const CaseFiles& files, const std::vector<RunInput>& inputs) {
    for (const CaseOutput& output : files.outputs) run.seen.note(output.path);
    for (const std::string& path : files.companions) run.seen.note(path);
    return earlier_of_case(run, files, inputs);
  };
  cases.write = [&](const Outputs& outputs, double seconds) {
    write_case(run, context, outputs, seconds);
  };
  return cases;
}

/// A figure for people, from JSON: whole numbers as they are, others with six digits.
std::string rounded_figure(const std::string& json) {
  char* end = nullptr;
  const double value = std::strtod(json.c_str(), &end);
  if (json.empty() || *end != '\0' || !std::isfinite(value)) return json;
  char text[32];
  const bool is_whole = std::round(value) == value && std::abs(value) < 1e15;
  std::snprintf(text, sizeof text, is_whole ? "%.0f" : "%.6g", value);
  return text;
}

void log_end(Console& console, const Outputs& outputs, double seconds) {
  std::vector<std::string> names, metrics;
  for (const Outputs::File& file : outputs.files) names.push_back(file.path);
  for (const Outputs::Text& metric : outputs.metrics)
    metrics.push_back(metric.name + " " + rounded_figure(metric.text));
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
  const CaseWriter cases = case_writer(run, context);
  if (flags.dry_run) return show_plan(run, console, context, cases);
  NewFolders folders;
  for (const std::string& folder : run.planned.folders) folders.make(folder);
  for (const RunInput& input : basis_of(run, {}).inputs) run.digests.note(input.path);
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
  return static_cast<int>(outputs.rejected_code);
}

/// The exit code is that of the run which made the outputs.
int skip(const EarlierOutputs& earlier, Console& console) {
  console.log(LogLevel::kInfo, earlier.what + "; nothing to do (--skip-existing)");
  if (!earlier.is_rejected) return 0;
  console.error({"result rejected by the run that made it: " + earlier.reason});
  return static_cast<int>(ExitCode::kRejected);
}

int run_checked(const Program& program, const CommandLine& line, Console& console,
                const std::atomic<int>* stop) {
  const std::vector<GivenPath> paths = given_paths(line);
  check_usage(line, paths);
  if (program.check) program.check(given_flags(line));
  std::vector<std::string> companions;
  if (program.companions) companions = program.companions();
  PlannedOutputs planned = planned_outputs(line, paths, companions);
  planned.by_case = program.by_case && program.by_case();
  check_inputs(paths);
  check_distinct(paths, planned);
  const CommonFlags& flags = line.common;
  const bool needs_list = program.listed_inputs && (flags.skip_existing || !flags.dry_run);
  const ListedInputs listed = needs_list ? program.listed_inputs() : ListedInputs{};
  InputDigests digests;
  SeenOutputs seen;
  const Run run{program, line,    paths, planned,
                listed,  digests, seen,  flags.force || flags.skip_existing.has_value()};
  if (flags.skip_existing && flags.no_sidecar) {
    console.log(LogLevel::kWarning,
                "with --no-sidecar a later --skip-existing cannot tell what made these outputs");
  }
  if (!planned.by_case) {
    for (const std::string& path : planned.main) seen.note(path);
    const EarlierOutputs earlier = earlier_outputs(recorded_outputs(planned, paths, flags.report),
                                                   companions, basis_of(run, {}), digests);
    if (earlier.state == EarlierOutputs::State::kOther) throw OutputError(earlier.what);
    if (earlier.state == EarlierOutputs::State::kSkip) return skip(earlier, console);
  }
  const std::vector<std::string> orphans =
      run.replace ? std::vector<std::string>{} : orphans_of(planned.main);
  check_outputs(planned, run.replace, orphans);
  if (!orphans.empty()) console.log(LogLevel::kInfo, orphans_found(orphans));
  return run_and_write(run, console, stop);
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
