// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <set>
#include <string>
#include <type_traits>
#include <vector>

#include "larch/models/layout.h"

namespace larch::models {

/// Writes the declarations of kinds as tables for README.md: for each kind one of its sections, and
/// one of the fields of each section that no kind before it has in the same way. Of the names of
/// sections of parts, such as "trees/3/nodes", only the ends count.
class FieldTables {
 public:
  template <class... Models>
  static std::string of(Models... models) {
    FieldTables tables;
    const auto add = [&tables](auto& model) {
      sections(tables, model);
      tables.text_ += tables.fields_;
      tables.fields_.clear();
    };
    (add(models), ...);
    return tables.text_;
  }

  void kind(const Kind& kind) {
    text_ += std::string(text_.empty() ? "" : "\n") + "### `" + kind.name + "`, version " +
             std::to_string(kind.version) + ": " + kind.doc +
             "\n\n| section | required | what it holds |\n| --- | --- | --- |\n";
  }
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    text_ += "| `" + name + "` | " + (about.required ? "yes" : "no") + " | " + about.doc + " |\n";
    rows_.clear();
    visit(*this, value);
    if (!known_.insert(name.substr(name.rfind('/') + 1) + type_ + rows_).second) return;
    fields_ += "\n`" + name + "`: " + type_ + "\n";
    if (!rows_.empty()) fields_ += "\n| field | type | meaning |\n| --- | --- | --- |\n" + rows_;
  }

  template <class T>
  void operator()(const char* name, T&& value, const char* doc) {
    const std::string outer = path_;
    path_ += name;
    const size_t row = rows_.size();
    visit(*this, value);
    rows_.insert(row, "| `" + path_ + "` | " + type_ + " | " + doc + " |\n");
    path_ = outer;
  }
  template <class T>
  void integer(T) {
    type_ = (std::is_signed_v<T> ? "i" : "u") + std::to_string(8 * sizeof(T));
  }
  template <class E>
  void choice(E) {
    integer(std::underlying_type_t<E>{});
    std::string names;
    for (const auto& entry : enumerators<E>()) {
      names += (names.empty() ? ": " : ", ") + std::to_string(static_cast<int>(entry.value)) + " " +
               entry.name;
    }
    type_ += names;
  }
  void real(double) { type_ = "f64"; }
  void text(const std::string&) { type_ = "text"; }
  void json(const JsonText&) { type_ = "text, JSON"; }
  template <class T>
  void list(T&) {
    using Of = Elements<T>;
    typename Of::Element element{};
    const std::string outer = path_;
    if (!path_.empty()) path_ += "/";
    visit(*this, element);
    path_ = outer;
    const bool of_any_length = Of::kMaximum == SIZE_MAX;
    type_ = (Of::kFixed ? "" : std::string("list of ") + (of_any_length ? "" : "at most ")) +
            (of_any_length ? "" : std::to_string(Of::kMaximum) + " ") + type_;
  }
  template <class T>
  void record(T& value) {
    const std::string outer = path_;
    if (!path_.empty() && path_.back() != '/') path_ += "/";
    layout(*this, value);
    path_ = outer;
    type_ = "struct";
  }

 private:
  std::string text_, fields_, rows_, type_, path_;
  std::set<std::string> known_;  ///< sections with their fields
};

}  // namespace larch::models
