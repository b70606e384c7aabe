// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/outputs/growing_output.h"

#include "larch/app/failures.h"
#include "larch/core/error.h"
#include "larch/files/temporaries.h"

namespace larch {
namespace {

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
  return text;
}

}  // namespace

namespace detail {

void rethrow_for(const AtomicFile& file) {
  const Failure failure = failure_of(std::current_exception());
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

}  // namespace detail

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
    detail::rethrow_for(*file_);
  }
}

}  // namespace larch
