// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "larch/core/digest.h"
#include "larch/data/grid.h"

namespace larch {

/// A view of voxels in x-fastest order, without geometry: what kernels take.
template <class T>
struct VolumeView {
  T* data = nullptr;
  Vec3i size{};

  LARCH_HD int64_t voxels() const { return static_cast<int64_t>(size.x) * size.y * size.z; }
  LARCH_HD int64_t linear(const Vec3i& at) const {
    return at.x + static_cast<int64_t>(size.x) * (at.y + static_cast<int64_t>(size.y) * at.z);
  }
  LARCH_HD T& operator()(const Vec3i& at) const { return data[linear(at)]; }
  /// A view of mutable voxels is also one of constant voxels.
  template <class U>
  requires(std::is_same_v<U, T> && !std::is_const_v<T>) LARCH_HD operator VolumeView<const U>()
      const {
    return {data, size};
  }
};

/// Allocates for std::vector, which then leaves values of simple types as they are where none are
/// given: large memory is first touched where it is filled, by several threads.
template <class T>
struct Unfilled : std::allocator<T> {
  template <class U>
  struct rebind {
    using other = Unfilled<U>;
  };
  template <class U, class... A>
  void construct(U* at, A&&... from) {
    if constexpr (sizeof...(A) > 0) {
      ::new (static_cast<void*>(at)) U(std::forward<A>(from)...);
    } else if constexpr (std::is_trivially_default_constructible_v<U>) {
      ::new (static_cast<void*>(at)) U;
    } else {
      ::new (static_cast<void*>(at)) U();
    }
  }
};

/// An image on the host: a grid and one value per voxel. Invariant: voxels.size() == grid.voxels().
template <class T>
class Volume {
 public:
  Volume() = default;
  explicit Volume(const Grid& grid, T fill = T{})
      : grid_(grid), voxels_(static_cast<size_t>(grid.voxels()), fill) {}
  /// Returns voxels that hold anything, for a caller that writes every one. Tests run with
  /// MALLOC_PERTURB_, which shows the voxels that a caller forgets.
  static Volume unfilled(const Grid& grid) {
    static_assert(std::is_trivially_copyable_v<T>);
    Volume volume;
    volume.grid_ = grid;
    volume.voxels_.resize(static_cast<size_t>(grid.voxels()));
    return volume;
  }

  const Grid& grid() const { return grid_; }
  /// Replaces the geometry; the size must stay the same.
  void set_geometry(const Grid& grid) {
    const Vec3i size = grid_.size;
    grid_ = grid;
    grid_.size = size;
  }
  const Vec3i& size() const { return grid_.size; }
  int64_t voxels() const { return static_cast<int64_t>(voxels_.size()); }
  bool empty() const { return voxels_.empty(); }

  T* data() { return voxels_.data(); }
  const T* data() const { return voxels_.data(); }
  T& operator[](int64_t linear_index) { return voxels_[static_cast<size_t>(linear_index)]; }
  const T& operator[](int64_t linear_index) const {
    return voxels_[static_cast<size_t>(linear_index)];
  }
  T& operator()(const Vec3i& at) { return (*this)[grid_.linear(at)]; }
  const T& operator()(const Vec3i& at) const { return (*this)[grid_.linear(at)]; }
  auto begin() { return voxels_.begin(); }
  auto end() { return voxels_.end(); }
  auto begin() const { return voxels_.begin(); }
  auto end() const { return voxels_.end(); }

  VolumeView<T> view() { return {voxels_.data(), grid_.size}; }
  VolumeView<const T> view() const { return {voxels_.data(), grid_.size}; }

 private:
  Grid grid_{};
  std::vector<T, Unfilled<T>> voxels_;
};

/// Returns the values f(voxel) on the grid of a volume.
template <class To, class From, class F>
Volume<To> mapped(const Volume<From>& volume, const F& f) {
  Volume<To> out = Volume<To>::unfilled(volume.grid());
  for (int64_t i = 0; i < volume.voxels(); ++i) out[i] = static_cast<To>(f(volume[i]));
  return out;
}

/// Labels of a segmentation; 0 is background.
using LabelVolume = Volume<int32_t>;

/// Returns the labels that occur.
inline std::set<int32_t> labels_in(const LabelVolume& labels) {
  std::set<int32_t> values;
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    if (i == 0 || labels[i] != labels[i - 1]) values.insert(labels[i]);
  }
  return values;
}

/// A vector for each voxel: a displacement, a velocity, a gradient. Components are along the axes
/// of the world (LPS), in mm, whatever the direction of the grid. Files: io/image/image.h.
using VectorField = Volume<Vec3f>;

/// A label of a data set, or a region of several labels.
struct DatasetLabel {
  std::string name;
  std::vector<int32_t> values;
};

/// The names that nnU-Net gives a meaning: voxels that nobody has annotated, and those around the
/// structures. Neither is a structure.
inline constexpr const char* kIgnoreName = "ignore";
inline constexpr const char* kBackgroundName = "background";

/// Adds geometry and voxels of a volume to a digest; the frame of its world makes no difference.
template <class T>
void add_to_digest(const Volume<T>& volume, Sha256& sha) {
  const Grid& grid = volume.grid();
  sha.update(&grid.size, sizeof grid.size);
  sha.update(&grid.spacing_mm, sizeof grid.spacing_mm);
  sha.update(&grid.origin_mm, sizeof grid.origin_mm);
  sha.update(&grid.direction, sizeof grid.direction);
  sha.update(volume.data(), static_cast<size_t>(volume.voxels()) * sizeof(T));
}

}  // namespace larch
