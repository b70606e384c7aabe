// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "larch/data/mesh.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/mesh/mesh_io.h"

namespace larch::io {

/// Readers take the bytes of a file (`path` is for messages) and throw InputError; read_mesh checks
/// the vertices and the indices of what they return. Writers return the bytes, and take `numbers`
/// that write_mesh has checked. Frames as in mesh_io.h: LPS mm in memory, the frame of the file is
/// dealt with here.
Mesh parse_vtk(const std::string& path, std::string_view bytes, const MeshWarn& warn);
Mesh parse_obj(const std::string& path, std::string_view bytes, const MeshWarn& warn);
Mesh parse_gifti(const std::string& path, std::string_view bytes, const MeshWarn& warn);
Mesh parse_ply(const std::string& path, std::string_view bytes, const MeshWarn& warn);
Mesh parse_stl(const std::string& path, std::string_view bytes, const MeshWarn& warn);

std::string base64(std::string_view bytes);

std::string format_vtk(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_obj(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_gifti(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_ply(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_vtp(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_stl(const Mesh& mesh, std::span<const VertexNumbers> numbers);

/// How a file holds its numbers.
enum class Encoding { kText, kLittleEndian, kBigEndian };

/// A type of binary numbers.
struct NumberType {
  int bytes = 0;
  double (*get)(const FieldReader& from, int64_t offset) = nullptr;
};
template <class T>
constexpr NumberType kNumberType{sizeof(T), [](const FieldReader& from, int64_t offset) -> double {
                                   return static_cast<double>(from.get<T>(offset));
                                 }};

/// A reader of words and lines that knows where the text ends.
class Words {
 public:
  Words(const std::string& path, std::string_view text) : path_(&path), text_(text) {}
  /// Returns the next word; empty at the end.
  std::string_view word();
  /// The rest of the line, without its end.
  std::string_view line();
  /// Returns the next word as a number; throws if there is none.
  double number() { return number_of(word()); }
  int64_t integer() { return integer_of(word()); }
  /// Returns the next number, in text or binary.
  double number(const NumberType& type, Encoding encoding);
  /// `count` numbers. Binary ones follow directly.
  std::vector<double> numbers(int64_t count, const NumberType& type, Encoding encoding);
  /// Three numbers in text.
  Vec3d position();
  /// Returns a whole word as a number; throws InputError.
  double number_of(std::string_view word) const;
  int64_t integer_of(std::string_view word) const;
  int64_t left() const { return static_cast<int64_t>(text_.size() - at_); }
  bool end() const { return at_ >= text_.size(); }

 private:
  FieldReader take(int64_t bytes, Encoding encoding);

  const std::string* path_;
  std::string_view text_;
  size_t at_ = 0;
};

/// Tells whether a number counts something: it is whole and not negative.
inline bool is_count(double number) {
  return number >= 0 && number == std::floor(number);
}

/// Throws InputError unless 0 <= count and count * least_bytes <= available.
void check_count(const std::string& path, int64_t count, int64_t least_bytes, int64_t available,
                 const char* what);

/// Returns the index of a vertex, which may come later. Throws InputError unless it is a whole
/// number of 31 bits.
int32_t index_of(double corner, const std::string& path);

/// Appends the fan of a polygon. Throws InputError as index_of, and for fewer than three corners.
void add_polygon(Mesh& mesh, std::span<const double> corners, const std::string& path);

/// Vertices from three numbers each.
std::vector<Vec3d> positions_of(std::span<const double> numbers);

/// Tells whether a comment says that coordinates are RAS, as 3D Slicer writes it.
bool says_ras(std::string_view text);

/// Negates x and y of all vertices: RAS to LPS and back.
void flip_ras_lps(Mesh& mesh);

/// Appends the bytes of a number, or of three.
template <class T>
void put(std::string& out, T value, Encoding encoding = Encoding::kLittleEndian) {
  if (encoding == Encoding::kBigEndian) value = byte_swapped(value);
  out.append(reinterpret_cast<const char*>(&value), sizeof value);
}
template <class T>
void put(std::string& out, const Vec3<T>& values, Encoding encoding = Encoding::kLittleEndian) {
  for (int i = 0; i < 3; ++i) put(out, values[i], encoding);
}

}  // namespace larch::io
