// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <concepts>
#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <variant>
#include <vector>

#include "larch/config/fields.h"
#include "larch/config/text.h"

namespace larch {
enum class PathRole : int;  // lib/larch/app/outputs/paths.h
}

namespace larch::config {

enum class Kind { kBool, kInteger, kNumber, kString, kEnum, kBytes, kObject, kVector, kOptional };

using Scalar = std::variant<bool, int64_t, uint64_t, double, std::string>;

/// A parameter without its C++ type, bound to the object it was made from, which must outlive it.
/// Everything that reads or writes parameters walks these nodes, so that it is compiled once.
struct Node {
  Kind kind = Kind::kObject;
  std::string key, help;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool required = false;
  std::vector<int64_t> allowed{};         ///< of an integer; empty: all within the bounds
  bool odd = false;                       ///< of an integer
  std::vector<size_t> allowed_lengths{};  ///< of a vector; empty: all
  bool not_empty = false;                 ///< of a vector
  bool has_effect = true;                 ///< on the results
  bool of_lists = false;                  ///< it asks for many images
  std::string example{};                  ///< JSON; mostly empty
  std::string endings{};                  ///< of a file: ".tsv,.csv"; mostly empty

  // Scalars. Integers are passed as int64_t, or uint64_t where unsigned; enums by name.
  std::function<Scalar()> get{};
  std::function<void(const Scalar&)> set{};
  bool is_unsigned = false;
  bool is_float = false;  ///< 4 bytes, not 8
  int64_t type_min = 0;   ///< range of the integer type
  uint64_t type_max = 0;  ///< range of the integer type
  std::vector<std::string> choices{};
  std::optional<PathRole> path{};

  std::vector<Node> members{};  ///< of an object, in the order of declaration

  // Vectors; an optional is a vector of at most one element.
  std::function<size_t()> size{};
  std::function<void(size_t)> resize{};
  std::function<Node(size_t)> at{};
  std::function<Node()> prototype{};  ///< a new element with its defaults, kept alive by the node
  std::optional<size_t> fixed_size{};
  std::shared_ptr<void> owner{};  ///< of a prototype: the element that it describes
};

template <class T>
concept HasFields = requires(T& t) {
  t.fields([](auto&&...) {});
};

template <class T>
concept HasEnumNames = std::is_enum_v<T> && requires {
  enum_names(static_cast<T*>(nullptr));
};

template <class T>
concept IsPath = requires(T& t) {
  T::kPathRole;
  { t.path } -> std::convertible_to<std::string>;
};

namespace detail {
template <class T>
struct IsVector : std::false_type {};
template <class T>
struct IsVector<std::vector<T>> : std::true_type {};
template <class T, size_t N>
struct IsVector<std::array<T, N>> : std::true_type {};
template <class T>
struct IsOptional : std::false_type {};
template <class T>
struct IsOptional<std::optional<T>> : std::true_type {};
}  // namespace detail

template <class T>
Node describe(T& value);

namespace detail {

template <class T>
void describe_number(Node& n, T& value) {
  if constexpr (std::is_same_v<T, bool>) {
    n.kind = Kind::kBool;
    n.get = [&value] { return Scalar(value); };
    n.set = [&value](const Scalar& s) { value = std::get<bool>(s); };
  } else if constexpr (std::is_floating_point_v<T>) {
    n.kind = Kind::kNumber;
    n.get = [&value] { return Scalar(static_cast<double>(value)); };
    n.set = [&value](const Scalar& s) { value = static_cast<T>(std::get<double>(s)); };
    if constexpr (sizeof(T) < sizeof(double)) {
      n.is_float = true;
      n.min = -static_cast<double>(std::numeric_limits<T>::max());
      n.max = std::numeric_limits<T>::max();
    }
  } else {
    using Wide = std::conditional_t<std::is_unsigned_v<T>, uint64_t, int64_t>;
    n.kind = Kind::kInteger;
    n.is_unsigned = std::is_unsigned_v<T>;
    // NOLINTNEXTLINE(bugprone-signed-char-misuse): int8_t is a number here, not a character
    n.type_min = static_cast<int64_t>(std::numeric_limits<T>::min());
    n.type_max = static_cast<uint64_t>(std::numeric_limits<T>::max());
    n.get = [&value] { return Scalar(static_cast<Wide>(value)); };
    n.set = [&value](const Scalar& s) { value = static_cast<T>(std::get<Wide>(s)); };
  }
}

template <class T>
void describe_enum(Node& n, T& value) {
  n.kind = Kind::kEnum;
  for (const auto& item : enum_names(static_cast<T*>(nullptr))) n.choices.emplace_back(item.name);
  n.get = [&value]() -> Scalar {
    for (const auto& item : enum_names(static_cast<T*>(nullptr))) {
      if (item.value == value) return std::string(item.name);
    }
    throw std::logic_error("an enum value has no name");
  };
  n.set = [&value](const Scalar& s) {
    for (const auto& item : enum_names(static_cast<T*>(nullptr))) {
      if (std::get<std::string>(s) == item.name) value = item.value;
    }
  };
}

template <class E>
std::function<Node()> prototype_of() {
  return [] {
    auto element = std::make_shared<E>();
    Node n = describe(*element);
    n.owner = element;
    return n;
  };
}

template <class T>
void describe_vector(Node& n, T& value) {
  using E = typename T::value_type;
  static_assert(!std::is_same_v<E, bool>, "use std::vector<int> or an enum");
  n.kind = Kind::kVector;
  n.size = [&value] { return value.size(); };
  n.at = [&value](size_t i) { return describe(value[i]); };
  n.prototype = prototype_of<E>();
  if constexpr (requires { value.resize(size_t{1}); }) {
    n.resize = [&value](size_t count) {
      value.clear();
      value.resize(count);
    };
  } else {
    n.fixed_size = value.size();
    n.resize = [](size_t) {};
  }
}

template <class T>
void describe_optional(Node& n, T& value) {
  n.kind = Kind::kOptional;
  n.size = [&value] { return value ? size_t{1} : size_t{0}; };
  n.at = [&value](size_t) { return describe(*value); };
  n.prototype = prototype_of<typename T::value_type>();
  n.resize = [&value](size_t count) {
    if (count == 0) value.reset();
    if (count == 1 && !value) value.emplace();
  };
}

/// Returns a node that was made by hand, for a parameter that is known at run time only.
inline Node describe_field(const Node& node) {
  return node;
}

template <class T>
Node describe_field(const Field<T>& field) {
  Node n = describe(const_cast<std::remove_const_t<T>&>(field.value));
  n.key = field.key;
  n.help = field.help;
  n.required = field.is_required;
  n.allowed = field.allowed;
  n.odd = field.is_odd;
  n.allowed_lengths = field.allowed_lengths;
  n.not_empty = field.is_not_empty;
  n.has_effect = field.has_effect;
  n.example = field.example_json;
  n.endings = field.file_endings;
  n.of_lists = field.is_of_lists;
  if (field.min > n.min) n.min = field.min;
  if (field.max < n.max) n.max = field.max;
  return n;
}

}  // namespace detail

/// "6, 26" of the numbers 6 and 26.
template <class T>
std::string list_text(const std::vector<T>& numbers, const std::string& between = ", ") {
  std::string text;
  for (const T number : numbers) text += (text.empty() ? "" : between) + std::to_string(number);
  return text;
}

/// Returns the tree of nodes of `value`.
template <class T>
Node describe(T& value) {
  Node n;
  if constexpr (IsPath<T>) {
    n.kind = Kind::kString;
    n.path = T::kPathRole;
    n.get = [&value] { return Scalar(value.path); };
    n.set = [&value](const Scalar& s) { value.path = std::get<std::string>(s); };
  } else if constexpr (std::is_same_v<T, std::string>) {
    n.kind = Kind::kString;
    n.get = [&value] { return Scalar(value); };
    n.set = [&value](const Scalar& s) { value = std::get<std::string>(s); };
  } else if constexpr (std::is_same_v<T, Bytes>) {
    n.kind = Kind::kBytes;
    n.type_max = static_cast<uint64_t>(std::numeric_limits<int64_t>::max());
    n.get = [&value] { return Scalar(value.count); };
    n.set = [&value](const Scalar& s) { value.count = std::get<int64_t>(s); };
  } else if constexpr (std::is_arithmetic_v<T>) {
    detail::describe_number(n, value);
  } else if constexpr (std::is_enum_v<T>) {
    static_assert(HasEnumNames<T>, "declare enum_names(E*) beside the enum");
    detail::describe_enum(n, value);
  } else if constexpr (detail::IsVector<T>::value) {
    detail::describe_vector(n, value);
  } else if constexpr (detail::IsOptional<T>::value) {
    detail::describe_optional(n, value);
  } else {
    static_assert(HasFields<T>, "a parameter type needs fields()");
    n.kind = Kind::kObject;
    value.fields(
        [&n](const auto&... field) { (n.members.push_back(detail::describe_field(field)), ...); });
  }
  return n;
}

/// For writing: nothing is changed through the nodes that are only read from.
template <class T>
Node describe(const T& value) {
  return describe(const_cast<T&>(value));
}

}  // namespace larch::config
