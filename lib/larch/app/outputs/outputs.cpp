// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/outputs/outputs.h"

#include <cerrno>
#include <cmath>
#include <cstdlib>

#include "larch/app/failures.h"
#include "larch/app/process.h"
#include "larch/config/json_text.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"

namespace larch {
namespace {

using detail::json_text;

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

/// Throws what the writer of `file` threw, in terms of the final name. Called in a catch block.
[[noreturn]] void rethrow_for(const AtomicFile& file) {
  const detail::Failure failure = detail::failure_of(std::current_exception());
  if (failure.stopped || failure.code == ExitCode::kMemory) throw;
  const std::string cause = replaced(in_one_line(failure), file.temporary(), file.path());
  std::string outer = "cannot write '" + file.path() + "'";
  if (const int error = file.why_short()) outer += ": " + describe_write_error(error);
  const bool of_output = !failure.expected || failure.code == ExitCode::kOutput;
  try {
    throw std::runtime_error(cause);
  } catch (...) {
    if (of_output) std::throw_with_nested(OutputError(outer));
    std::throw_with_nested(Error(failure.code, outer));
  }
}

}  // namespace

GrowingOutput::GrowingOutput(const std::string& path, const Context& context) {
  if (path.empty()) return;
  file_ = std::make_shared<AtomicFile>(path);
  remove_leftovers_once(folder_of(file_->temporary()), context);
}

void GrowingOutput::fill(const std::function<void()>& step) const {
  if (!file_) return;
  try {
    step();
  } catch (...) {
    rethrow_for(*file_);
  }
}

Outputs& Outputs::add(const std::string& path, Writer writer) {
  if (!path.empty()) files.push_back({path, std::move(writer)});
  return *this;
}

Outputs& Outputs::add(const GrowingOutput& output) {
  if (output) files.push_back({output.file()->path(), {}, /*companion=*/false, output.file()});
  return *this;
}

Outputs& Outputs::add_companion(const std::string& path, Writer writer) {
  if (!path.empty()) files.push_back({path, std::move(writer), /*companion=*/true});
  return *this;
}

Outputs& Outputs::metric(const std::string& name, double value) {
  metrics.push_back({name, json_text(value)});
  return *this;
}

Outputs& Outputs::seconds(const StepSeconds& taken) {
  for (const auto& [name, seconds] : taken) metric("seconds: " + name, seconds).step(name, seconds);
  return *this;
}

Outputs& Outputs::step(const std::string& name, double seconds) {
  steps.emplace_back(name, seconds);
  return *this;
}

Outputs& Outputs::report(const std::string& key, const nlohmann::ordered_json& value) {
  reports.push_back({key, std::make_shared<nlohmann::ordered_json>(value)});
  return *this;
}

Outputs& Outputs::note(const std::string& text) {
  notes.push_back(text);
  return *this;
}

Outputs& Outputs::grid(const std::string& input_path, const std::string& text) {
  grids.push_back({input_path, text});
  return *this;
}

Outputs& Outputs::dicom(const std::string& input_path, const nlohmann::ordered_json& names) {
  dicoms.push_back({input_path, std::make_shared<nlohmann::ordered_json>(names)});
  return *this;
}

Outputs& Outputs::status(const std::string& word, const std::string& reason,
                         std::optional<ExitCode> code) {
  status_word = word;
  status_reason = reason;
  rejected_code = code;
  return *this;
}

std::string Outputs::figure(const std::string& name) const {
  for (const Text& metric : metrics) {
    if (metric.name != name) continue;
    char* end = nullptr;
    const double value = std::strtod(metric.text.c_str(), &end);
    return end == metric.text.c_str() ? "" : figure_text(value);  // "null"
  }
  return "";
}

std::string figure_text(double value) {
  if (!std::isfinite(value)) return "";
  const bool is_whole = std::round(value) == value && std::abs(value) < 1e15;
  return formatted(is_whole ? "%.0f" : "%.6g", value);
}

}  // namespace larch

namespace larch::detail {
namespace {

/// More files than this of one set are not held open; their locks are replaced by fresh times.
constexpr size_t kHeldOpen = 256;
constexpr std::chrono::minutes kRefreshEvery{10};

}  // namespace

Writer text_writer(const std::string& text) {
  return [text](const std::string& path) { write_file(path, text); };
}

void FileSet::write(const std::string& path, const Writer& writer) {
  context_.throw_if_stopped("stopped before '" + path + "' was written");
  const GrowingOutput output(path, context_);
  output.fill([&] { writer(output.temporary()); });
  take(output.file());
}

void FileSet::take(const std::shared_ptr<AtomicFile>& file) {
  files_.push_back(file);
  file->flush();
  hold_few_open();
}

void FileSet::hold_few_open() {
  if (files_.size() <= kHeldOpen) return;
  const auto first_held = files_.end() - kHeldOpen;
  (*(first_held - 1))->release();
  if (std::chrono::steady_clock::now() - refreshed_ < kRefreshEvery) return;
  for (auto file = files_.begin(); file != first_held; ++file) (*file)->refresh();
  refreshed_ = std::chrono::steady_clock::now();
}

void FileSet::commit(const std::function<bool(const std::string& path)>& may_replace) {
  const Committing not_torn;
  for (const auto& file : files_) {
    const int error = file->commit(may_replace(file->path()));
    if (error == 0) {
      folders_.insert(folder_of(file->target()));
      continue;
    }
    for (const auto& earlier : files_) earlier->take_back();
    const std::string hint = error == EEXIST ? "; --force replaces it" : "";
    throw OutputError("cannot write '" + file->path() + "': " + describe_write_error(error) + hint);
  }
  files_.clear();
}

void FileSet::flush_folders(const FileSet* other) const {
  std::set<std::string> folders = folders_;
  if (other != nullptr) folders.insert(other->folders_.begin(), other->folders_.end());
  for (const std::string& folder : folders) flush_folder(folder);
}

}  // namespace larch::detail
