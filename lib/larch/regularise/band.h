// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <bit>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/data/volume.h"

namespace larch::regularise {

/// A set of voxels, numbered in the order of memory. 1.5 bits for each voxel of the volume.
class VoxelSet {
 public:
  explicit VoxelSet(int64_t voxels) : words_((voxels + 63) / 64, 0) {}
  /// Not for several threads on neighbouring voxels.
  void insert(int64_t voxel) { words_[voxel / 64] |= uint64_t{1} << voxel % 64; }
  /// Call after the last insert; returns the number of voxels in the set.
  int64_t count();
  bool contains(int64_t voxel) const { return (words_[voxel / 64] >> voxel % 64 & 1) != 0; }
  /// Returns the number of a voxel of the set.
  uint32_t index(int64_t voxel) const {
    const uint64_t below = words_[voxel / 64] & ((uint64_t{1} << voxel % 64) - 1);
    return before_[voxel / 64] + static_cast<uint32_t>(std::popcount(below));
  }
  /// Returns the voxels in order.
  std::vector<int64_t> voxels() const;

 private:
  std::vector<uint64_t> words_;
  std::vector<uint32_t> before_;
};

/// 1 where the box of voxels within `reach` in each axis holds both a 0 and another value.
Volume<uint8_t> near_boundary(const Volume<uint8_t>& labels, int reach);

/// Connected components of a graph on 0 .. vertices-1: members grouped by component, components by
/// descending size, then by their first member.
struct Components {
  std::vector<uint32_t> members;
  std::vector<int64_t> first;  ///< start of each component in members, and the end

  int64_t count() const { return static_cast<int64_t>(first.size()) - 1; }
  std::span<const uint32_t> component(int64_t c) const {
    return {members.data() + first[c], static_cast<size_t>(first[c + 1] - first[c])};
  }
};

/// Disjoint sets whose root is their smallest member.
class DisjointSets {
 public:
  explicit DisjointSets(uint32_t size);
  void join(uint32_t a, uint32_t b);
  Components components();

 private:
  uint32_t root(uint32_t a);
  std::vector<uint32_t> parent_;
};

}  // namespace larch::regularise
