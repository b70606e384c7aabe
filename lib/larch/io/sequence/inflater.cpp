// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/sequence/inflater.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include <zlib.h>

#include "larch/core/error.h"
#include "larch/io/image/message.h"

namespace larch::io {
namespace {
constexpr uInt kBlock = 1 << 16;
}  // namespace

struct Inflater::State {
  std::ifstream in;
  z_stream stream{};
  int status = Z_OK;
  std::string packed = std::string(1 << 18, '\0');
};

Inflater::Inflater(const std::string& path, int64_t offset)
    : path_(path), state_(std::make_unique<State>()) {
  state_->in.open(path, std::ios::binary);
  state_->in.seekg(offset);
  if (inflateInit2(&state_->stream, 47) != Z_OK) {  // zlib or gzip
    throw MemoryError("'" + path + "': not enough host memory to read it");
  }
}

Inflater::~Inflater() {
  inflateEnd(&state_->stream);
}

void Inflater::read(std::byte* to, int64_t bytes) {
  std::vector<std::byte> nowhere(to == nullptr ? kBlock : 0);
  for (int64_t left = bytes; left > 0;) {
    const auto room = static_cast<uInt>(std::min<int64_t>(left, kBlock));
    const int64_t got = inflate_some(to == nullptr ? nowhere.data() : to, room);
    if (got == 0) fail(bytes - left, bytes);
    if (to != nullptr) to += got;
    left -= got;
  }
}

void Inflater::finish(int64_t bytes) {
  std::vector<std::byte> block(kBlock);
  int64_t came = 0;
  while (const int64_t got = inflate_some(block.data(), kBlock)) {
    came += got;
    if (came > bytes) break;
  }
  if (state_->status != Z_STREAM_END || came != bytes) fail(came, bytes);
}

/// At most `room` bytes; 0 at the end of the stream or where it is damaged.
int64_t Inflater::inflate_some(std::byte* to, unsigned room) {
  z_stream& stream = state_->stream;
  stream.next_out = reinterpret_cast<Bytef*>(to);
  stream.avail_out = room;
  while (state_->status == Z_OK && stream.avail_out == room) {
    if (stream.avail_in == 0) {
      std::string& packed = state_->packed;
      state_->in.read(packed.data(), static_cast<std::streamsize>(packed.size()));
      stream.next_in = reinterpret_cast<Bytef*>(packed.data());
      stream.avail_in = static_cast<uInt>(state_->in.gcount());
      if (stream.avail_in == 0) break;
    }
    state_->status = inflate(&stream, Z_NO_FLUSH);
  }
  return room - stream.avail_out;
}

void Inflater::fail(int64_t made, int64_t wanted) const {
  bad(path_, "the compressed data are damaged or truncated (" + std::to_string(made) + " of " +
                 std::to_string(wanted) + " bytes); copy or export the file again");
}

}  // namespace larch::io
