// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/marching_cubes.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <stdexcept>
#include <utility>
#include <vector>

#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"

namespace larch::mesh {
namespace {

// The cell between eight voxels. Corner c lies at (c & 1, c >> 1 & 1, c >> 2 & 1). Edge
// 4 * axis + k runs along `axis` from the corner whose bits on axes (axis + 1) % 3 and
// (axis + 2) % 3 are the bits 0 and 1 of k.

/// The triangles of a cell: indices of its edges, counter-clockwise seen from outside.
struct CellCase {
  int triangles = 0;
  std::array<std::array<uint8_t, 3>, 8> edges{};
};

using Loop = std::vector<uint8_t>;

uint8_t edge_between(int corner0, int corner1) {
  const int difference = corner0 ^ corner1;
  const int axis = difference == 1 ? 0 : difference == 2 ? 1 : 2;
  const int lower = corner0 & corner1;
  return static_cast<uint8_t>(4 * axis + ((lower >> (axis + 1) % 3) & 1) +
                              2 * ((lower >> (axis + 2) % 3) & 1));
}

/// Returns the corners of face 2 * axis + side, counter-clockwise seen from outside the cell.
std::array<int, 4> face_corners(int face) {
  const int axis = face / 2, side = face % 2;
  const int u = 1 << (axis + 1) % 3, v = 1 << (axis + 2) % 3;
  const int base = side << axis;
  if (side == 1) return {base, base + u, base + u + v, base + v};
  return {base, base + v, base + u + v, base + u};
}

/// Bits of the two faces that an edge belongs to.
std::array<uint8_t, 12> faces_of_edges() {
  std::array<uint8_t, 12> faces{};
  for (int face = 0; face < 6; ++face) {
    const auto corners = face_corners(face);
    for (int k = 0; k < 4; ++k) {
      faces[edge_between(corners[k], corners[(k + 1) % 4])] |= static_cast<uint8_t>(1 << face);
    }
  }
  return faces;
}

/// Returns the loops in which the surface meets the faces of the cell. Going round a face, each run
/// of inside corners is cut off by one segment, from the edge where the run is entered to the edge
/// where it is left. An edge is entered on one of its faces and left on the other, so the segments
/// link to loops, and the neighbouring cell sees the same segments reversed.
std::vector<Loop> trace_loops(int inside) {
  std::array<int, 12> next;
  next.fill(-1);
  for (int face = 0; face < 6; ++face) {
    const auto corners = face_corners(face);
    const auto is_inside = [&](int k) { return (inside >> corners[k % 4] & 1) != 0; };
    for (int k = 0; k < 4; ++k) {
      if (!is_inside(k) || is_inside(k + 3)) continue;
      int last = k;
      while (is_inside(last + 1)) ++last;
      next[edge_between(corners[(k + 3) % 4], corners[k])] =
          edge_between(corners[last % 4], corners[(last + 1) % 4]);
    }
  }
  std::vector<Loop> loops;
  for (int start = 0; start < 12; ++start) {
    if (next[start] < 0) continue;
    Loop loop;
    for (int edge = start; next[edge] >= 0;) {
      loop.push_back(static_cast<uint8_t>(edge));
      const int following = next[edge];
      next[edge] = -1;
      edge = following;
    }
    loops.push_back(loop);
  }
  return loops;
}

/// Triangulates the part first..last of a loop. A diagonal between two edges of one face would lie
/// in that face, where the neighbouring cell may put the same diagonal: then four triangles would
/// share an edge. Such diagonals are not used. Returns false if there is no other way.
bool triangulate(const Loop& loop, int first, int last, CellCase& out) {
  static const auto faces = faces_of_edges();
  if (last == first + 1) return true;
  const int size = static_cast<int>(loop.size());
  const auto allowed = [&](int i, int j) {
    return j == i + 1 || (i == 0 && j == size - 1) || (faces[loop[i]] & faces[loop[j]]) == 0;
  };
  for (int k = first + 1; k < last; ++k) {
    if (!allowed(first, k) || !allowed(k, last)) continue;
    const int before = out.triangles;
    if (triangulate(loop, first, k, out) && triangulate(loop, k, last, out)) {
      out.edges.at(out.triangles++) = {loop[first], loop[k], loop[last]};
      return true;
    }
    out.triangles = before;
  }
  return false;
}

std::array<CellCase, 256> derive_cases() {
  std::array<CellCase, 256> cases;
  for (int inside = 0; inside < 256; ++inside) {
    for (const Loop& loop : trace_loops(inside)) {
      if (!triangulate(loop, 0, static_cast<int>(loop.size()) - 1, cases[inside])) {
        throw std::logic_error("marching cubes: a loop cannot be triangulated");
      }
    }
  }
  return cases;
}

/// The corner at the lower end of an edge.
int edge_corner(int edge) {
  const int axis = edge / 4;
  return (edge & 1) << (axis + 1) % 3 | (edge >> 1 & 1) << (axis + 2) % 3;
}

/// One case for each set of inside corners (bit c = corner c is inside).
const std::array<CellCase, 256>& cell_cases() {
  static const std::array<CellCase, 256> cases = derive_cases();
  return cases;
}

/// Holds what the algorithm asks of a voxel array: is it inside, and where is the surface on a
/// line.
struct ScalarField {
  const Volume<float>& volume;
  double iso;

  bool inside(int64_t i) const { return volume[i] >= iso && std::isfinite(volume[i]); }
  double crossing(int64_t i, int64_t j) const {
    const double a = volume[i], b = volume[j];
    const double t = (iso - a) / (b - a);
    constexpr double kMargin = 1e-3;
    return std::isfinite(t) ? std::clamp(t, kMargin, 1 - kMargin) : 0.5;
  }
};
struct MaskField {
  const Volume<uint8_t>& volume;

  bool inside(int64_t i) const { return volume[i] != 0; }
  double crossing(int64_t, int64_t) const { return 0.5; }
};

/// The lattice that is walked: the inside voxels' bounding box and one layer around it.
struct Box {
  Vec3i low{};   // may be -1
  Vec3i size{};  // lattice points; 0 if nothing is inside
};

template <class Field>
Box bounding_box(const Field& field) {
  const Vec3i size = field.volume.size();
  Vec3i low = size, high{-1, -1, -1};
  for (int z = 0; z < size.z; ++z) {
    for (int y = 0; y < size.y; ++y) {
      const int64_t row = field.volume.grid().linear({0, y, z});
      int first = 0, last = size.x - 1;
      while (first < size.x && !field.inside(row + first)) ++first;
      if (first == size.x) continue;
      while (!field.inside(row + last)) --last;
      low = {std::min(low.x, first), std::min(low.y, y), std::min(low.z, z)};
      high = {std::max(high.x, last), std::max(high.y, y), std::max(high.z, z)};
    }
  }
  if (high.x < 0) return {};
  return {low - Vec3i{1, 1, 1}, high - low + Vec3i{3, 3, 3}};
}

/// Where the vertices and triangles of each layer start. A layer owns the vertices on its own x and
/// y edges, those on the z edges to the next layer, and the triangles of the cells between the two.
struct LayerCounts {
  int64_t plane_vertices = 0, z_vertices = 0, triangles = 0;
};

template <class Field>
class Extractor {
 public:
  Extractor(const Field& field, const Context& context, const Vec3i& first = {})
      : field_(field), context_(context), first_(first) {}

  Mesh run() {
    const SurfaceSize size = count_all();
    check(size);
    mesh_.vertices_mm.resize(size.vertices);
    mesh_.triangles.resize(size.triangles);
    parallel_for(context_.threads, layers(), kGrain, [&](int64_t begin, int64_t end) {
      fill(static_cast<int>(begin), static_cast<int>(end));
    });
    return std::move(mesh_);
  }

  /// Finds the box, and where each of its layers starts.
  SurfaceSize count_all() {
    box_ = bounding_box(field_);
    offsets_.assign(layers(), {});
    parallel_for(context_.threads, layers(), kGrain, [&](int64_t begin, int64_t end) {
      count(static_cast<int>(begin), static_cast<int>(end));
    });
    return counts_to_offsets();
  }

 private:
  using Bits = std::vector<uint8_t>;
  static constexpr int64_t kGrain = 4;  // layers

  int layers() const { return std::max(0, box_.size.z - 1); }
  int64_t at(int x, int y) const { return x + static_cast<int64_t>(box_.size.x) * y; }
  int64_t layer_points() const { return static_cast<int64_t>(box_.size.x) * box_.size.y; }

  /// 1 for the inside points of a layer; the border of the lattice is outside.
  void read_layer(int z, Bits& bits) const {
    bits.assign(layer_points(), 0);
    if (z == 0 || z == box_.size.z - 1) return;
    for (int y = 1; y + 1 < box_.size.y; ++y) {
      const int64_t row = field_.volume.grid().linear({box_.low.x, box_.low.y + y, box_.low.z + z});
      for (int x = 1; x + 1 < box_.size.x; ++x) bits[at(x, y)] = field_.inside(row + x) ? 1 : 0;
    }
  }

  /// Calls visit(point, axis) for each x or y edge of a layer that crosses the surface.
  template <class Visit>
  void plane_edges(const Bits& bits, Visit&& visit) const {
    for (int y = 0; y < box_.size.y; ++y) {
      for (int x = 0; x < box_.size.x; ++x) {
        const int64_t p = at(x, y);
        if (x + 1 < box_.size.x && bits[p] != bits[p + 1]) visit(x, y, 0);
        if (y + 1 < box_.size.y && bits[p] != bits[p + box_.size.x]) visit(x, y, 1);
      }
    }
  }
  template <class Visit>
  void z_edges(const Bits& low, const Bits& high, Visit&& visit) const {
    for (int y = 0; y < box_.size.y; ++y) {
      for (int x = 0; x < box_.size.x; ++x) {
        if (low[at(x, y)] != high[at(x, y)]) visit(x, y);
      }
    }
  }
  /// Calls visit(x, y, case) for each cell that the surface passes.
  template <class Visit>
  void cells(const Bits& low, const Bits& high, Visit&& visit) const {
    const int64_t row = box_.size.x;
    for (int y = 0; y + 1 < box_.size.y; ++y) {
      int left = 0;  // the four corners at x, as bits 0, 2, 4, 6
      for (int x = 0; x < box_.size.x; ++x) {
        const int64_t p = at(x, y);
        const int right = low[p] | low[p + row] << 2 | high[p] << 4 | high[p + row] << 6;
        const int inside = left | right << 1;
        left = right;
        if (x > 0 && inside != 0 && inside != 255) visit(x - 1, y, inside);
      }
    }
  }

  void count(int begin, int end) {
    Bits low, high;
    read_layer(begin, low);
    for (int z = begin; z < end; ++z) {
      read_layer(z + 1, high);
      LayerCounts& counts = offsets_[z];
      plane_edges(low, [&](int, int, int) { ++counts.plane_vertices; });
      z_edges(low, high, [&](int, int) { ++counts.z_vertices; });
      cells(low, high,
            [&](int, int, int inside) { counts.triangles += cell_cases()[inside].triangles; });
      std::swap(low, high);
    }
  }

  SurfaceSize counts_to_offsets() {
    SurfaceSize size;
    for (LayerCounts& layer : offsets_) {
      const LayerCounts counts = layer;
      layer = {size.vertices, size.vertices + counts.plane_vertices, size.triangles};
      size.vertices += counts.plane_vertices + counts.z_vertices;
      size.triangles += counts.triangles;
    }
    return size;
  }

  static void check(const SurfaceSize& size) {
    constexpr int64_t kMaximum = std::numeric_limits<int32_t>::max();
    if (size.vertices <= kMaximum && size.triangles <= kMaximum) return;
    throw MemoryError("marching cubes: the surface would have " + std::to_string(size.triangles) +
                      " triangles, more than 2^31 - 1; resample the volume to larger voxels");
  }

  /// Returns the vertex on the edge from lattice point (x, y, z) along `axis`.
  Vec3d vertex(int x, int y, int z, int axis) const {
    const Vec3i a = box_.low + Vec3i{x, y, z};
    Vec3i b = a;
    ++b[axis];
    const Grid& grid = field_.volume.grid();
    const double t = grid.contains(a) && grid.contains(b)
                         ? field_.crossing(grid.linear(a), grid.linear(b))
                         : 0.5;
    Vec3d index = (first_ + a).cast<double>();
    index[axis] += t;
    return world_from_index(grid, index);
  }

  void fill(int begin, int end) {
    Bits low, high;
    std::vector<int32_t> x_ids[2], y_ids[2], z_ids(layer_points());
    for (auto* ids : {x_ids, y_ids}) {
      ids[0].resize(layer_points());
      ids[1].resize(layer_points());
    }
    const auto number_plane = [&](int z, const Bits& bits) {
      if (z >= static_cast<int>(offsets_.size())) return;  // the last layer has no vertices
      int64_t id = offsets_[z].plane_vertices;
      plane_edges(bits, [&](int x, int y, int axis) {
        (axis == 0 ? x_ids : y_ids)[1][at(x, y)] = static_cast<int32_t>(id++);
      });
    };
    const bool mirrored = determinant(field_.volume.grid().direction) < 0;
    read_layer(begin, high);
    number_plane(begin, high);
    for (int z = begin; z < end; ++z) {
      std::swap(low, high);
      std::swap(x_ids[0], x_ids[1]);
      std::swap(y_ids[0], y_ids[1]);
      read_layer(z + 1, high);
      number_plane(z + 1, high);
      plane_edges(low, [&](int x, int y, int axis) {
        mesh_.vertices_mm[(axis == 0 ? x_ids : y_ids)[0][at(x, y)]] = vertex(x, y, z, axis);
      });
      int64_t id = offsets_[z].z_vertices;
      z_edges(low, high, [&](int x, int y) {
        mesh_.vertices_mm[id] = vertex(x, y, z, 2);
        z_ids[at(x, y)] = static_cast<int32_t>(id++);
      });
      int64_t out = offsets_[z].triangles;
      cells(low, high, [&](int x, int y, int inside) {
        const CellCase& cell = cell_cases()[inside];
        for (int t = 0; t < cell.triangles; ++t) {
          Vec3i triangle;
          for (int k = 0; k < 3; ++k) {
            const int edge = cell.edges[t][k], corner = edge_corner(edge);
            const int64_t p = at(x + (corner & 1), y + (corner >> 1 & 1));
            const int upper = corner >> 2;
            triangle[k] = edge < 4 ? x_ids[upper][p] : edge < 8 ? y_ids[upper][p] : z_ids[p];
          }
          if (mirrored) std::swap(triangle.y, triangle.z);
          mesh_.triangles[out++] = triangle;
        }
      });
    }
  }

  const Field& field_;
  const Context& context_;
  const Vec3i first_;
  Box box_;
  std::vector<LayerCounts> offsets_;
  Mesh mesh_;
};

}  // namespace

Mesh marching_cubes(const Volume<float>& field, double iso, const Context& context) {
  const ScalarField scalar{field, iso};
  Mesh mesh = Extractor(scalar, context).run();
  mesh.frame = field.grid().frame;
  return mesh;
}

Mesh marching_cubes(const Volume<uint8_t>& mask, const Context& context, const Vec3i& first) {
  const MaskField field{mask};
  Mesh mesh = Extractor(field, context, first).run();
  mesh.frame = mask.grid().frame;
  return mesh;
}

int64_t SurfaceSize::bytes() const {
  return vertices * static_cast<int64_t>(sizeof(Vec3d)) +
         triangles * static_cast<int64_t>(sizeof(Vec3i));
}

std::string describe(const SurfaceSize& size) {
  return std::to_string(size.vertices) + " vertices and " + std::to_string(size.triangles) +
         " triangles";
}

SurfaceSize surface_size(const Volume<uint8_t>& mask, const Context& context) {
  const MaskField field{mask};
  return Extractor(field, context).count_all();
}

int64_t marching_cubes_bytes(const SurfaceSize& size, const Vec3i& volume, int threads) {
  // Two layers of bits and five of the vertices' numbers, for each thread that finds layers.
  const int64_t per_point = 2 + 5 * static_cast<int64_t>(sizeof(int32_t));
  const int64_t points = (volume.x + int64_t{2}) * (volume.y + int64_t{2});
  const int64_t layers = volume.z + int64_t{1};
  return size.bytes() + per_point * points * std::min<int64_t>(threads, layers) +
         layers * static_cast<int64_t>(sizeof(LayerCounts));
}

void require_memory(const SurfaceSize& size, int64_t bytes) {
  const auto free_bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()));
  if (bytes <= free_bytes) return;
  throw MemoryError("surface mesh: needs " + std::to_string(bytes) + " bytes for " +
                    describe(size) + ", free are " + std::to_string(free_bytes) +
                    "; leave the mesh out, or run where more is free");
}

}  // namespace larch::mesh
