// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "larch/config/fields.h"

namespace larch::pbt {

/// How voxels are led through the tree. All give the same bytes.
enum class Walk : uint8_t {
  kAuto = 0,
  kTile = 1,   ///< a tile of voxels visits a node together; nodes that no voxel reaches are skipped
  kStack = 2,  ///< each voxel by itself with a stack of (node, weight): Birkbeck et al.,
               ///< "Fast Boosting Trees", 2011, Algorithm 2
  kQueue = 3,  ///< level by level, the voxels at a node in one queue; on the CPU the tile walk
};
constexpr auto enum_names(Walk*) {
  return std::to_array<EnumName<Walk>>({{Walk::kAuto, "auto"},
                                        {Walk::kTile, "tile"},
                                        {Walk::kStack, "stack"},
                                        {Walk::kQueue, "queue"}});
}

/// Type of the probability map.
enum class ProbabilityType : uint8_t { kFloat32 = 0, kUint16 = 1, kUint8 = 2 };
constexpr auto enum_names(ProbabilityType*) {
  return std::to_array<EnumName<ProbabilityType>>({{ProbabilityType::kFloat32, "float32"},
                                                   {ProbabilityType::kUint16, "uint16"},
                                                   {ProbabilityType::kUint8, "uint8"}});
}

struct EvaluateConfig {
  Walk walk = Walk::kAuto;  ///< no key of users, because results do not depend on it
  bool hard = false;
  double e1 = 0;
  std::optional<double> e2{};

  template <class F>
  void fields(F&& f) {
    f(Field{"hard", hard, "descend one child only: the plain boosting tree"},
      Field{"e1", e1, "certainty beyond which one child gets the whole weight; 0: the model's", 0,
            0.5},
      Field{"e2", e2, "within 1/2 +- e2 both children are descended; null: the model's", 0, 1});
  }
};

}  // namespace larch::pbt
