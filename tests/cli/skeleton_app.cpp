// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// A small executable with one result, for the tests of what every executable has: it copies a text
// with repetitions, and fails in every way that it is told to.
#include <chrono>
#include <cmath>
#include <fstream>
#include <iterator>
#include <sstream>
#include <thread>

#include <nlohmann/json.hpp>

#include "larch/app/run_app.h"

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
  InputFile input;
  OutputFile output, copy;
  OutputDir folder;
  Fail fail = Fail::kNo;
  double sleep_s = 0;
  bool deaf = false;
  int megabytes = 0;
  SkeletonConfig config;

  template <class F>
  void fields(F&& f) {
    f(Field{"input,i", input, "text to repeat"}.endings(".txt"),
      Field{"output,o", output, "the repeated text"}.endings(".txt"),
      Field{"copy", copy, "a second copy of it"}.endings(".txt"),
      Field{"folder", folder, "a folder of copies"}, Field{"fail", fail, "the error to throw"},
      Field{"sleep", sleep_s, "seconds to work, watching the stop flag", 0, 1000},
      Field{"deaf", deaf, "sleep in a writer instead, and do not watch the stop flag"},
      Field{"megabytes", megabytes, "write as many MiB of zeros instead", 0, 1000});
  }
  void check() const {
    if (copy && folder) throw UsageError("give either --copy or --folder");
    if (!input) throw UsageError("--input is missing; see --help");
    if (!output) throw UsageError("--output is missing; see --help");
  }
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

Outputs run(const Options& options, Context& context) {
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
  larch::Hooks<larch::Options> hooks;
  hooks.run = larch::run;
  hooks.check = [](const larch::Options& o, const larch::GivenFlags&) { o.check(); };
  hooks.companions = [](const larch::Options& o) { return std::vector{o.output.path + ".tsv"}; };
  return larch::run_app(info, argc, argv, hooks);
}
