// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include "larch/core/error.h"

namespace larch::models {

/// Appends numbers to a string, little-endian whatever the machine, without padding.
class ByteWriter {
 public:
  /// As many bytes as the type has.
  template <std::integral T>
  void integer(T value) {
    for (size_t i = 0; i < sizeof(T); ++i) {
      bytes_ += static_cast<char>(static_cast<uint64_t>(value) >> (8 * i) & 0xff);
    }
  }
  void u16(uint16_t value) { integer(value); }
  void u32(uint32_t value) { integer(value); }
  void u64(uint64_t value) { integer(value); }
  /// The 8 bytes of IEEE 754.
  void f64(double value) { integer(std::bit_cast<uint64_t>(value)); }
  /// Length in bytes as u32, then the bytes.
  void text(std::string_view value) {
    u32(static_cast<uint32_t>(value.size()));
    bytes_ += value;
  }
  void raw(std::string_view value) { bytes_ += value; }
  /// Of what is to come in all: a string that grows takes up to three times its length.
  void reserve(uint64_t bytes) { bytes_.reserve(static_cast<size_t>(bytes)); }

  const std::string& bytes() const { return bytes_; }
  std::string take() && { return std::move(bytes_); }

 private:
  std::string bytes_;
};

/// Reads the same numbers back; `what` names the piece in messages. Reading beyond the end throws
/// InputError.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  template <std::integral T>
  T integer() {
    uint64_t value = 0;
    const std::string_view piece = raw(sizeof(T));
    for (size_t i = 0; i < sizeof(T); ++i) {
      value |= uint64_t{static_cast<unsigned char>(piece[i])} << (8 * i);
    }
    return static_cast<T>(value);
  }
  uint16_t u16() { return integer<uint16_t>(); }
  uint32_t u32() { return integer<uint32_t>(); }
  uint64_t u64() { return integer<uint64_t>(); }
  double f64() { return std::bit_cast<double>(u64()); }
  std::string_view raw(uint64_t count) {
    if (count > remaining()) fail("it ends too early");
    const std::string_view piece = bytes_.substr(at_, static_cast<size_t>(count));
    at_ += static_cast<size_t>(count);
    return piece;
  }
  std::string text() {
    const uint32_t length = u32();
    return std::string(raw(length));
  }
  /// Reads how many entries of at least `smallest_entry` bytes follow, and refuses more than the
  /// remaining bytes can hold, so that nothing is allocated on the word of the file alone.
  size_t count(size_t smallest_entry) {
    const uint64_t entries = u64();
    if (entries > remaining() / smallest_entry) {
      fail("it claims " + std::to_string(entries) + " entries in " + std::to_string(remaining()) +
           " bytes");
    }
    return static_cast<size_t>(entries);
  }
  size_t remaining() const { return bytes_.size() - at_; }
  /// Throws InputError when bytes are left over.
  void finish() const {
    if (remaining() > 0) fail(std::to_string(remaining()) + " bytes are left over");
  }
  [[noreturn]] void fail(const std::string& problem) const {
    throw InputError(what_ + ": " + problem +
                     "; the file is damaged: copy it again or make it anew");
  }

 private:
  std::string_view bytes_;
  size_t at_ = 0;
  std::string what_;
};

}  // namespace larch::models
