// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "larch/data/vec.h"

namespace larch {

/// Says what the world coordinates of a grid belong to, by the codes of NIfTI's qform and sform.
/// Formats that have no such code are the scanner's.
enum class WorldFrame : uint8_t {
  kUnknown = 0,  ///< the voxels have a spacing and no orientation: no side of the patient is known
  kScanner = 1,
  kAligned = 2,  ///< to another image
  kTalairach = 3,
  kMni152 = 4,
  kTemplate = 5,  ///< another one
};

/// The lattice of voxel centres of an image.
///
/// World coordinates are LPS millimetres (x to the patient's left, y to posterior, z to superior),
/// as in DICOM and ITK. Column c of `direction` is the unit vector of index axis c. Index (0,0,0)
/// is the centre of the first voxel and lies at `origin_mm`. 2-D images have size.z == 1.
struct Grid {
  Vec3i size{0, 0, 0};
  Vec3d spacing_mm{1, 1, 1};
  Vec3d origin_mm{0, 0, 0};
  Mat3 direction{};
  WorldFrame frame = WorldFrame::kScanner;  ///< outputs on the grid of an input keep it

  LARCH_HD int64_t voxels() const { return static_cast<int64_t>(size.x) * size.y * size.z; }
  /// Position in memory of voxel `at`; x is the fastest axis.
  LARCH_HD int64_t linear(const Vec3i& at) const {
    return at.x + static_cast<int64_t>(size.x) * (at.y + static_cast<int64_t>(size.y) * at.z);
  }
  LARCH_HD Vec3i voxel(int64_t linear_index) const { return voxel_of(linear_index, size); }
  LARCH_HD bool contains(const Vec3i& at) const {
    return at.x >= 0 && at.y >= 0 && at.z >= 0 && at.x < size.x && at.y < size.y && at.z < size.z;
  }
  /// Tells whether a place lies in the image, up to half a voxel beyond the outermost centres.
  LARCH_HD bool holds(const Vec3d& index) const {
    return index.x >= -0.5 && index.y >= -0.5 && index.z >= -0.5 && index.x <= size.x - 0.5 &&
           index.y <= size.y - 0.5 && index.z <= size.z - 0.5;
  }
  /// |det D| s_x s_y s_z: where the grid is sheared less than the product of the spacings.
  LARCH_HD double voxel_volume_mm3() const {
    const double d = determinant(direction);
    return (d < 0 ? -d : d) * (spacing_mm.x * spacing_mm.y * spacing_mm.z);
  }
};

/// World position (LPS mm) of a continuous index.
LARCH_HD Vec3d world_from_index(const Grid& grid, const Vec3d& index) {
  return grid.origin_mm + grid.direction * Vec3d{index.x * grid.spacing_mm.x,
                                                 index.y * grid.spacing_mm.y,
                                                 index.z * grid.spacing_mm.z};
}

/// Continuous index of a world position (LPS mm). `direction` need not be orthogonal (gantry tilt).
LARCH_HD Vec3d index_from_world(const Grid& grid, const Vec3d& world_mm) {
  const Vec3d p = inverse(grid.direction) * (world_mm - grid.origin_mm);
  return {p.x / grid.spacing_mm.x, p.y / grid.spacing_mm.y, p.z / grid.spacing_mm.z};
}

/// By how much of a voxel, along each axis, the corners of two grids may lie apart that people call
/// the same: headers are rounded, and no result depends on so little.
constexpr double kSameVoxel = 0.1;

/// Returns what differs between two grids that should be the same, as a phrase for an error
/// message: "size 3x4x5 against 3x4x6", "origin differs by 2.5 mm", ... Empty when they agree at
/// every corner, within the share `tolerance` of a voxel along each axis.
std::string describe_difference(const Grid& a, const Grid& b, double tolerance = kSameVoxel);

/// Throws InputError, which says what differs, unless `a` lies on the grid of `b`, as
/// describe_difference has it. Names in messages are as they are given.
void require_on_grid(const std::string& a, const Grid& grid_of_a, const std::string& b,
                     const Grid& grid_of_b);

/// "35x50x36 voxels of 1x1x1 mm".
std::string describe(const Grid& grid);

}  // namespace larch
