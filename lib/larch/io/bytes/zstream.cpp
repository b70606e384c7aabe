// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/bytes/zstream.h"

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <memory>
#include <new>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <libdeflate.h>
#include <unistd.h>
#include <zlib.h>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/core/parallel.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"

namespace larch::io {
namespace {

constexpr size_t kMaximumAtOnce = size_t{1} << 30;  ///< zlib counts in 32 bits

/// Returns the number by which zlib knows a kind of streams. A stream that is to be read as zlib's
/// may be gzip's.
int window_bits(Packing packing, bool reading) {
  if (packing == Packing::kDeflate) return -MAX_WBITS;
  if (packing == Packing::kGzip) return 16 + MAX_WBITS;
  return reading ? 32 + MAX_WBITS : MAX_WBITS;
}

[[noreturn]] void no_memory(const std::string& path) {
  throw MemoryError("'" + path + "': " + out_of_memory_text(0));
}

[[noreturn]] void damaged(const std::string& path, const char* reason) {
  bad(path, std::string("the compressed data are damaged or truncated (") + reason +
                "); copy or export the file again");
}

}  // namespace

struct ZReader::State {
  ~State() {
    if (has_stream) inflateEnd(&stream);
    if (file >= 0) ::close(file);
  }

  int file = -1;           ///< below 0: all bytes are in `ahead`
  int64_t size = 0;        ///< bytes of the file from where it was opened
  int64_t left = 0;        ///< bytes of the file that are not in `ahead` yet
  std::string buffer;      ///< bytes of the file that were read ahead
  std::string_view ahead;  ///< those that are not used yet
  z_stream stream{};
  bool has_stream = false, ended = false;
  bool was_tried = false;          ///< to be unpacked at once
  std::optional<Sha256> sha256{};  ///< of all that was read
};

ZReader::ZReader(const std::string& path, int64_t start, size_t buffer_bytes) : path_(path) {
  open(start, buffer_bytes);
  fill();
  refuse_placeholder(path, state_->ahead);
  if (state_->ahead.substr(0, 2) == "\x1f\x8b") packing_ = Packing::kGzip;
  begin_stream();
}

ZReader::ZReader(const std::string& path, int64_t start, Packing packing, bool hashes)
    : path_(path) {
  open(hashes ? 0 : start, size_t{1} << 18);
  if (hashes) {
    state_->sha256.emplace();
    state_->was_tried = start > 0;
    skip(start);
  }
  packing_ = packing;
  begin_stream();
}

ZReader::ZReader(std::string_view bytes, Packing packing, const std::string& path)
    : path_(path), packing_(packing), state_(std::make_unique<State>()) {
  state_->ahead = bytes;
  state_->size = static_cast<int64_t>(bytes.size());
  begin_stream();
}

ZReader::~ZReader() = default;

void ZReader::open(int64_t start, size_t buffer_bytes) {
  state_ = std::make_unique<State>();
  if (!is_file(path_)) bad_path(path_, "no such file; check the path");
  state_->file = ::open(path_.c_str(), O_RDONLY | O_CLOEXEC);
  if (state_->file < 0 || ::lseek(state_->file, start, SEEK_SET) != start) {
    bad_path(path_, std::string(std::strerror(errno)) + "; check its permissions");
  }
  state_->size = state_->left = std::max<int64_t>(file_bytes(path_) - start, 0);
  state_->buffer.resize(buffer_bytes);
}

void ZReader::begin_stream() {
  if (packing_ == Packing::kNone) return;
  if (inflateInit2(&state_->stream, window_bits(packing_, true)) != Z_OK) no_memory(path_);
  state_->has_stream = true;
}

int64_t ZReader::most_bytes() const {
  return compressed() ? state_->size * kMaximumDeflate : state_->size;
}

/// Reads ahead once all that was read is used. False at the end.
bool ZReader::fill() {
  State& state = *state_;
  if (!state.ahead.empty()) return true;
  if (state.file < 0) return false;
  const ssize_t got = ::read(state.file, state.buffer.data(), state.buffer.size());
  if (got < 0) bad_path(path_, std::strerror(errno));
  state.left = std::max<int64_t>(state.left - got, 0);
  state.ahead = std::string_view(state.buffer).substr(0, static_cast<size_t>(got));
  if (state.sha256) state.sha256->update(state.ahead.data(), state.ahead.size());
  return got > 0;
}

/// Streams of gzip may follow one another; what else comes behind a stream is none of it.
void ZReader::end_of_stream() {
  State& state = *state_;
  state.ended = true;
  if (packing_ != Packing::kGzip || !fill()) return;
  if (state.ahead[0] != '\x1f' || (state.ahead.size() > 1 && state.ahead[1] != '\x8b')) return;
  state.ended = inflateReset(&state.stream) != Z_OK;
}

/// Unpacks a file of one stream that ends with the next `bytes`: with libdeflate, in a third of
/// zlib's time. False if it is anything else, damaged or too large, which is looked at once: zlib
/// goes on where it was.
bool ZReader::read_at_once(void* to, int64_t bytes) try {
  constexpr int64_t kLeast = int64_t{1} << 20, kMost = int64_t{1} << 29;
  State& state = *state_;
  if (packing_ != Packing::kGzip || state.file < 0 || bytes < kLeast || bytes > kMost ||
      state.size > bytes + kLeast || state.stream.total_out > static_cast<uLong>(kLeast) ||
      state.ended || std::exchange(state.was_tried, true)) {
    return false;
  }
  const auto before = static_cast<size_t>(state.stream.total_out),
             after = static_cast<size_t>(bytes);
  const auto size = static_cast<size_t>(state.size), left = static_cast<size_t>(state.left);
  if (!host_memory_allows(before + 2 * after + size)) return false;
  const auto packed = std::make_unique_for_overwrite<char[]>(size);
  const auto out = std::make_unique_for_overwrite<char[]>(before + after);
  const int64_t start = ::lseek(state.file, 0, SEEK_CUR) - (state.size - state.left);
  if (::pread(state.file, packed.get(), size, start) != state.size) return false;
  const std::unique_ptr<libdeflate_decompressor, decltype(&libdeflate_free_decompressor)> inflater(
      libdeflate_alloc_decompressor(), &libdeflate_free_decompressor);
  size_t taken = 0, made = 0;
  if (!inflater ||
      libdeflate_gzip_decompress_ex(inflater.get(), packed.get(), size, out.get(), before + after,
                                    &taken, &made) != LIBDEFLATE_SUCCESS ||
      taken != size || made != before + after) {
    return false;
  }
  std::memcpy(to, out.get() + before, after);
  if (state.sha256) state.sha256->update(packed.get() + (size - left), left);
  ::lseek(state.file, 0, SEEK_END);
  state.left = 0;
  state.ahead = {};
  state.ended = true;
  return true;
} catch (const std::bad_alloc&) {
  return false;
}

int64_t ZReader::read(void* to, int64_t bytes) {
  if (read_at_once(to, bytes)) return bytes;
  State& state = *state_;
  int64_t done = 0;
  while (done < bytes && !state.ended) {
    const auto room = std::min(static_cast<size_t>(bytes - done), kMaximumAtOnce);
    char* next = static_cast<char*>(to) + done;
    if (!fill()) {
      if (compressed()) damaged(path_, "unexpected end of file");
      break;
    }
    if (!compressed()) {
      const size_t count = std::min(room, state.ahead.size());
      std::memcpy(next, state.ahead.data(), count);
      state.ahead.remove_prefix(count);
      done += static_cast<int64_t>(count);
      continue;
    }
    z_stream& stream = state.stream;
    const size_t given = std::min(state.ahead.size(), kMaximumAtOnce);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(state.ahead.data()));
    stream.avail_in = static_cast<uInt>(given);
    stream.next_out = reinterpret_cast<Bytef*>(next);
    stream.avail_out = static_cast<uInt>(room);
    const int status = inflate(&stream, Z_NO_FLUSH);
    state.ahead.remove_prefix(given - stream.avail_in);
    done += static_cast<int64_t>(room - stream.avail_out);
    if (status == Z_MEM_ERROR) no_memory(path_);
    if (status == Z_STREAM_END) {
      end_of_stream();
    } else if (status != Z_OK) {
      damaged(path_, stream.msg != nullptr ? stream.msg : "invalid stream");
    }
  }
  return done;
}

void ZReader::skip(int64_t bytes) {
  State& state = *state_;
  if (!compressed()) {
    do {
      const auto taken = std::min(bytes, static_cast<int64_t>(state.ahead.size()));
      state.ahead.remove_prefix(static_cast<size_t>(taken));
      bytes -= taken;
    } while (bytes > 0 && state.sha256 && fill());
    if (bytes > state.left || ::lseek(state.file, bytes, SEEK_CUR) < 0) {
      bad(path_, "the file ends before its data; truncated?");
    }
    state.left -= bytes;
    return;
  }
  std::vector<char> block(1 << 16);
  while (bytes > 0) {
    const int64_t got = read(block.data(), std::min<int64_t>(bytes, 1 << 16));
    if (got == 0) bad(path_, "the file ends before its data; truncated?");
    bytes -= got;
  }
}

std::string ZReader::sha256() {
  while (fill()) state_->ahead = {};
  return hex(state_->sha256->digest());
}

int64_t ZReader::finish() {
  if (!compressed()) return 0;
  int64_t bytes = 0;
  std::vector<char> block(1 << 16);
  for (int i = 0; i < 1024; ++i) bytes += read(block.data(), 1 << 16);
  return bytes;
}

namespace {

constexpr size_t kWindow = 32768;
/// Blocks that are compressed at a time, per thread and at most: every thread is kept busy, and the
/// memory is bounded.
constexpr int kBlocksPerThread = 4, kBlocksAtOnce = 64;

/// Returns bytes as a stream, or a piece of one that ends on a byte boundary with an empty stored
/// block.
std::string deflated(std::string_view bytes, Packing packing, std::string_view dictionary,
                     bool is_last, const std::string& path) {
  z_stream stream{};
  const int bits = window_bits(packing, false);
  if (deflateInit2(&stream, 6, Z_DEFLATED, bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) no_memory(path);
  const auto start_of = [](std::string_view text) {
    return reinterpret_cast<Bytef*>(const_cast<char*>(text.data()));
  };
  if (!dictionary.empty()) {
    deflateSetDictionary(&stream, start_of(dictionary), static_cast<uInt>(dictionary.size()));
  }
  std::string out, block(size_t{1} << 18, '\0');
  bool is_full = true;
  while (is_full || !bytes.empty()) {
    if (stream.avail_in == 0) {
      const std::string_view next = bytes.substr(0, kMaximumAtOnce);
      stream.next_in = start_of(next);
      stream.avail_in = static_cast<uInt>(next.size());
      bytes.remove_prefix(next.size());
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    deflate(&stream, !bytes.empty() ? Z_NO_FLUSH : is_last ? Z_FINISH : Z_SYNC_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
    is_full = stream.avail_out == 0 || stream.avail_in > 0;
  }
  deflateEnd(&stream);
  return out;
}

}  // namespace

std::string packed(std::string_view bytes, Packing packing, const std::string& path) {
  return deflated(bytes, packing, {}, /*is_last=*/true, path);
}

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
  const auto block_of = [&](size_t i) { return all.substr(i * block_bytes, block_bytes); };
  std::vector<std::string> blocks(count);
  std::vector<uLong> sums(count);
  parallel_for_each(threads_, static_cast<int64_t>(count), 1, [&](size_t i) {
    const std::string_view block = block_of(i),
                           before = i == 0 ? std::string_view(dictionary_)
                                           : all.substr(i * block_bytes - kWindow, kWindow);
    blocks[i] = deflated(block, Packing::kDeflate, before, last && i + 1 == count, path_);
    sums[i] =
        crc32(0, reinterpret_cast<const Bytef*>(block.data()), static_cast<uInt>(block.size()));
  });
  for (size_t i = 0; i < count; ++i) {
    const auto length = static_cast<z_off_t>(block_of(i).size());
    crc_ = static_cast<uint32_t>(crc32_combine(crc_, sums[i], length));
    put(blocks[i].data(), blocks[i].size());
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
    static_assert(std::endian::native == std::endian::little);
    const uint32_t trailer[] = {crc_, static_cast<uint32_t>(bytes_)};
    put(trailer, sizeof trailer);
  }
  std::FILE* file = file_;
  file_ = nullptr;
  errno = 0;
  if (std::fclose(file) != 0) fail(errno);
}

}  // namespace larch::io
