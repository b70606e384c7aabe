// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "larch/levelset/brick_layout.h"
#include "larch/levelset/levelset_config.h"

// The lists of active voxels of Roberts et al. 2010, with the rule that makes them exact: what
// changed wakes all voxels that read it. (Listing 1 of the paper's supplement wakes a neighbour
// only if that changed itself, so that the set could never grow.)
namespace larch::levelset::cpu {

/// In a list: none.
constexpr uint32_t kNoVoxel = UINT32_MAX;

/// Makes lists of active voxels without duplicates.
class VoxelLists {
 public:
  VoxelLists(const BrickLayout& layout, Duplicates duplicates, int threads);

  /// The voxels that field `k` of a group computes next: those whose stencil holds one that
  /// changed, with Duplicates::kBuffers all within two steps across faces of one; and those that
  /// changed in another field. `changed`: voxels or kNoVoxel, by field. Any order.
  void generate(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                std::vector<uint32_t>& list);

 private:
  void generate_by_stamps(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                          std::vector<uint32_t>& list);
  void generate_by_buffers(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                           std::vector<uint32_t>& list);
  /// One round of the seven buffers: `from` and its neighbours across faces. Their tags stay.
  void dilate(const std::vector<uint32_t>& from, std::vector<uint32_t>& list);
  void clear_tags(const std::vector<uint32_t>& list);

  BrickLayout layout_;
  Duplicates duplicates_;
  int threads_;
  uint32_t epoch_ = 0;
  std::vector<uint32_t> stamps_{};                  ///< by voxel: the epoch that listed it last
  std::vector<uint8_t> tags_{};                     ///< by voxel, all 0 between two lists
  std::array<std::vector<uint32_t>, 7> buffers_{};  ///< by offset: the voxel itself comes first
  std::vector<uint32_t> round_{};
};

}  // namespace larch::levelset::cpu
