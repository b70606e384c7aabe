// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/image/zstream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <stdexcept>
#include <string_view>
#include <vector>

#include <fcntl.h>
#include <unistd.h>
#include <zlib.h>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/core/parallel.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {
constexpr int64_t kBlock = int64_t{1} << 24;  // zlib counts in 32 bits
constexpr int64_t kSeekFrom = 1 << 20;
}  // namespace

ZReader::ZReader(const std::string& path, int64_t start, unsigned buffer_bytes) : path_(path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError("cannot read '" + path + "': no such file; check the path");
  }
  const auto size =
      std::max<int64_t>(static_cast<int64_t>(std::filesystem::file_size(path, error)) - start, 0);
  std::ifstream probe(path, std::ios::binary);
  char magic[2] = {};
  probe.seekg(start);
  probe.read(magic, 2);
  if (!probe && !probe.eof()) throw InputError("cannot read '" + path + "': check its permissions");
  compressed_ = magic[0] == '\x1f' && magic[1] == '\x8b';
  most_bytes_ = compressed_ ? size * kMostDeflate : size;
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  const bool there = descriptor >= 0 && ::lseek(descriptor, start, SEEK_SET) == start;
  if (there) file_ = gzdopen(descriptor, "rb");  // which takes the descriptor
  if (file_ == nullptr) {
    const std::string reason = std::strerror(errno);
    if (descriptor >= 0) ::close(descriptor);
    throw InputError("cannot read '" + path + "': " + reason);
  }
  gzbuffer(file_, buffer_bytes);
}

ZReader::~ZReader() {
  gzclose(file_);
}

int64_t ZReader::read(void* to, int64_t bytes) {
  int64_t done = 0;
  while (done < bytes) {
    const auto want = static_cast<unsigned>(std::min(kBlock, bytes - done));
    const int got = gzread(file_, static_cast<char*>(to) + done, want);
    int status = Z_OK;
    const char* message = gzerror(file_, &status);
    if (status == Z_MEM_ERROR) throw MemoryError("'" + path_ + "': " + out_of_memory_text(0));
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      // It begins with what zlib takes for the name of the file, "<fd:4>: ".
      const char* reason = std::strstr(message, ": ");
      if (reason != nullptr) message = reason + 2;
      bad(path_, std::string("the compressed data are damaged or truncated (") + message +
                     "); copy or export the file again");
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

void ZReader::skip(int64_t bytes) {
  // zlib would read what it passes over, even where nothing is compressed.
  if (!compressed_ && bytes > kSeekFrom) {
    gzdirect(file_);  // makes zlib look at the file, without which it would not seek but read
    const bool there = bytes <= most_bytes_ - gztell(file_);
    if (!there || gzseek(file_, bytes, SEEK_CUR) < 0) {
      bad(path_, "the file ends before its data; truncated?");
    }
    return;
  }
  std::vector<char> block(static_cast<size_t>(std::clamp<int64_t>(bytes, 0, 1 << 16)));
  while (bytes > 0) {
    const int64_t got = read(block.data(), std::min<int64_t>(bytes, 1 << 16));
    if (got == 0) bad(path_, "the file ends before its data; truncated?");
    bytes -= got;
  }
}

void ZReader::finish() {
  if (!compressed_) return;
  std::vector<char> block(1 << 16);
  for (int i = 0; i < 1024 && read(block.data(), 1 << 16) > 0; ++i) {
  }
}

namespace {

constexpr size_t kWindow = 32768;
/// Blocks that are compressed at a time, per thread and at most: every thread is kept busy, and the
/// memory is bounded.
constexpr int kBlocksPerThread = 4, kBlocksAtOnce = 64;

struct Deflated {
  std::string bytes;
  uint32_t crc = 0;
};

/// One block as a piece of a raw deflate stream; all but the last end with an empty stored block,
/// which leaves them on a byte boundary.
Deflated deflate_block(std::string_view dictionary, std::string_view block, bool last,
                       const std::string& path) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw MemoryError("'" + path + "': not enough host memory to compress it");
  }
  const auto bytes_of = [](std::string_view text) {
    return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  };
  if (!dictionary.empty()) {
    deflateSetDictionary(&stream, bytes_of(dictionary), static_cast<uInt>(dictionary.size()));
  }
  Deflated out;
  // The bound does not count the empty block of a flush.
  out.bytes.resize(deflateBound(&stream, block.size()) + 16);
  stream.next_in = bytes_of(block);
  stream.avail_in = static_cast<uInt>(block.size());
  stream.next_out = bytes_of(out.bytes);
  stream.avail_out = static_cast<uInt>(out.bytes.size());
  const int status = deflate(&stream, last ? Z_FINISH : Z_SYNC_FLUSH);
  const bool complete = last ? status == Z_STREAM_END : status == Z_OK && stream.avail_in == 0;
  out.bytes.resize(stream.total_out);
  deflateEnd(&stream);
  if (!complete) throw std::logic_error("'" + path + "': a compressed block outgrew its bound");
  out.crc = static_cast<uint32_t>(crc32(0, bytes_of(block), static_cast<uInt>(block.size())));
  return out;
}

}  // namespace

ZWriter::ZWriter(const std::string& path, bool compress, int threads)
    : path_(path),
      compress_(compress),
      threads_(threads),
      most_pending_(static_cast<size_t>(kBlockBytes *
                                        std::clamp(kBlocksPerThread * threads, 1, kBlocksAtOnce))) {
  errno = 0;
  file_ = std::fopen(path.c_str(), "wbe");
  if (file_ == nullptr) fail(errno);
  // Deflated, no flags, no time, no extra hints, made on Unix.
  constexpr char kHeader[] = {'\x1f', '\x8b', 8, 0, 0, 0, 0, 0, 0, 3};
  if (compress) put(kHeader, sizeof kHeader);
}

ZWriter::~ZWriter() {
  if (file_ != nullptr) std::fclose(file_);
}

void ZWriter::fail(int error) const {
  throw OutputError("cannot write '" + path_ +
                    "': " + (error != 0 ? std::strerror(error) : "the storage reported an error") +
                    ": check the free space and the folder's permissions");
}

void ZWriter::put(const void* from, size_t bytes) {
  errno = 0;
  if (std::fwrite(from, 1, bytes, file_) != bytes) fail(errno);
}

void ZWriter::deflate_pending(bool last) {
  const auto block_bytes = static_cast<size_t>(kBlockBytes);
  const size_t count = std::max<size_t>(1, (pending_.size() + block_bytes - 1) / block_bytes);
  const std::string_view all = pending_;
  std::vector<Deflated> blocks(count);
  parallel_for(threads_, static_cast<int64_t>(count), 1, [&](int64_t begin, int64_t end) {
    for (auto i = static_cast<size_t>(begin); i < static_cast<size_t>(end); ++i) {
      const size_t at = i * block_bytes;
      const std::string_view before =
          i == 0 ? std::string_view(dictionary_) : all.substr(at - kWindow, kWindow);
      blocks[i] = deflate_block(before, all.substr(at, block_bytes), last && i + 1 == count, path_);
    }
  });
  for (size_t i = 0; i < count; ++i) {
    const size_t length = all.substr(i * block_bytes, block_bytes).size();
    crc_ = static_cast<uint32_t>(crc32_combine(crc_, blocks[i].crc, static_cast<z_off_t>(length)));
    put(blocks[i].bytes.data(), blocks[i].bytes.size());
  }
  bytes_ += pending_.size();
  if (!last) dictionary_ = pending_.substr(pending_.size() - kWindow);
  pending_.clear();
}

void ZWriter::write(const void* from, int64_t bytes) {
  if (!compress_) {
    put(from, static_cast<size_t>(bytes));
    return;
  }
  const auto* next = static_cast<const char*>(from);
  for (auto left = static_cast<size_t>(bytes); left > 0;) {
    // A full buffer waits until more comes: the last block has to know that it is the last.
    if (pending_.size() == most_pending_) deflate_pending(/*last=*/false);
    const size_t taken = std::min(left, most_pending_ - pending_.size());
    pending_.append(next, taken);
    next += taken;
    left -= taken;
  }
}

void ZWriter::close() {
  if (compress_) {
    deflate_pending(/*last=*/true);
    char trailer[8];
    for (int i = 0; i < 4; ++i) {
      trailer[i] = static_cast<char>(crc_ >> (8 * i));
      trailer[4 + i] = static_cast<char>(bytes_ >> (8 * i));
    }
    put(trailer, sizeof trailer);
  }
  std::FILE* file = file_;
  file_ = nullptr;
  errno = 0;
  if (std::fclose(file) != 0) fail(errno);
}

}  // namespace larch::io
