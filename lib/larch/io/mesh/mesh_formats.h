// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "larch/data/mesh.h"
#include "larch/io/mesh/mesh_io.h"

namespace larch::io {

/// Readers take the bytes of a file (`path` is for messages) and throw InputError. Writers return
/// the bytes, and take `numbers` that write_mesh has checked. Frames as in mesh_io.h: LPS mm in
/// memory, the frame of the file is dealt with here.
Mesh parse_vtk(const std::string& path, std::string_view bytes);
Mesh parse_obj(const std::string& path, std::string_view bytes);
Mesh parse_gifti(const std::string& path, std::string_view bytes);
Mesh parse_ply(const std::string& path, std::string_view bytes);
Mesh parse_stl(const std::string& path, std::string_view bytes);

std::string format_vtk(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_obj(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_gifti(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_ply(const Mesh& mesh, std::span<const VertexNumbers> numbers);
std::string format_stl(const Mesh& mesh, std::span<const VertexNumbers> numbers);

/// A reader of words and lines that knows where the text ends.
class Words {
 public:
  Words(const std::string& path, std::string_view text) : path_(&path), text_(text) {}
  /// The next word; empty at the end.
  std::string_view word();
  /// The rest of the line, without its end.
  std::string_view line();
  /// The next word as a number; throws if there is none.
  double number();
  int64_t integer();
  /// Bytes that follow, after the end of a line was read.
  std::string_view bytes(int64_t count);
  int64_t left() const { return static_cast<int64_t>(text_.size() - at_); }
  bool end() const { return at_ >= text_.size(); }

 private:
  const std::string* path_;
  std::string_view text_;
  size_t at_ = 0;
};

/// Parses a whole word as a finite number; throws InputError.
double number_of(const std::string& path, std::string_view word);
int64_t integer_of(const std::string& path, std::string_view word);

/// Throws InputError unless 0 <= count and count * least_bytes <= available.
void check_count(const std::string& path, int64_t count, int64_t least_bytes, int64_t available,
                 const char* what);

/// Appends the fan of a polygon; indices are checked at the end by finish_mesh.
void add_polygon(Mesh& mesh, const std::vector<int64_t>& corners, const std::string& path);

/// Negates x and y of all vertices: RAS to LPS and back.
void flip_ras_lps(Mesh& mesh);

/// Checks indices and coordinates.
void finish_mesh(const Mesh& mesh, const std::string& path);

/// "%.9g", enough for float.
std::string short_number(double value);

/// Appends the bytes of a number, little- or big-endian.
void put_little(std::string& out, float value);
void put_little(std::string& out, uint32_t value);
void put_big(std::string& out, float value);
void put_big(std::string& out, int32_t value);

}  // namespace larch::io
