// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <string>

struct gzFile_s;

namespace larch::io {

/// Reads a file that may or may not be gzip-compressed. Throws InputError.
class ZReader {
 public:
  /// The file from byte `start` on. As many bytes as the buffer holds, and twice that uncompressed,
  /// are read ahead: few for a header alone.
  explicit ZReader(const std::string& path, int64_t start = 0, unsigned buffer_bytes = 1 << 18);
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
  bool compressed() const { return compressed_; }

 private:
  std::string path_;
  gzFile_s* file_ = nullptr;
  bool compressed_ = false;
  int64_t most_bytes_ = 0;
};

/// Writes a file, gzip-compressed (one member without name and time, level 6) or plain. Compressed
/// data are cut into blocks of kBlockBytes that several threads deflate, each with the 32 KiB
/// before it as dictionary; the blocks end on byte boundaries and make one ordinary stream, whose
/// bytes do not depend on the number of threads or on how the data are handed over. At most four
/// blocks per thread (64 in all) wait, and take twice that while they are deflated. Throws
/// OutputError for `path`, the name that messages show.
class ZWriter {
 public:
  static constexpr int64_t kBlockBytes = int64_t{1} << 20;

  ZWriter(const std::string& path, bool compress, int threads = 1);
  ~ZWriter();
  ZWriter(const ZWriter&) = delete;
  ZWriter& operator=(const ZWriter&) = delete;

  void write(const void* from, int64_t bytes);
  /// Flushes and closes; errors that only show then are thrown here.
  void close();

 private:
  [[noreturn]] void fail(int error) const;
  void put(const void* from, size_t bytes);
  void deflate_pending(bool last);

  std::string path_;
  std::FILE* file_ = nullptr;
  bool compress_;
  int threads_;
  size_t most_pending_;     ///< bytes
  std::string pending_;     ///< not yet compressed
  std::string dictionary_;  ///< what came before it, at most 32 KiB
  uint32_t crc_ = 0;
  uint64_t bytes_ = 0;
};

/// Deflate turns at most this many bytes into one.
constexpr int64_t kMostDeflate = 1032;

}  // namespace larch::io
