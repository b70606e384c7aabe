// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Records that runs find in folders anybody may write to, and compare themselves with: that of a
// folder if the first byte is "o", else that of a file.
#include <filesystem>

#include "larch/app/command_line.h"
#include "larch/app/records/case_record.h"
#include "larch/core/digest.h"
#include "larch/files/file.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;
namespace fs = std::filesystem;
using config::Json;

struct CopyConfig {
  double threshold = 0.5;
  int rounds = 2;
  template <class F>
  void fields(F&& f) {
    f(Field{"threshold", threshold, "a threshold", 0, 1}, Field{"rounds", rounds, "rounds", 1, 9});
  }
};

struct CopyOptions {
  InputFile input;
  OutputFile output;
  std::string suffix = "a";
  CopyConfig config;
  template <class F>
  void fields(F&& f) {
    f(Field{"input,i", input, "a text"}, Field{"output,o", output, "a copy"},
      Field{"suffix", suffix, "a word"});
  }
};

// A run that reads in.txt and asks whether its output is there already.
class Run {
 public:
  Run() {
    input_ = fuzz::file_of("in.txt", "content");
    options_.input = input_;
    program_.info = {.name = "copy", .summary = "Copies a text."};
    program_.flags = config::describe(options_);
    program_.config = config::describe(options_.config);
    std::string words[] = {"copy", "--skip-existing"};
    char* arguments[] = {words[0].data(), words[1].data()};
    detail::parse_command_line(program_, 2, arguments, line_);
  }
  detail::ResultsBasis basis() const { return {program_, line_, {{"input", input_}}}; }
  EarlierCase look(const CaseFiles& files) {
    return detail::look_at_case(files, basis(), digests_);
  }
  Json record() { return detail::results_record(basis(), digests_); }

 private:
  CopyOptions options_;
  detail::Program program_;
  detail::CommandLine line_;
  detail::InputDigests digests_;
  std::string input_;
};

void require_same_run(const Json& there, Run& run) {
  const Json now = run.record();
  for (const char* key : {"App", "ResultsVersion", "Seed"}) {
    fuzz::require(there.contains(key) && there[key] == now[key], "another run's output is skipped");
  }
  for (const char* key : {"Config", "Options"}) {
    for (const auto& [name, value] : now[key].items()) {
      fuzz::require(there[key].contains(name) && there[key][name] == value,
                    "an output of another configuration is skipped");
    }
  }
  const std::string digest = now["Inputs"][0]["SHA256"].get<std::string>();
  fuzz::require(there["Inputs"].dump().find(digest) != std::string::npos,
                "an output of another input is skipped");
}

// Nor is a file skipped that the record does not tell.
void require_content(const Json& there) {
  fuzz::require(there["Outputs"].dump().find(sha256_of("result")) != std::string::npos,
                "an output of another content is skipped");
}

/// `is_folder`: the record is that of a folder which belongs to the run, else that of one file.
void read_record(bool is_folder, std::string_view bytes) {
  static Run run;
  const std::string folder = fuzz::folder() + "/runs";
  fs::remove_all(folder);
  fs::create_directories(folder);
  fuzz::file_of("runs/case.txt", "result");
  CaseFiles files;
  files.record = fuzz::file_of(is_folder ? "runs/larch.json" : "runs/case.txt.json", bytes);
  if (is_folder) files.folder = folder;
  if (!is_folder) files.outputs = {{folder + "/case.txt", "output"}};
  EarlierCase earlier;
  if (!fuzz::accepts({ExitCode::kInput}, "in.txt", [&] { earlier = run.look(files); })) return;
  if (earlier.state == EarlierCase::State::kOther) {
    fuzz::require(earlier.what.find(folder) != std::string::npos,
                  "the message does not name the case");
  }
  if (earlier.state == EarlierCase::State::kSkip) {
    const Json larch = config::parse(std::string(bytes), files.record)["Larch"];
    require_same_run(larch, run);
    if (!is_folder) require_content(larch);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  read_record(data[0] == 'o', fuzz::text_of(data + 1, size - 1));
  return 0;
}
