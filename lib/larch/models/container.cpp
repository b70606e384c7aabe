// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/container.h"

#include <algorithm>
#include <span>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/models/bytes.h"

namespace larch::models {
namespace {

constexpr std::string_view kMagic = "PBTREES\n";
constexpr std::string_view kEnd = "END.";
constexpr size_t kHeaderBytes = 32;
constexpr size_t kChunkBytes = 24;      // an empty chunk: id, flags, length, checksum, padding
constexpr uint64_t kMostChunks = 4096;  // names are looked up one by one
constexpr uint32_t kRequired = 1;

std::span<const uint8_t> as_bytes(std::string_view text) {
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size()};
}

std::string sha256(std::string_view bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  const auto digest = sha.digest();
  return {reinterpret_cast<const char*>(digest.data()), digest.size()};
}

size_t padding_after(size_t bytes) {
  return (8 - bytes % 8) % 8;
}

size_t chunk_bytes(size_t payload) {
  const size_t bytes = 16 + payload + 4;
  return bytes + padding_after(bytes);
}

void put_chunk(ByteWriter& out, const Chunk& chunk) {
  ByteWriter piece;
  piece.raw(chunk.id);
  piece.u32(chunk.required ? kRequired : 0);
  piece.u64(chunk.payload.size());
  piece.raw(chunk.payload);
  const uint32_t checksum = crc32c(as_bytes(piece.bytes()));
  piece.u32(checksum);
  piece.raw(std::string(padding_after(piece.bytes().size()), '\0'));
  out.raw(piece.bytes());
}

Chunk get_chunk(ByteReader& in, std::string_view all) {
  const size_t start = all.size() - in.remaining();
  Chunk chunk;
  chunk.id = std::string(in.raw(4));
  chunk.required = (in.u32() & kRequired) != 0;
  const uint64_t length = in.u64();
  if (length > in.remaining()) {
    in.fail("a chunk claims " + std::to_string(length) + " bytes, " +
            std::to_string(in.remaining()) + " are there");
  }
  chunk.payload = std::string(in.raw(length));
  const size_t end = all.size() - in.remaining();
  if (in.u32() != crc32c(as_bytes(all.substr(start, end - start)))) {
    in.fail("a chunk's checksum is wrong");
  }
  const std::string_view padding = in.raw(std::min(padding_after(end + 4), in.remaining()));
  if (std::any_of(padding.begin(), padding.end(), [](char c) { return c != 0; })) {
    in.fail("the space between chunks is not empty");
  }
  return chunk;
}

/// The fixed part at the start; returns the number of chunks.
uint64_t get_header(ByteReader& in, size_t size, Container& container) {
  if (size < kHeaderBytes || in.raw(kMagic.size()) != kMagic) {
    throw InputError("it is not a model of pbt-train; give a file that pbt-train wrote");
  }
  container.major = in.u16();
  container.minor = in.u16();
  if (container.major > kMajorVersion) {
    throw InputError("it has format version " + std::to_string(container.major) + "." +
                     std::to_string(container.minor) + ", this program reads up to " +
                     std::to_string(kMajorVersion) + ".x; use a newer program");
  }
  container.content = in.u32();
  const uint64_t length = in.u64();
  if (length != size) {
    in.fail("it should have " + std::to_string(length) + " bytes and has " + std::to_string(size));
  }
  const uint64_t chunks = in.u64();
  if (chunks > std::min<uint64_t>(kMostChunks, (size - kHeaderBytes) / kChunkBytes)) {
    in.fail("it claims " + std::to_string(chunks) + " chunks");
  }
  return chunks;
}

}  // namespace

const Chunk* Container::find(std::string_view id) const {
  const auto found =
      std::find_if(chunks.begin(), chunks.end(), [&](const Chunk& c) { return c.id == id; });
  return found == chunks.end() ? nullptr : &*found;
}

const Chunk& Container::at(std::string_view id) const {
  const Chunk* chunk = find(id);
  if (chunk == nullptr) {
    throw InputError("the part " + std::string(id) +
                     " is missing; the file is damaged: copy it again or train again");
  }
  return *chunk;
}

std::string encode_container(const Container& container) {
  size_t total = kHeaderBytes + chunk_bytes(32);
  for (const Chunk& chunk : container.chunks) total += chunk_bytes(chunk.payload.size());
  ByteWriter out;
  out.raw(kMagic);
  out.u16(container.major);
  out.u16(container.minor);
  out.u32(container.content);
  out.u64(total);
  out.u64(container.chunks.size() + 1);
  for (const Chunk& chunk : container.chunks) put_chunk(out, chunk);
  put_chunk(out, {std::string(kEnd), true, sha256(out.bytes())});
  return std::move(out).take();
}

Container decode_container(std::string_view bytes) {
  Container container;
  ByteReader in(bytes, "the model file");
  const uint64_t count = get_header(in, bytes.size(), container);
  for (uint64_t i = 0; i < count; ++i) {
    const size_t start = bytes.size() - in.remaining();
    Chunk chunk = get_chunk(in, bytes);
    if (chunk.id == kEnd) {
      if (chunk.payload != sha256(bytes.substr(0, start))) in.fail("its digest is wrong");
      if (i + 1 != count) in.fail("chunks follow its end");
      in.finish();
      return container;
    }
    if (container.find(chunk.id) != nullptr) in.fail("a chunk is there twice");
    container.chunks.push_back(std::move(chunk));
  }
  in.fail("its end is missing");
}

}  // namespace larch::models
