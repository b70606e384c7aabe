// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "larch/models/json_layout.h"

/// Declarations as text for people, made from the JSON that json_layout.h writes: the values of a
/// section with their paths, lists of structs as tables, and of long lists their length and first
/// entries. Lines have fewer than 100 columns.
namespace larch::models {

/// Describes the sections of a model.
class Describer {
 public:
  void kind(const Kind& kind);
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    if (!about.left_out) add(name, about.doc, JsonWriter::of(value, Reals::kDecimal));
  }
  /// Sections of parts, such as "levels/0/nodes", come last: a paragraph for each part.
  std::string finish() &&;

 private:
  void add(const std::string& name, const char* doc, const Json& value);

  std::string out_;
  std::vector<std::pair<std::string, std::vector<std::string>>> parts_;  ///< with their phrases
};

template <class M>
std::string description(const M& model) {
  Describer describer;
  // One declaration serves for reading and writing; the describer changes nothing.
  sections(describer, const_cast<M&>(model));
  return std::move(describer).finish();
}

}  // namespace larch::models
