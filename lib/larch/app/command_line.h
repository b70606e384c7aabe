// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/app/outputs/paths.h"
#include "larch/app/program.h"
#include "larch/config/flags.h"

namespace larch::detail {

enum class LogFormat { kText, kJson };
constexpr auto enum_names(LogFormat*) {
  return std::to_array<EnumName<LogFormat>>(
      {{LogFormat::kText, "text"}, {LogFormat::kJson, "json"}});
}

enum class ProgressMode { kAuto, kBar, kLines, kSlicer, kNone };
constexpr auto enum_names(ProgressMode*) {
  return std::to_array<EnumName<ProgressMode>>({{ProgressMode::kAuto, "auto"},
                                                {ProgressMode::kBar, "bar"},
                                                {ProgressMode::kLines, "lines"},
                                                {ProgressMode::kSlicer, "slicer"},
                                                {ProgressMode::kNone, "none"}});
}

enum class Shell { kBash };
constexpr auto enum_names(Shell*) {
  return std::to_array<EnumName<Shell>>({{Shell::kBash, "bash"}});
}

/// The flags that every executable has.
struct CommonFlags {
  std::vector<InputFile> configs;
  std::string device;
  std::optional<int> threads;
  uint64_t seed = 0;
  bool skip_existing = false, force = false, dry_run = false, quiet = false, verbose = false;
  std::string log_file, report;
  LogFormat log_format = LogFormat::kText;
  ProgressMode progress = ProgressMode::kAuto;
  bool no_sidecar = false, print_config = false, print_schema = false, slicer_xml = false;
  std::optional<Shell> completion;
  bool version = false, help = false, help_config = false, manual_page = false;

  template <class F>
  void fields(F&& f) {
    f(Field{"config,c", configs, "JSON configuration; - is standard input; repeatable, later wins"}
          .endings(".json"),
      Field{"device,d", device,
            "auto, cpu, cuda, cuda:N or cuda:all (default: LARCH_DEVICE, else auto)"},
      Field{"threads,t", threads,
            "threads (default: LARCH_THREADS, else SLURM_CPUS_PER_TASK, else all allowed)", 1,
            4096},
      Field{"seed", seed, "seed of all random choices"},
      Field{"force,f", force, "replace outputs that exist"},
      Field{"skip-existing", skip_existing,
            "do nothing for what is there already, made from the same inputs and settings"},
      Field{"dry-run,n", dry_run, "check everything, say what would run, and stop"},
      Field{"quiet,q", quiet, "only warnings and errors"},
      Field{"verbose,v", verbose, "more to read; may be repeated"},
      Field{"log-file", log_file, "append the log, with times, to this file as well"},
      Field{"log-format", log_format, "lines for people or one JSON object per line"},
      Field{"progress", progress, "how progress is shown; auto: a bar on a terminal, else lines"},
      Field{"report", report, "write metrics, status, outputs and seconds as JSON; - is stdout"},
      Field{"no-sidecar", no_sidecar,
            "write no record <output>.json beside the output; one image only"},
      Field{"print-config", print_config, "print the effective configuration and stop"},
      Field{"print-schema", print_schema, "print the JSON Schema of the configuration and stop"},
      Field{"slicer-xml", slicer_xml, "print the description for 3D Slicer and stop"},
      Field{"manual-page", manual_page, "print the manual page, for man -l, and stop"},
      Field{"completion", completion, "print a completion script for this shell and stop"},
      Field{"version", version, "print the version and stop; with --json, the build as JSON"},
      Field{"help,h", help, "print this and stop"},
      Field{"help-config", help_config, "print every configuration key and stop"});
  }
};

/// A parsed command line. The leaves refer to the objects of the program and to `common`.
struct CommandLine {
  CommonFlags common;
  std::vector<config::Leaf> app, config, shared;
  int verbosity = 0;  ///< how often -v was given
  bool json = false;  ///< --json, which only --version has
  std::string text;   ///< the whole line, quoted for a shell

  CommandLine() = default;
  CommandLine(const CommandLine&) = delete;
  CommandLine& operator=(const CommandLine&) = delete;
};

/// Fills `line` with what stands on the command line, and sets the flags of the app and the common
/// ones; the configuration is left to apply_config. Throws UsageError.
void parse_command_line(const Program& program, int argc, char** argv, CommandLine& line);

/// Returns the flags of a parsed line that were given.
GivenFlags given_flags(const CommandLine& line);

/// Defaults < files of --config in their order < flags. Throws UsageError.
void apply_config(const Program& program, const CommandLine& line);

}  // namespace larch::detail
