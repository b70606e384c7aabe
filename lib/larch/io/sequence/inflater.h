// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace larch::io {

/// The zlib or gzip stream that begins at byte `offset` of a file, a piece at a time.
class Inflater {
 public:
  /// Throws MemoryError.
  Inflater(const std::string& path, int64_t offset);
  ~Inflater();
  Inflater(const Inflater&) = delete;
  Inflater& operator=(const Inflater&) = delete;

  /// Exactly `bytes`, to `to`; to nowhere if that is null. Throws InputError where the stream is
  /// damaged or ends.
  void read(std::byte* to, int64_t bytes);

  /// Reads what is left, so that the check sum at the end is compared. Throws InputError if it is
  /// not there or wrong, or if more or less than `bytes` come.
  void finish(int64_t bytes);

 private:
  struct State;
  int64_t inflate_some(std::byte* to, unsigned room);
  [[noreturn]] void fail(int64_t made, int64_t wanted) const;

  std::string path_;
  std::unique_ptr<State> state_;
};

}  // namespace larch::io
