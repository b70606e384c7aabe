// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstddef>
#include <string>
#include <type_traits>
#include <vector>

#include "larch/config/node.h"
#include "larch/data/vec.h"

/// How the parts of a model are declared, once, for everything that walks them: the file, JSON, the
/// description for people and the tables of README.md. A struct of numbers is declared by
///
///     template <class V>
///     void layout(V& v, Split& split) {
///       auto& [feature, threshold_mm] = split;
///       v("feature", feature, "index into the features");
///       v("threshold_mm", threshold_mm, "values above it go to the right");
///     }
///
/// in the namespace of the struct or in larch::models, and a model by its sections:
///
///     template <class V>
///     void sections(V& v, Stump& stump) {
///       v.kind({"stump", 1, "one split"});
///       v.section("split", stump.split, {"the split"});
///     }
///
/// The structured binding makes the compiler refuse a declaration that has forgotten a member. The
/// declarations stand beside the format and not in the structs, because the rooms that compute know
/// no files. A struct with fields() (larch/config/fields.h) is declared already.
///
/// A member may be an integer of any width, double, std::string, an enum with names, a struct that
/// is declared, and std::array, Vec3 and std::vector of these. Its name ends in its unit; "_q20"
/// means that the integer counts 2^-20.
namespace larch::models {

/// Text that is JSON: a string in the file, a value in JSON. Empty text is null.
struct JsonText {
  std::string& text;
};

/// The first `count` elements of an array as a list.
template <class T, size_t N>
struct FirstOf {
  int& count;
  std::array<T, N>& all;
};

/// Holds what a file says it is.
struct Kind {
  const char* name;
  uint32_t version;  ///< of the declaration; readers refuse another one
  const char* doc;
};

/// Holds what is declared of a section beside its name and its value. A section that is not
/// required may be missing, and programs that do not know it skip it.
struct About {
  const char* doc;
  bool required = true;
  /// The value is the one that models without the section have: it is left out. For what older
  /// programs do not know and must know where it is there.
  bool left_out = false;
};

/// A training that is not finished, and a digest of all that it depends on.
template <class Partial>
struct Checkpoint {
  std::string fingerprint;
  Partial partial;
};

/// The last enumerator of an enum whose names are given by to_string instead of enum_names.
template <class E>
inline constexpr E kLastEnumerator{};

/// The names of an enum's values.
template <class E>
const std::vector<EnumName<E>>& enumerators() {
  static const std::vector<EnumName<E>> all = [] {
    std::vector<EnumName<E>> names;
    if constexpr (config::HasEnumNames<E>) {
      for (const auto& entry : enum_names(static_cast<E*>(nullptr))) names.push_back(entry);
    } else {
      for (int i = 0; i <= static_cast<int>(kLastEnumerator<E>); ++i) {
        names.push_back({static_cast<E>(i), to_string(static_cast<E>(i))});
      }
    }
    return names;
  }();
  return all;
}

template <class E>
const char* enumerator_name(E value) {
  for (const auto& entry : enumerators<E>()) {
    if (entry.value == value) return entry.name;
  }
  return "unknown";
}

/// The elements of a list, whatever holds them.
template <class T>
struct Elements {};

template <class T>
struct Elements<std::vector<T>> {
  using Element = T;
  static constexpr bool kFixed = false;
  static constexpr size_t kMaximum = SIZE_MAX;
  static size_t size(const std::vector<T>& list) { return list.size(); }
  static T& at(std::vector<T>& list, size_t i) { return list[i]; }
  static void clear(std::vector<T>& list) { list.clear(); }
  static T& append(std::vector<T>& list) { return list.emplace_back(); }
};

template <class T, size_t N>
struct Elements<FirstOf<T, N>> {
  using Element = T;
  static constexpr bool kFixed = false;
  static constexpr size_t kMaximum = N;
  static size_t size(const FirstOf<T, N>& list) { return static_cast<size_t>(list.count); }
  static T& at(FirstOf<T, N>& list, size_t i) { return list.all[i]; }
  static void clear(FirstOf<T, N>& list) { list.count = 0; }
  static T& append(FirstOf<T, N>& list) { return list.all[static_cast<size_t>(list.count++)]; }
};

template <class T, size_t N>
struct Elements<std::array<T, N>> {
  using Element = T;
  static constexpr bool kFixed = true;
  static constexpr size_t kMaximum = N;
  static size_t size(const std::array<T, N>&) { return N; }
  static T& at(std::array<T, N>& list, size_t i) { return list[i]; }
};

template <class T>
struct Elements<Vec3<T>> {
  using Element = T;
  static constexpr bool kFixed = true;
  static constexpr size_t kMaximum = 3;
  static size_t size(const Vec3<T>&) { return 3; }
  static T& at(Vec3<T>& list, size_t i) { return list[static_cast<int>(i)]; }
};

template <class T>
concept IsList = requires {
  typename Elements<T>::Element;
};
template <class T>
concept IsScalar = std::is_arithmetic_v<T> || std::is_enum_v<T> || std::is_same_v<T, std::string>;
template <class T>
concept IsRecord = !IsList<T> && !IsScalar<T> && !std::is_same_v<T, JsonText>;

/// The declaration of a struct with fields().
template <class V, config::HasFields T>
void layout(V& v, T& value) {
  value.fields([&](auto&&... field) { (v(field.key, field.value, field.help), ...); });
}

/// Calls the method of a visitor that is for a value of this type: choice, integer, real, text,
/// json, list or record. record(value) is expected to call layout(visitor, value), which calls
/// visitor(name, member, doc) for each member.
template <class V, class T>
void visit(V& v, T& value) {
  if constexpr (std::is_enum_v<T>) {
    v.choice(value);
  } else if constexpr (std::is_same_v<T, bool>) {
    static_assert(!std::is_same_v<T, bool>, "declare an enum with two names instead of bool");
  } else if constexpr (std::is_integral_v<T>) {
    v.integer(value);
  } else if constexpr (std::is_same_v<T, double>) {
    v.real(value);
  } else if constexpr (std::is_same_v<T, std::string>) {
    v.text(value);
  } else if constexpr (std::is_same_v<T, JsonText>) {
    v.json(value);
  } else if constexpr (IsList<T>) {
    v.list(value);
  } else {
    v.record(value);
  }
}

}  // namespace larch::models
