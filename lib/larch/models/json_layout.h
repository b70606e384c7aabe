// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/models/json_values.h"
#include "larch/models/layout.h"

/// Declarations as JSON without loss: structs are objects, lists are arrays, enums are their names,
/// and doubles are hexadecimal strings, since decimals would be read back a little differently by
/// some programs.
namespace larch::models {

/// Writes one declared value.
class JsonWriter {
 public:
  template <class T>
  static Json of(T& value) {
    Json json;
    JsonWriter writer(json);
    visit(writer, value);
    return json;
  }
  explicit JsonWriter(Json& json) : json_(json) {}

  template <class T>
  void operator()(const char* name, T&& value, const char*) {
    json_[name] = of(value);
  }
  template <class T>
  void integer(T value) {
    json_ = value;
  }
  template <class E>
  void choice(E value) {
    json_ = enumerator_name(value);
  }
  void real(double value) { json_ = hex_float(value); }
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
      json_.push_back(of(Elements<T>::at(value, i)));
    }
  }
  template <class T>
  void record(T& value) {
    json_ = Json::object();
    layout(*this, value);
  }

 private:
  Json& json_;
};

/// "larch-pbt" for the kind "pbt".
inline std::string json_format(const Kind& kind) {
  return std::string("larch-") + kind.name;
}

/// Writes the sections of a model as members of one object.
class JsonSectionWriter {
 public:
  explicit JsonSectionWriter(Json& out) : out_(out) {}

  void kind(const Kind& kind) { out_ = {{"format", json_format(kind)}, {"version", kind.version}}; }
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    if (!about.left_out) out_[name] = JsonWriter::of(value);
  }
  template <class T>
  void each(const std::string& prefix, std::vector<T>& parts, const About& about) {
    for (size_t i = 0; i < parts.size(); ++i) {
      section(prefix + "/" + std::to_string(i), parts[i], about);
    }
  }

 private:
  Json& out_;
};

/// A model as JSON.
template <class M>
Json model_to_json(const M& model) {
  Json out;
  JsonSectionWriter writer(out);
  // One declaration serves for reading and writing; the writer changes nothing.
  sections(writer, const_cast<M&>(model));
  return out;
}

}  // namespace larch::models
