// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/mesh/sphere_template.h"

#include <algorithm>
#include <map>

#include "larch/core/portable_math.h"

namespace larch::mesh {
namespace {

constexpr int kMiddle = 10, kEnd = 2 * kMiddle;  ///< the faces of the cube lie at 0 and kEnd

using Place = std::array<int, 3>;  ///< on the surface of the cube

/// Returns the level that adds a place: corners of quads, centres, middles of edges.
int level_of(const Place& at) {
  constexpr int kLevels[] = {0, 2, 1};
  return kLevels[at[0] % 2 + at[1] % 2 + at[2] % 2];
}

Vec3d on_sphere(const Place& at) {
  Vec3d v;
  for (int axis = 0; axis < 3; ++axis) {
    const double turns = (at[static_cast<size_t>(axis)] - kMiddle) / (8.0 * kMiddle);
    v[axis] = sine_of_turns(turns) / cosine_of_turns(turns);
  }
  return v / norm(v);
}

/// Numbers of places, those of coarse levels first.
std::map<Place, int> number_places(std::vector<Vec3d>& unit) {
  std::map<Place, int> numbers;
  const auto is_end = [](int k) { return k == 0 || k == kEnd; };
  for (int level = 0; level < kTemplateLevels; ++level) {
    for (int z = 0; z <= kEnd; ++z) {
      for (int y = 0; y <= kEnd; ++y) {
        for (int x = 0; x <= kEnd; ++x) {
          const Place at{x, y, z};
          if (!(is_end(x) || is_end(y) || is_end(z)) || level_of(at) != level) continue;
          numbers[at] = static_cast<int>(unit.size());
          unit.push_back(on_sphere(at));
        }
      }
    }
  }
  return numbers;
}

/// The template on its way.
struct Builder {
  SphereTemplate out;
  std::map<Place, int> numbers = number_places(out.unit);

  void set_parents(int level, int child, const std::array<int, 4>& parents) {
    auto& all = out.levels[static_cast<size_t>(level)].parents;
    all.resize(static_cast<size_t>(kTemplateVertices[level] - kTemplateVertices[level - 1]));
    auto& of = all[static_cast<size_t>(child - kTemplateVertices[level - 1])];
    for (size_t i = 0; i < 4; ++i) of[i] = static_cast<uint16_t>(parents[i]);
  }
  /// The quad of a face at (i, j).
  void add_quad(size_t axis, int side, int i, int j) {
    const auto number = [&](int u, int v) {
      Place at{};
      at[axis] = side;
      at[(axis + 1) % 3] = i + u;
      at[(axis + 2) % 3] = j + v;
      return numbers.at(at);
    };
    const auto add = [&](size_t level, int a, int b, int c) {
      if (side == 0) std::swap(b, c);
      out.levels[level].triangles.push_back({a, b, c});
    };
    const int c[] = {number(0, 0), number(2, 0), number(2, 2), number(0, 2)};
    const int edges[] = {number(1, 0), number(2, 1), number(1, 2), number(0, 1)};
    const int centre = number(1, 1);
    add(0, c[0], c[1], c[2]);
    add(0, c[0], c[2], c[3]);
    set_parents(1, centre, {c[0], c[1], c[2], c[3]});
    for (int k = 0; k < 4; ++k) {
      const int from = c[k], to = c[(k + 1) % 4];
      add(1, from, to, centre);
      add(2, from, edges[k], centre);
      add(2, edges[k], to, centre);
      const auto [low, high] = std::minmax(from, to);
      set_parents(2, edges[k], {low, high, low, high});
    }
  }
};

/// Each ring begins with its lowest vertex.
std::vector<Ring> rings_of(const std::vector<Vec3i>& triangles, int vertices) {
  std::vector<std::map<int, int>> next(static_cast<size_t>(vertices));
  for (const Vec3i& t : triangles) {
    for (int k = 0; k < 3; ++k) next[static_cast<size_t>(t[k])][t[(k + 1) % 3]] = t[(k + 2) % 3];
  }
  std::vector<Ring> rings;
  for (const auto& around : next) {
    Ring& ring = rings.emplace_back();
    int at = around.begin()->first;
    for (size_t i = 0; i < around.size(); ++i, at = around.at(at)) {
      ring.neighbours[ring.count++] = static_cast<uint16_t>(at);
    }
  }
  return rings;
}

}  // namespace

const SphereTemplate& sphere_template() {
  static const SphereTemplate made = [] {
    Builder builder;
    for (size_t axis = 0; axis < 3; ++axis)
      for (const int side : {0, kEnd})
        for (int i = 0; i < kEnd; i += 2)
          for (int j = 0; j < kEnd; j += 2) builder.add_quad(axis, side, i, j);
    for (size_t l = 0; l < kTemplateLevels; ++l) {
      TemplateLevel& level = builder.out.levels[l];
      level.rings = rings_of(level.triangles, kTemplateVertices[l]);
    }
    return std::move(builder.out);
  }();
  return made;
}

int template_level_of(const Mesh& mesh) {
  for (int level = 0; level < kTemplateLevels; ++level) {
    const auto& wanted = sphere_template().levels[static_cast<size_t>(level)].triangles;
    if (mesh.vertices_mm.size() == static_cast<size_t>(kTemplateVertices[level]) &&
        mesh.triangles == wanted) {
      return level;
    }
  }
  return -1;
}

void add_vertices(int level, const std::vector<Vec3d>& shape, const Mat3& turn,
                  std::vector<Vec3d>& vertices) {
  for (const auto& parents : sphere_template().levels[static_cast<size_t>(level)].parents) {
    vertices.push_back(placed_child(shape.data(), turn, vertices.data(), parents.data(),
                                    static_cast<int>(vertices.size())));
  }
}

int flipped_triangles(int level, const std::vector<Vec3d>& vertices) {
  const TemplateLevel& of = sphere_template().levels[static_cast<size_t>(level)];
  std::vector<Vec3d> normals;
  for (size_t v = 0; v < of.rings.size(); ++v) {
    normals.push_back(vertex_normal(of.rings[v], vertices.data(), static_cast<int>(v)));
  }
  return static_cast<int>(std::count_if(
      of.triangles.begin(), of.triangles.end(),
      [&](const Vec3i& t) { return is_flipped(vertices.data(), normals.data(), t.x, t.y, t.z); }));
}

}  // namespace larch::mesh
