// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <map>
#include <string>
#include <vector>

#include "larch/models/json_values.h"
#include "larch/models/layout.h"

/// Declarations as text for people: a struct becomes a line "title  name value, name value", a list
/// of structs what Show says.
namespace larch::models {

/// A name and a value to print.
struct Shown {
  std::string name, value;
};

/// "name" with its unit split off and put after the value: spacing_mm 2 is "spacing 2 mm". An
/// integer whose name ends in "_q20" is divided by 2^20.
Shown shown(const std::string& name, const std::string& value);
Shown shown_fixed_point(const std::string& name, double value);
std::string decimal(double value);

/// A line of phrases joined by ", ", broken before column 96; `title` stands before them.
std::string phrase_line(const std::string& title, const std::vector<std::string>& phrases);

/// "tree/depth 6" for every number and word of a configuration.
std::vector<std::string> json_phrases(const Json& json);

/// A column of a table.
struct Column {
  std::string name;
  std::vector<std::string> cells;
};
/// Columns as wide as their widest cell, names broken at spaces, rows numbered and cut at
/// column 96.
std::string table(std::vector<Column> columns);

/// What a description tells beside the declared values, computed by the caller.
struct Facts {
  std::vector<std::pair<std::string, std::vector<std::string>>> lines;  ///< title and phrases
  std::map<std::string, std::vector<Column>> columns;                   ///< per section
};

/// The members of one struct. Structs and JSON inside it become lines of their own.
class MemberTexts {
 public:
  template <class T>
  void operator()(const char* name, T&& value, const char*) {
    name_ = name;
    visit(*this, value);
  }
  template <class T>
  void integer(T value) {
    const Shown scaled = shown_fixed_point(name_, static_cast<double>(value));
    add(scaled.value.empty() ? shown(name_, std::to_string(value)) : scaled);
  }
  template <class E>
  void choice(E value) {
    add(shown(name_, enumerator_name(value)));
    choices.emplace_back(enumerator_name(value));
  }
  void real(double value) { add(shown(name_, decimal(value))); }
  void text(const std::string& value) { add(shown(name_, value)); }
  void json(const JsonText& value) {
    if (value.text.empty()) return;
    lines += phrase_line(name_, json_phrases(parse_json(value.text, "the JSON text")));
  }
  template <class T>
  void list(T& value) {
    using Of = Elements<T>;
    if constexpr (Of::kFixed && std::is_arithmetic_v<typename Of::Element>) {
      std::string all;
      for (size_t i = 0; i < Of::size(value); ++i) {
        all += (i > 0 ? " x " : "") + decimal(static_cast<double>(Of::at(value, i)));
      }
      add(shown(name_, all));
    } else {
      add(shown(name_, std::to_string(Of::size(value))));
    }
  }
  template <class T>
  void record(T& value) {
    const std::string title = name_;
    MemberTexts inside;
    layout(inside, value);
    lines += inside.as_lines(title);
  }
  /// The scalars as one line, then the lines of the structs inside.
  std::string as_lines(const std::string& title) const;
  /// The values, with their names where the values alone do not tell.
  std::string as_phrase() const;

  std::vector<Shown> members;
  std::vector<std::string> choices;  ///< the values of the enums among them
  std::string lines;

 private:
  void add(Shown member) { members.push_back(std::move(member)); }

  std::string name_;
};

/// Writes the description of the sections of a model.
class Describer {
 public:
  Describer(std::string& out, const Facts& facts) : out_(out), facts_(facts) {}

  void kind(const Kind& kind);
  template <class T>
  void section(const std::string& name, T&& value, const About& about) {
    using Value = std::remove_cvref_t<T>;
    if (about.left_out) return;
    if constexpr (IsList<Value>) {
      describe_list(name, value, about.show);
    } else {
      MemberTexts texts;
      if constexpr (IsRecord<Value>) {
        layout(texts, value);
        out_ += texts.as_lines(name);
      } else {
        texts(name.c_str(), value, about.doc);
        out_ += texts.members.empty() ? texts.lines : phrase_line(name, {texts.as_phrase()});
      }
    }
  }
  template <class T>
  void each(const std::string& prefix, std::vector<T>& parts, const About& about) {
    for (size_t i = 0; i < parts.size(); ++i) {
      section(prefix + "/" + std::to_string(i), parts[i], about);
    }
  }
  /// Tables come after all lines.
  void finish() { out_ += tables_; }

 private:
  template <class T>
  void describe_list(const std::string& name, T& list, Show show) {
    std::vector<MemberTexts> rows;
    if constexpr (IsRecord<typename Elements<T>::Element>) {
      for (size_t i = 0; i < Elements<T>::size(list); ++i) {
        layout(rows.emplace_back(), Elements<T>::at(list, i));
      }
    }
    show_list(name, Elements<T>::size(list), rows, show);
  }
  void show_list(const std::string& name, size_t size, const std::vector<MemberTexts>& rows,
                 Show show);
  std::vector<Column> columns_of(const std::string& section,
                                 const std::vector<MemberTexts>& rows) const;

  std::string& out_;
  const Facts& facts_;
  std::string tables_;
};

/// A model for people, lines under 100 columns.
template <class M>
std::string description(const M& model, const Facts& facts) {
  std::string out;
  Describer describer(out, facts);
  // One declaration serves for reading and writing; the describer changes nothing.
  sections(describer, const_cast<M&>(model));
  describer.finish();
  return out;
}

}  // namespace larch::models
