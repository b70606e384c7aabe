// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// A small executable on the skeleton, for the tests of the skeleton: it copies a text with
// repetitions, or each text of a list, and fails in every way that it is told to.
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"
#include "larch/cases/plan_cases.h"
#include "larch/cases/run_cases.h"
#include "larch/files/file.h"
#include "larch/io/table/case_list.h"

namespace larch {
namespace {

enum class Letters { kAsIs, kUpper, kLower };
constexpr auto enum_names(Letters*) {
  return std::to_array<EnumName<Letters>>(
      {{Letters::kAsIs, "as-is"}, {Letters::kUpper, "upper"}, {Letters::kLower, "lower"}});
}

enum class Fail {
  kNo,
  kBug,
  kUsage,
  kInput,
  kDevice,
  kMemory,
  kBadAlloc,
  kOutput,
  kResult,
  kRejected,
  kStopped,
  kNested,
  kWriter,
  kNothing
};
constexpr auto enum_names(Fail*) {
  return std::to_array<EnumName<Fail>>({{Fail::kNo, "no"},
                                        {Fail::kBug, "bug"},
                                        {Fail::kUsage, "usage"},
                                        {Fail::kInput, "input"},
                                        {Fail::kDevice, "device"},
                                        {Fail::kMemory, "memory"},
                                        {Fail::kBadAlloc, "bad-alloc"},
                                        {Fail::kOutput, "output"},
                                        {Fail::kResult, "result"},
                                        {Fail::kRejected, "rejected"},
                                        {Fail::kStopped, "stopped"},
                                        {Fail::kNested, "nested"},
                                        {Fail::kWriter, "writer"},
                                        {Fail::kNothing, "nothing"}});
}

struct StyleConfig {
  Letters letters = Letters::kAsIs;
  std::vector<int> widths{3, 5};
  std::optional<double> weight;
  template <class F>
  void fields(F&& f) {
    f(Field{"letters", letters, "which letters are written"},
      Field{"widths", widths, "widths of the columns", 1, 80},
      Field{"weight", weight, "weight of the pen, if there is one", 0.0, 1.0});
  }
};

struct SkeletonConfig {
  int times = 2;
  double threshold = 0.5;
  std::string separator;
  bool newline = true;
  StyleConfig style;
  std::vector<StyleConfig> more;
  template <class F>
  void fields(F&& f) {
    f(Field{"times", times, "how often the text is repeated", 1, 9},
      Field{"threshold", threshold, "a number <not> used & kept", 0, 1},
      Field{"separator", separator, "stands between the repetitions"},
      Field{"newline", newline, "end the text with a line break"},
      Field{"style", style, "how letters look"}, Field{"more", more, "further styles"});
  }
};

struct Options {
  InputFile input, list;
  OutputFile output, copy;
  OutputDir folder, output_dir;
  Fail fail = Fail::kNo;
  double sleep_s = 0;
  bool deaf = false;
  int megabytes = 0;
  SkeletonConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"input,i", input, "text to repeat"}, Field{"output,o", output, "the repeated text"},
      Field{"list", list, "many texts: TSV with the column text"}.no_effect_on_results(),
      Field{"output-dir", output_dir, "with --list: folder for <id>.txt and status.tsv"},
      Field{"copy", copy, "a second copy of it"}, Field{"folder", folder, "a folder of copies"},
      Field{"fail", fail, "the error to throw"},
      Field{"sleep", sleep_s, "seconds to work, watching the stop flag", 0, 1000},
      Field{"deaf", deaf, "sleep in a writer instead, and do not watch the stop flag"},
      Field{"megabytes", megabytes, "write as many MiB of zeros instead", 0, 1000});
  }
  void check() const {
    if (copy && folder) throw UsageError("give either --copy or --folder");
    if (list) return;
    if (!input) throw UsageError("--input is missing; see --help");
    if (!output) throw UsageError("--output is missing; see --help");
  }
  std::vector<std::string> companions() const {
    return list ? std::vector<std::string>{} : std::vector{output.path + ".tsv"};
  }
  bool by_case() const { return static_cast<bool>(list); }
};

void fail_as_told(Fail fail) {
  switch (fail) {
    case Fail::kBug:
      throw std::runtime_error("two and two are five");
    case Fail::kUsage:
      throw UsageError("told to fail: usage");
    case Fail::kInput:
      throw InputError("told to fail: input");
    case Fail::kDevice:
      throw DeviceError("told to fail: device");
    case Fail::kMemory:
      throw MemoryError("told to fail: needs 9.8 GB, free 7.7 GB");
    case Fail::kBadAlloc:
      throw std::bad_alloc();
    case Fail::kOutput:
      throw OutputError("told to fail: output");
    case Fail::kResult:
      throw ResultError("told to fail: result");
    case Fail::kStopped:
      throw Stopped("told to stop", ExitCode::kInterrupted);
    case Fail::kNested:
      try {
        throw std::runtime_error("no triangles in data array 2");
      } catch (...) {
        std::throw_with_nested(InputError("cannot read start mesh 'a.gii'"));
      }
    default:
      break;
  }
}

void work(double seconds, const Context& context) {
  const int steps = static_cast<int>(std::ceil(seconds * 100));
  for (int i = 0; i < steps; ++i) {
    context.progress(static_cast<double>(i) / steps, "sleeping");
    std::this_thread::sleep_for(std::chrono::milliseconds(10));
    if (context.stop_requested()) throw Stopped("stopped after a checkpoint; use --resume");
  }
  context.progress(1, "sleeping");
}

std::string repeated(const std::string& text, const SkeletonConfig& config) {
  std::string result;
  for (int i = 0; i < config.times; ++i) result += (i > 0 ? config.separator : "") + text;
  for (char& c : result) {
    if (config.style.letters == Letters::kUpper) c = static_cast<char>(std::toupper(c));
  }
  return result + (config.newline ? "\n" : "");
}

void write_text(const std::string& path, const std::string& text) {
  std::ofstream(path, std::ios::binary) << text;  // does not look for errors, on purpose
}

// The batch mode, whole.

std::string output_of(const Options& options, const Case& c) {
  return options.output_dir.path + "/" + c.id + ".txt";
}

cases::CaseRun batch_of(const Options& options, const CaseWriter& writer) {
  cases::CaseFolder folder{options.output_dir, writer, [&options](const Case& c) {
                             return CaseFiles{{{output_of(options, c), "output"}}, {}};
                           }};
  folder.figures = {{"bytes", /*is_count=*/true}};
  CaseColumns columns{"text"};
  columns.files_exist = false;  // a missing text is the failure of one case
  return {read_case_list(options.list, columns), 0, folder};
}

Outputs run_batch(const Options& options, const CaseWriter& writer, const Context& context) {
  const cases::CaseRun batch = batch_of(options, writer);
  cases::CaseSteps<std::string> steps;
  steps.bytes = [](size_t) { return cases::MemoryNeed{.reading = 1 << 20}; };
  steps.read = [&](size_t i, const Context&) { return read_file(batch.cases[i].image); };
  steps.compute = [&](size_t, std::string& text, const Context& all) {
    fail_as_told(options.fail);
    work(options.sleep_s, all);
    text = repeated(text, options.config);
  };
  steps.finish = [&](size_t i, const std::shared_ptr<std::string>& text, const cases::Grow&,
                     const Context&) {
    Outputs outputs;
    outputs.metric("bytes", static_cast<double>(text->size()));
    outputs.add(
        output_of(options, batch.cases[i]),
        [text](const std::string& path) { write_text(path, *text); }, "output");
    if (text->size() < 2) outputs.status("rejected", "the text is empty");
    return std::optional(outputs);
  };
  return cases::run_cases(batch, steps, context);
}

Plan plan(const Options& options, const Context& context, const CaseWriter& writer) {
  if (!options.list) return {};
  const cases::CaseRun batch = batch_of(options, writer);
  const auto look = [&](size_t i, Plan&) { read_file(batch.cases[i].image); };
  return cases::plan_cases(batch, look, context);
}

Outputs run(const Options& options, Context& context, const CaseWriter& writer) {
  if (options.list) return run_batch(options, writer, context);
  context.debug("a line for -v");
  context.warn("a warning");
  fail_as_told(options.fail);
  if (!options.deaf) work(options.sleep_s, context);
  std::ifstream file(options.input.path);
  std::stringstream content;
  content << file.rdbuf();
  std::string text = repeated(content.str(), options.config);
  if (options.megabytes > 0) text.assign(static_cast<size_t>(options.megabytes) << 20, '\0');

  Outputs outputs;
  outputs.metric("bytes", static_cast<double>(text.size()));
  outputs.metric("undefined", std::nan(""));
  outputs.report("lines", {{"count", 1}});
  outputs.grid(options.input, "one line").note("a note");
  const Writer write = [text](const std::string& path) { write_text(path, text); };
  const Writer slow_writer = [=](const std::string& path) {
    write(path);
    std::this_thread::sleep_for(std::chrono::duration<double>(options.sleep_s));
  };
  outputs.add(options.output, options.deaf ? slow_writer : write);
  outputs.add_companion(options.output.path + ".tsv",
                        [](const std::string& path) { write_text(path, "a\tb\n"); });
  outputs.add(options.copy, write);
  if (options.folder) outputs.add(options.folder.path + "/sub/a.txt", write);
  if (options.fail == Fail::kWriter) {
    outputs.add(options.output.path + ".second", [text](const std::string& path) {
      write_text(path, text);
      throw std::runtime_error("the writer of " + path + " broke");
    });
  }
  if (options.fail == Fail::kNothing) {
    outputs.add(options.output.path + ".second", [](const std::string&) {});
  }
  if (options.fail == Fail::kRejected) outputs.status("rejected", "told to reject");
  return outputs;
}

}  // namespace
}  // namespace larch

int main(int argc, char** argv) {
  larch::AppInfo info;
  info.name = "skeleton-app";
  info.summary = "Repeat a text.";
  info.description = "The text is repeated.\n\nThis paragraph has <angles> & an ampersand.";
  info.examples = {"skeleton-app --input a.txt --output b.txt",
                   "skeleton-app --input a.txt --output b.txt --times 3 --report -"};
  info.references = {"Nobody: On repetition."};
  return larch::run_app<larch::Options>(info, argc, argv, larch::run, larch::plan);
}
