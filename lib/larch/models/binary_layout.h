// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cmath>
#include <concepts>
#include <cstdint>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "larch/core/error.h"
#include "larch/models/container.h"
#include "larch/models/json_layout.h"
#include "larch/models/layout.h"

/// Declarations as bytes: members follow each other without gaps. Integers and enums have the width
/// of their type, double 8 bytes; a text is its length in bytes as u32 and UTF-8; a list is its
/// number of elements as u64 and the elements, those of a fixed length the elements alone.

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

/// Writes declared values.
class Encoder {
 public:
  template <class T>
  void operator()(const char*, T&& value, const char*) {
    visit(*this, value);
  }
  template <class T>
  void integer(T value) {
    out_.integer(value);
  }
  template <class E>
  void choice(E value) {
    out_.integer(static_cast<std::underlying_type_t<E>>(value));
  }
  void real(double value) {
    if (!std::isfinite(value)) throw InputError("a number of the model is not finite");
    out_.f64(value);
  }
  void text(const std::string& value) {
    check_utf8(value);
    out_.text(value);
  }
  void json(const JsonText& value) { text(normalised_json(value.text)); }
  template <class T>
  void list(T& value) {
    using Of = Elements<T>;
    if (!Of::kFixed) out_.u64(Of::size(value));
    for (size_t i = 0; i < Of::size(value); ++i) visit(*this, Of::at(value, i));
  }
  template <class T>
  void record(T& value) {
    layout(*this, value);
  }
  std::string take() && { return std::move(out_).take(); }

 private:
  ByteWriter out_;
};

/// The fewest bytes that a value of a declared type takes.
class SmallestSize {
 public:
  template <class T>
  static size_t of() {
    T value{};
    SmallestSize size;
    visit(size, value);
    return size.bytes_ > 0 ? size.bytes_ : 1;
  }

  template <class T>
  void operator()(const char*, T&& value, const char*) {
    visit(*this, value);
  }
  template <class T>
  void integer(T) {
    bytes_ += sizeof(T);
  }
  template <class E>
  void choice(E) {
    bytes_ += sizeof(E);
  }
  void real(double) { bytes_ += sizeof(double); }
  void text(const std::string&) { bytes_ += sizeof(uint32_t); }
  void json(const JsonText&) { bytes_ += sizeof(uint32_t); }
  template <class T>
  void list(T& value) {
    using Of = Elements<T>;
    if (!Of::kFixed) bytes_ += sizeof(uint64_t);
    if (Of::kFixed) {
      for (size_t i = 0; i < Of::size(value); ++i) visit(*this, Of::at(value, i));
    }
  }
  template <class T>
  void record(T& value) {
    layout(*this, value);
  }

 private:
  size_t bytes_ = 0;
};

/// Reads declared values from bytes that are not to be trusted. Throws InputError.
class Decoder {
 public:
  explicit Decoder(ByteReader in) : in_(std::move(in)) {}

  template <class T>
  void operator()(const char* name, T&& value, const char*) {
    name_ = name;
    visit(*this, value);
  }
  template <class T>
  void integer(T& value) {
    value = in_.integer<T>();
  }
  template <class E>
  void choice(E& value) {
    value = static_cast<E>(in_.integer<std::underlying_type_t<E>>());
    for (const auto& entry : enumerators<E>()) {
      if (entry.value == value) return;
    }
    in_.fail(std::string("unknown value of '") + name_ + "'");
  }
  void real(double& value) {
    value = in_.f64();
    if (!std::isfinite(value)) in_.fail("a number is not finite");
  }
  void text(std::string& value) {
    value = in_.text();
    check_utf8(value);
  }
  void json(const JsonText& value) {
    text(value.text);
    value.text = normalised_json(value.text);
  }
  template <class T>
  void list(T& value) {
    using Of = Elements<T>;
    if constexpr (Of::kFixed) {
      for (size_t i = 0; i < Of::size(value); ++i) visit(*this, Of::at(value, i));
    } else {
      const size_t count = in_.count(SmallestSize::of<typename Of::Element>());
      if (count > Of::kMaximum) {
        in_.fail("a list has more than " + std::to_string(Of::kMaximum) + " entries");
      }
      Of::clear(value);
      for (size_t i = 0; i < count; ++i) visit(*this, Of::append(value));
    }
  }
  template <class T>
  void record(T& value) {
    layout(*this, value);
  }
  /// Throws InputError when bytes are left over.
  void finish() const { in_.finish(); }

 private:
  ByteReader in_;
  const char* name_ = "";
};

/// Puts the sections of a model into a container.
class SectionWriter {
 public:
  explicit SectionWriter(Container& out) : out_(out) {}

  void kind(const Kind& kind) {
    out_.kind = kind.name;
    out_.kind_version = kind.version;
  }
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    if (about.left_out) return;
    Encoder encoder;
    visit(encoder, value);
    if (!out_.sections.emplace(name, Section{std::move(encoder).take(), about.required}).second) {
      throw std::logic_error("the section '" + name + "' is declared twice");
    }
  }

 private:
  Container& out_;
};

/// Takes the sections of a model out of a container. Throws InputError.
class SectionReader {
 public:
  explicit SectionReader(const Container& in) : in_(in) {}

  void kind(const Kind& kind) const {
    if (in_.kind != kind.name) {
      throw InputError("it is a model of the kind '" + in_.kind + "', not '" + kind.name + "'; " +
                       use_of_kind(in_.kind));
    }
    if (in_.kind_version != kind.version) {
      throw InputError(
          "it is version " + std::to_string(in_.kind_version) + " of a model '" + in_.kind +
          "', this program reads version " + std::to_string(kind.version) +
          (in_.kind_version > kind.version ? "; use a newer program" : "; train the model anew"));
    }
  }
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    if ((!about.required || about.left_out) && in_.sections.count(name) == 0) return;
    Decoder decoder(ByteReader(in_.at(name).bytes, "section '" + name + "'"));
    visit(decoder, value);
    decoder.finish();
    known_.insert(name);
  }
  /// Throws InputError when a section was not asked for and is required.
  void finish() const {
    for (const auto& [name, section] : in_.sections) {
      if (section.required && known_.count(name) == 0) {
        throw InputError("it needs the section '" + name +
                         "', which this program does not know; use a newer program");
      }
    }
  }

 private:
  const Container& in_;
  std::set<std::string, std::less<>> known_;
};

/// Returns a model as a container, and back. What the numbers mean is for the caller to check.
template <class M>
Container to_container(const M& model) {
  Container out;
  SectionWriter writer(out);
  // One declaration serves for reading and writing; the writer changes nothing.
  sections(writer, const_cast<M&>(model));
  return out;
}
template <class M>
M from_container(const Container& container) {
  M model;
  SectionReader reader(container);
  sections(reader, model);
  reader.finish();
  return model;
}

}  // namespace larch::models
