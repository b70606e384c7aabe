// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <limits>
#include <vector>

namespace larch {

/// One parameter: its name, where it lives, what it means and, for numbers, the closed range that
/// is allowed (of each element, for vectors). A struct lists its parameters once:
///
///     template <class F> void fields(F&& f) {
///       f(Field{"depth", depth, "maximum tree depth", 1, 32},
///         Field{"bag_fraction", bag_fraction, "share of the samples each tree sees", 0.0, 1.0});
///     }
///
/// The member's initialiser is the default. Members may be bool, int, int64_t, uint64_t, float,
/// double, std::string, Bytes, enums with names, std::array, std::vector, std::optional and structs
/// that have fields() themselves. Bounds are doubles: exact up to 2^53. What else is allowed is
/// said by the functions below, so that files, flags, schema and help have one rule.
template <class T>
struct Field {
  Field(const char* key, T& value, const char* help) : key(key), value(value), help(help) {}
  template <class A, class B>
  Field(const char* key, T& value, const char* help, A min, B max)
      : key(key), value(value), help(help), min(double(min)), max(double(max)) {}
  /// The flag must be given; for the flags of an executable, not for configuration keys.
  Field required() const {
    Field copy = *this;
    copy.is_required = true;
    return copy;
  }

  /// Returns an integer that is one of these.
  Field one_of(std::initializer_list<int64_t> values) const {
    Field copy = *this;
    copy.allowed = values;
    return copy;
  }
  /// Returns an integer that is odd.
  Field odd() const {
    Field copy = *this;
    copy.is_odd = true;
    return copy;
  }
  /// Returns a vector of one of these lengths.
  Field lengths(std::initializer_list<size_t> values) const {
    Field copy = *this;
    copy.allowed_lengths = values;
    return copy;
  }
  /// Returns a vector of at least one element.
  Field not_empty() const {
    Field copy = *this;
    copy.is_not_empty = true;
    return copy;
  }
  /// Returns a value as JSON, for those who would not guess how it is written: a list of structs.
  Field example(const char* json) const {
    Field copy = *this;
    copy.example_json = json;
    return copy;
  }
  /// Results do not depend on it, so that --skip-existing does not compare it: how something is
  /// computed, or what the names of the outputs tell already.
  Field no_effect_on_results() const {
    Field copy = *this;
    copy.has_effect = false;
    return copy;
  }

  /// Returns the name of a file that ends so: ".tsv,.csv", the usual one first. Forms show it;
  /// programs say for themselves what they refuse.
  Field endings(const char* all) const {
    Field copy = *this;
    copy.file_endings = all;
    return copy;
  }
  /// Asks for many images, so that the form for one image, as in 3D Slicer, leaves it out.
  Field of_lists() const {
    Field copy = *this;
    copy.is_of_lists = true;
    return copy;
  }

  const char* key;
  T& value;
  const char* help;
  double min = -std::numeric_limits<double>::infinity();
  double max = std::numeric_limits<double>::infinity();
  bool is_required = false;
  std::vector<int64_t> allowed{};  ///< empty: all within the bounds
  bool is_odd = false;
  std::vector<size_t> allowed_lengths{};  ///< empty: all
  bool is_not_empty = false;
  bool has_effect = true;
  const char* example_json = "";
  const char* file_endings = "";
  bool is_of_lists = false;
};

/// A value of an enum and its name in files and flags. Beside the enum, in its namespace:
///
///     constexpr auto enum_names(Routing*) {
///       return std::to_array<EnumName<Routing>>({{Routing::kSoft, "soft"}, {Routing::kCopy,
///       "copy"}});
///     }
template <class E>
struct EnumName {
  E value;
  const char* name;
};

}  // namespace larch
