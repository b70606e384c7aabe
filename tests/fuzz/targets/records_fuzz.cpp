// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Records that runs find in folders anybody may write to. The first byte chooses: larch.json and a
// part that another run left (f, two texts), or what --skip-existing compares a run with: the
// sidecar of a file (s) or of a folder (o), or a report (r).
#include <filesystem>
#include <optional>

#include "larch/app/command_line.h"
#include "larch/app/records/existing.h"
#include "larch/app/records/folder_record.h"
#include "larch/app/records/shared_folder.h"
#include "larch/app/records/sidecar.h"
#include "larch/config/json_text.h"
#include "larch/core/digest.h"
#include "larch/files/file.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;
namespace fs = std::filesystem;
using config::Json;
using detail::RecordedOutput;

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
  EarlierOutputs earlier(const RecordedOutput& output) {
    return detail::earlier_outputs({output}, {}, basis(), digests_);
  }
  Json record() { return detail::results_record(basis(), digests_); }

 private:
  CopyOptions options_;
  detail::Program program_;
  detail::CommandLine line_;
  detail::InputDigests digests_;
  std::string input_;
};

std::string new_folder() {
  std::string path = fuzz::folder() + "/runs";
  fs::remove_all(path);
  fs::create_directories(path + "/.larch");
  return path;
}

// Only what is the same run's may be skipped.
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
  Sha256 sum;
  sum.update("result", 6);
  fuzz::require(there["Outputs"].dump().find(hex(sum.digest())) != std::string::npos,
                "an output of another content is skipped");
}

void read_record(RecordedOutput::Kind kind, std::string_view bytes) {
  static Run run;
  const bool is_folder = kind == RecordedOutput::Kind::kFolder;
  const std::string folder = new_folder();
  const std::string name = is_folder                               ? "runs/larch.json"
                           : kind == RecordedOutput::Kind::kReport ? "runs/case.json"
                                                                   : "runs/case.txt.json";
  if (kind != RecordedOutput::Kind::kReport) fuzz::file_of("runs/case.txt", "result");
  const std::string record = fuzz::file_of(name, bytes);
  RecordedOutput output{folder + "/case.txt", kind};
  if (is_folder) output.path = folder;
  if (kind == RecordedOutput::Kind::kReport) output.path = record;
  EarlierOutputs earlier;
  if (!fuzz::accepts({ExitCode::kInput}, "in.txt", [&] { earlier = run.earlier(output); })) return;
  if (earlier.state == EarlierOutputs::State::kOther) {
    fuzz::require(earlier.what.find(output.path) != std::string::npos,
                  "the message does not name the output");
  }
  if (earlier.state == EarlierOutputs::State::kSkip) {
    const Json json = config::parse(std::string(bytes), record);
    const char* key = kind == RecordedOutput::Kind::kReport ? "record" : "Larch";
    require_same_run(json[key], run);
    if (kind != RecordedOutput::Kind::kReport) require_content(json[key]);
  }
  detail::is_sidecar(record);
}

// What a further run makes of the files of a folder; the number of earlier runs it tells of.
size_t runs_in(const std::string& folder, bool may_warn) {
  bool has_warned = false;
  Context context;
  context.log_sink = [&](LogLevel, std::string_view text) {
    has_warned = true;
    fuzz::require(text.find("larch.json") != std::string_view::npos ||
                      text.find("run-") != std::string_view::npos,
                  "a warning without a name");
  };
  const Json own{{"Larch", {{"App", "copy"}, {"Status", "done"}}}};
  detail::write_folder_record(folder, own, context);
  fuzz::require(may_warn || !has_warned, "a record that was written is not understood");
  const Json record = config::parse(read_file(folder + "/larch.json"), "larch.json");
  const Json& larch = record["Larch"];
  return larch.contains("EarlierRuns") ? larch["EarlierRuns"].size() : 0;
}

void read_folder(std::string_view bytes) {
  const auto [record, part] = fuzz::two_texts(bytes);
  const std::string folder = new_folder();
  fuzz::file_of("runs/larch.json", record);
  fuzz::file_of("runs/.larch/run-0123456789abcdef0123456789abcdef.json", part);
  const size_t earlier = runs_in(folder, true);
  fuzz::require(runs_in(folder, false) == earlier + 1, "a run of larch.json was lost");
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  if (size == 0) return 0;
  const std::string_view bytes = fuzz::text_of(data + 1, size - 1);
  switch (data[0]) {
    case 's':
      read_record(RecordedOutput::Kind::kFile, bytes);
      break;
    case 'o':
      read_record(RecordedOutput::Kind::kFolder, bytes);
      break;
    case 'r':
      read_record(RecordedOutput::Kind::kReport, bytes);
      break;
    default:
      read_folder(bytes);
  }
  return 0;
}
