// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "larch/core/context.h"
#include "larch/files/atomic_file.h"

namespace larch {

/// An output that is filled while the run goes on, for what is too large to be kept until its end:
/// the run fills the file under its temporary name and hands it over with Outputs::add. If the run
/// fails the file is removed.
class GrowingOutput {
 public:
  /// None is wanted: nothing is filled and nothing added.
  GrowingOutput() = default;
  /// Makes the empty temporary; none for an empty path. Throws OutputError that names `path`.
  GrowingOutput(const std::string& path, const Context& context);

  explicit operator bool() const { return file_ != nullptr; }
  const std::string& temporary() const { return file_->temporary(); }
  const std::shared_ptr<AtomicFile>& file() const { return file_; }

  /// Calls `step`, which fills a part of the file, unless none is wanted. What it throws is thrown
  /// in terms of the final name, as for a Writer.
  void fill(const std::function<void()>& step) const;

 private:
  std::shared_ptr<AtomicFile> file_{};
};

namespace detail {
/// Throws what the writer of `file` threw, in terms of the final name. Called in a catch block.
[[noreturn]] void rethrow_for(const AtomicFile& file);
}  // namespace detail

}  // namespace larch
