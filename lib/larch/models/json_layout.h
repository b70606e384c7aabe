// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/models/json_values.h"
#include "larch/models/layout.h"

/// Declarations as JSON without loss: structs are objects, lists are arrays, enums are their names,
/// and doubles are hexadecimal strings, since decimals would be read back a little differently by
/// some programs. Reading accepts decimals too.
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

/// Reads one declared value. Every member must be there and no other may be. Throws InputError that
/// names the member with its path.
class JsonReader {
 public:
  JsonReader(const Json& json, std::string path) : json_(json), path_(std::move(path)) {}

  template <class T>
  void operator()(const char* name, T&& value, const char*) {
    const std::string path = path_ + "/" + name;
    const auto found = json_.find(name);
    if (found == json_.end()) bad_value(path, "is missing");
    ++members_;
    JsonReader member(*found, path);
    visit(member, value);
  }
  template <class T>
  void integer(T& value) {
    value = models::integer<T>(json_, path_);
  }
  template <class E>
  void choice(E& value) {
    const std::string name = models::text(json_, path_);
    for (const auto& entry : enumerators<E>()) {
      if (name != entry.name) continue;
      value = entry.value;
      return;
    }
    bad_value(path_, "has the unknown value '" + name + "'");
  }
  void real(double& value) { value = models::real(json_, path_); }
  void text(std::string& value) { value = models::text(json_, path_); }
  void json(const JsonText& value) { value.text = json_.is_null() ? "" : json_.dump(); }
  template <class T>
  void list(T& value) {
    using Of = Elements<T>;
    if (!json_.is_array()) bad_value(path_, "is not a list");
    if (Of::kFixed ? json_.size() != Of::kMost : json_.size() > Of::kMost) {
      bad_value(path_, "has not " + std::to_string(Of::kMost) + " entries" +
                           (Of::kFixed ? "" : " or fewer"));
    }
    if constexpr (!Of::kFixed) Of::clear(value);
    for (size_t i = 0; i < json_.size(); ++i) {
      JsonReader element(json_[i], path_ + "/" + std::to_string(i));
      if constexpr (Of::kFixed) {
        visit(element, Of::at(value, i));
      } else {
        visit(element, Of::append(value));
      }
    }
  }
  template <class T>
  void record(T& value) {
    if (!json_.is_object()) bad_value(path_, "is not an object");
    layout(*this, value);
    if (members_ != json_.size()) bad_value(path_, "has a member that is not known");
  }

 private:
  const Json& json_;
  std::string path_;
  size_t members_ = 0;
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

/// The other way. Throws InputError.
class JsonSectionReader {
 public:
  explicit JsonSectionReader(const Json& in) : in_(in) {
    if (!in.is_object()) throw InputError("the exported model is not a JSON object");
  }

  void kind(const Kind& kind) const {
    if (text(member("format"), "format") != json_format(kind)) {
      bad_value("format", "is not " + json_format(kind));
    }
    if (integer<uint32_t>(member("version"), "version") != kind.version) {
      throw InputError("the exported model is of another version than " +
                       std::to_string(kind.version) + "; use the program that wrote it");
    }
  }
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    if ((!about.required || about.left_out) && !in_.contains(name)) return;
    ++sections_;
    JsonReader reader(member(name), name);
    visit(reader, value);
  }
  template <class T>
  void each(const std::string& prefix, std::vector<T>& parts, const About& about) {
    parts.clear();
    for (std::string name = prefix + "/0"; in_.contains(name);
         name = prefix + "/" + std::to_string(parts.size())) {
      section(name, parts.emplace_back(), about);
    }
  }
  void finish() const {
    constexpr size_t kAboutTheFormat = 2;
    if (sections_ + kAboutTheFormat != in_.size()) {
      throw InputError("the exported model has a section that this program does not know");
    }
  }

 private:
  const Json& member(const std::string& name) const {
    const auto found = in_.find(name);
    if (found == in_.end()) bad_value(name, "is missing");
    return *found;
  }

  const Json& in_;
  size_t sections_ = 0;
};

/// A model as JSON, and back. What the numbers mean is for the caller to check.
template <class M>
Json model_to_json(const M& model) {
  Json out;
  JsonSectionWriter writer(out);
  // One declaration serves for reading and writing; the writer changes nothing.
  sections(writer, const_cast<M&>(model));
  return out;
}
template <class M>
M model_from_json(const Json& json) {
  M model;
  JsonSectionReader reader(json);
  sections(reader, model);
  reader.finish();
  return model;
}

}  // namespace larch::models
