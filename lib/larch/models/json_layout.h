// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "larch/config/config.h"
#include "larch/models/layout.h"

/// Declarations as JSON without loss: structs are objects, lists are arrays, enums are their names,
/// and doubles are hexadecimal strings, since decimals would be read back a little differently by
/// some programs.

namespace larch::models {

using config::Json;

/// Parses JSON; every error becomes an InputError that begins with `what`.
Json parse_json(std::string_view text, const std::string& what);

/// JSON text without the spaces and comments that it may have; "" stays "". Throws InputError.
std::string normalised_json(const std::string& text);

/// Throws InputError for text that is not UTF-8.
void check_utf8(const std::string& text);

/// "0x1.8p+1", whatever the locale.
std::string hex_float(double value);

/// Doubles as hexadecimal strings, exact, or as numbers for people.
enum class Reals { kHexadecimal, kDecimal };

/// Writes one declared value.
class JsonWriter {
 public:
  template <class T>
  static Json of(T& value, Reals reals = Reals::kHexadecimal) {
    Json json;
    JsonWriter writer(json, reals);
    visit(writer, value);
    return json;
  }
  JsonWriter(Json& json, Reals reals) : json_(json), reals_(reals) {}

  template <class T>
  void operator()(const char* name, T&& value, const char*) {
    json_[name] = of(value, reals_);
  }
  template <class T>
  void integer(T value) {
    json_ = value;
  }
  template <class E>
  void choice(E value) {
    json_ = enumerator_name(value);
  }
  void real(double value) {
    json_ = reals_ == Reals::kDecimal ? Json(value) : Json(hex_float(value));
  }
  void text(const std::string& value) {
    check_utf8(value);
    json_ = value;
  }
  void json(const JsonText& value) {
    json_ = value.text.empty() ? Json() : parse_json(value.text, "the JSON text in the model");
  }
  template <class T>
  void list(T& value) {
    json_ = Json::array();
    for (size_t i = 0; i < Elements<T>::size(value); ++i) {
      json_.push_back(of(Elements<T>::at(value, i), reals_));
    }
  }
  template <class T>
  void record(T& value) {
    json_ = Json::object();
    layout(*this, value);
  }

 private:
  Json& json_;
  const Reals reals_;
};

/// Writes the sections of a model as members of one object.
class JsonSectionWriter {
 public:
  explicit JsonSectionWriter(Json& out) : out_(out) {}

  void kind(const Kind& kind) {
    out_ = {{"format", std::string("larch-") + kind.name}, {"version", kind.version}};
  }
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    if (!about.left_out) out_[name] = JsonWriter::of(value);
  }

 private:
  Json& out_;
};

/// Returns a model as JSON.
template <class M>
Json model_to_json(const M& model) {
  Json out;
  JsonSectionWriter writer(out);
  // One declaration serves for reading and writing; the writer changes nothing.
  sections(writer, const_cast<M&>(model));
  return out;
}

}  // namespace larch::models
