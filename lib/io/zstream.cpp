// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/zstream.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <vector>

#include <zlib.h>

#include "larch/core/error.h"

namespace larch::io {
namespace {
constexpr int64_t kBlock = int64_t{1} << 24;  // zlib counts in 32 bits
}

ZReader::ZReader(const std::string& path) : path_(path) {
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    throw InputError("cannot read '" + path + "': no such file; check the path");
  }
  const auto size = static_cast<int64_t>(std::filesystem::file_size(path, error));
  std::ifstream probe(path, std::ios::binary);
  char magic[2] = {};
  probe.read(magic, 2);
  if (!probe && !probe.eof()) throw InputError("cannot read '" + path + "': check its permissions");
  const bool compressed = magic[0] == '\x1f' && magic[1] == '\x8b';
  most_bytes_ = compressed ? size * kMostDeflate : size;
  file_ = gzopen(path.c_str(), "rb");
  if (file_ == nullptr) {
    throw InputError("cannot read '" + path + "': " + std::strerror(errno));
  }
  gzbuffer(file_, 1 << 18);
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
    if (got < 0 || (status != Z_OK && status != Z_STREAM_END)) {
      throw InputError("'" + path_ + "': the compressed data are damaged or truncated (" + message +
                       "); copy or export the file again");
    }
    if (got == 0) break;
    done += got;
  }
  return done;
}

void ZReader::skip(int64_t bytes) {
  std::vector<char> block(1 << 16);
  while (bytes > 0) {
    const int64_t got = read(block.data(), std::min<int64_t>(bytes, 1 << 16));
    if (got == 0) throw InputError("'" + path_ + "': the file ends before its data; truncated?");
    bytes -= got;
  }
}

void ZReader::finish() {
  std::vector<char> block(1 << 16);
  for (int i = 0; i < 1024 && read(block.data(), 1 << 16) > 0; ++i) {
  }
}

ZWriter::ZWriter(const std::string& path, bool compress) : path_(path) {
  errno = 0;
  file_ = gzopen(path.c_str(), compress ? "wb6" : "wbT");
  if (file_ == nullptr) fail(errno);
  gzbuffer(file_, 1 << 18);
}

ZWriter::~ZWriter() {
  if (file_ != nullptr) gzclose(file_);
}

void ZWriter::fail(int error) const {
  throw OutputError("cannot write '" + path_ +
                    "': " + (error != 0 ? std::strerror(error) : "the storage reported an error") +
                    ": check the free space and the folder's permissions");
}

void ZWriter::write(const void* from, int64_t bytes) {
  for (int64_t done = 0; done < bytes;) {
    const auto want = static_cast<unsigned>(std::min(kBlock, bytes - done));
    errno = 0;
    if (gzwrite(file_, static_cast<const char*>(from) + done, want) != static_cast<int>(want)) {
      fail(errno);
    }
    done += want;
  }
}

void ZWriter::close() {
  gzFile_s* file = file_;
  file_ = nullptr;
  errno = 0;
  if (gzclose(file) != Z_OK) fail(errno);
}

}  // namespace larch::io
