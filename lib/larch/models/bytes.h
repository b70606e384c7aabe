// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <string>
#include <string_view>

#include "larch/core/error.h"

namespace larch::models {

/// Appends numbers to a string, little-endian whatever the machine, without padding.
class ByteWriter {
 public:
  void u8(uint8_t value) { put(value, 1); }
  void u16(uint16_t value) { put(value, 2); }
  void u32(uint32_t value) { put(value, 4); }
  void u64(uint64_t value) { put(value, 8); }
  void i16(int16_t value) { put(static_cast<uint16_t>(value), 2); }
  void i32(int32_t value) { put(static_cast<uint32_t>(value), 4); }
  /// The 8 bytes of IEEE 754.
  void f64(double value) { u64(std::bit_cast<uint64_t>(value)); }
  /// Length in bytes as u32, then the bytes.
  void text(std::string_view value) {
    u32(static_cast<uint32_t>(value.size()));
    bytes_ += value;
  }
  void raw(std::string_view value) { bytes_ += value; }

  const std::string& bytes() const { return bytes_; }
  std::string take() && { return std::move(bytes_); }

 private:
  void put(uint64_t value, int count) {
    for (int i = 0; i < count; ++i) bytes_ += static_cast<char>(value >> (8 * i) & 0xff);
  }

  std::string bytes_;
};

/// Reads the same numbers back; `what` names the piece in messages. Reading beyond the end throws
/// InputError.
class ByteReader {
 public:
  ByteReader(std::string_view bytes, std::string what) : bytes_(bytes), what_(std::move(what)) {}

  uint8_t u8() { return static_cast<uint8_t>(get(1)); }
  uint16_t u16() { return static_cast<uint16_t>(get(2)); }
  uint32_t u32() { return static_cast<uint32_t>(get(4)); }
  uint64_t u64() { return get(8); }
  int16_t i16() { return static_cast<int16_t>(u16()); }
  int32_t i32() { return static_cast<int32_t>(u32()); }
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
                     "; the file is damaged: copy it again or train again");
  }

 private:
  uint64_t get(int count) {
    const std::string_view piece = raw(static_cast<uint64_t>(count));
    uint64_t value = 0;
    for (int i = 0; i < count; ++i) {
      value |= uint64_t{static_cast<unsigned char>(piece[static_cast<size_t>(i)])} << (8 * i);
    }
    return value;
  }

  std::string_view bytes_;
  size_t at_ = 0;
  std::string what_;
};

}  // namespace larch::models
