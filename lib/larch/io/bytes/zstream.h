// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace larch::io {

/// Bytes are packed as streams of zlib, of gzip (one after another) or of raw deflate.
enum class Packing : uint8_t { kNone, kZlib, kGzip, kDeflate };

/// Reads the bytes of a file, or of memory, which are unpacked on the way. Throws InputError.
class ZReader {
 public:
  /// The file from byte `start` on, which gzip has packed if it begins as its streams do. As many
  /// bytes as the buffer holds are read ahead: few for a header alone.
  explicit ZReader(const std::string& path, int64_t start = 0, size_t buffer_bytes = 1 << 18);
  /// The file from byte `start` on, packed in the given way. `hashes`: all bytes of the file are
  /// read, for sha256().
  ZReader(const std::string& path, int64_t start, Packing packing, bool hashes = false);
  /// Bytes in memory that came from the file `path` and stay there as long as the reader does.
  ZReader(std::string_view bytes, Packing packing, const std::string& path);
  ~ZReader();
  ZReader(const ZReader&) = delete;
  ZReader& operator=(const ZReader&) = delete;

  /// Reads up to `bytes`; the count that came is smaller only at the end of the file or stream.
  /// A damaged or truncated stream is an error.
  int64_t read(void* to, int64_t bytes);
  void skip(int64_t bytes);
  /// Reads what is left of a stream, at most 64 MiB, so that its check sum is compared, and returns
  /// how many bytes that were.
  int64_t finish();
  /// Returns the SHA-256 of the file, whose rest is read, as hexadecimal.
  std::string sha256();
  /// Returns the most bytes that the file can hold when unpacked.
  int64_t most_bytes() const;
  bool compressed() const { return packing_ != Packing::kNone; }

 private:
  struct State;
  bool read_at_once(void* to, int64_t bytes);
  void open(int64_t start, size_t buffer_bytes);
  void begin_stream();
  bool fill();
  void end_of_stream();

  std::string path_;
  Packing packing_ = Packing::kNone;
  std::unique_ptr<State> state_;
};

/// Returns all of some bytes as one stream, level 6; gzip's has no name and no time.
std::string packed(std::string_view bytes, Packing packing, const std::string& path);

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
constexpr int64_t kMaximumDeflate = 1032;

}  // namespace larch::io
