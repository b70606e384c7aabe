// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

struct gzFile_s;

namespace larch::io {

/// Reads a file that may or may not be gzip-compressed. Throws InputError.
class ZReader {
 public:
  explicit ZReader(const std::string& path);
  ~ZReader();
  ZReader(const ZReader&) = delete;
  ZReader& operator=(const ZReader&) = delete;

  /// Reads up to `bytes`; the count that came is smaller only at the end of the file.
  /// A damaged or truncated compressed stream is an error.
  int64_t read(void* to, int64_t bytes);
  void skip(int64_t bytes);
  /// Reads what is left, at most 64 MiB, so that the check sum of a compressed stream is compared.
  void finish();
  /// The most bytes that the file can hold when uncompressed.
  int64_t most_bytes() const { return most_bytes_; }

 private:
  std::string path_;
  gzFile_s* file_ = nullptr;
  int64_t most_bytes_ = 0;
};

/// Writes a file, gzip-compressed (without name and time) or plain. Throws OutputError for `path`,
/// the name that messages show.
class ZWriter {
 public:
  ZWriter(const std::string& path, bool compress);
  ~ZWriter();
  ZWriter(const ZWriter&) = delete;
  ZWriter& operator=(const ZWriter&) = delete;

  void write(const void* from, int64_t bytes);
  /// Flushes and closes; errors that only show then are thrown here.
  void close();

 private:
  [[noreturn]] void fail(int error) const;

  std::string path_;
  gzFile_s* file_ = nullptr;
};

/// Deflate turns at most this many bytes into one.
constexpr int64_t kMostDeflate = 1032;

}  // namespace larch::io
