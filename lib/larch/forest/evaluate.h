// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/features/tap.h"
#include "larch/forest/model.h"

namespace larch::forest {

/// A forest for the layouts of an image, on one device. A node that is no leaf has in `feature` the
/// index of the first tap of its feature, and in `leaf` the number of taps.
struct CompiledForest {
  tree::ResidentForest resident;
  Buffer<features::LinearTap> taps;
  Buffer<image::IntegralLayout> layouts;  ///< of the channels
  Buffer<int32_t> values;                 ///< of the classes, in label maps
};

/// Throws UsageError if a feature reaches beyond the padding, MemoryError if an offset leaves 32
/// bits.
CompiledForest compile(const Model& model, const image::IntegralSet& set, const Context& context);

/// Holds what is wanted of an evaluation.
struct Wanted {
  bool leaves = false, distribution = false, labels = false;
  uint32_t leaf_trees = UINT32_MAX;  ///< leaves of the first trees alone
};

/// Holds what an evaluation gives of what is wanted, on the device of the context. All are by
/// voxel, x fastest; [tree] and [class] are slower.
struct Results {
  Buffer<int32_t> leaves;      ///< that each tree leads to, by number; -1 outside of the region
  Buffer<float> distribution;  ///< of each class: the mean of the trees; 0 outside
  Buffer<int32_t> labels;      ///< value of the likeliest class, the first of equal ones; 0 outside
};

/// Leads every voxel of an image through all trees (Sharp 2008, section 3). `roi`: 0 where nothing
/// is computed, may be null. The work is done on return.
Results evaluate(const CompiledForest& forest, const image::IntegralSet& set, const Wanted& wanted,
                 const Context& context, const Volume<uint8_t>* roi = nullptr);

/// The maps of a whole image in model space, slab by slab within memory_bytes (0: most of what is
/// free): the result does not depend on it.
struct Maps {
  std::vector<LabelVolume> leaves;          ///< by tree
  std::vector<Volume<float>> distribution;  ///< by class
  std::vector<LabelVolume> labels;          ///< one, if it is wanted
};
Maps evaluate_volume(const Model& model, std::span<const Volume<int16_t>> components,
                     const Wanted& wanted, int64_t memory_bytes, const Context& context,
                     const Volume<uint8_t>* roi = nullptr);
/// Returns the likeliest class of a voxel but the background (-1: there is none), the first of
/// equal ones.
size_t likeliest_structure(std::span<const Volume<float>> distribution, int32_t background,
                           int64_t voxel);
/// Returns the plan for it; `size`: of the image in model space.
voxels::SlabPlan plan_slabs(const Model& model, const Vec3i& size, const Wanted& wanted, bool roi,
                            int64_t memory_bytes, const Device& device);

/// Holds what one implementation receives; all pointers are of its device, null for what is not
/// there or not wanted.
struct EvaluateJob {
  tree::ForestView forest;
  const features::LinearTap* taps = nullptr;
  const image::IntegralLayout* layouts = nullptr;
  const uint32_t* integral = nullptr;
  const int32_t* values = nullptr;
  Vec3i size{};
  const uint8_t* roi = nullptr;
  int32_t* leaves = nullptr;
  uint32_t leaf_trees = 0;
  float* distribution = nullptr;
  int32_t* labels = nullptr;

  LARCH_HD int64_t voxels() const { return int64_t{size.x} * size.y * size.z; }
  LARCH_HD bool is_outside(int64_t voxel) const { return roi != nullptr && roi[voxel] == 0; }

  /// Returns the leaf to which a tree leads a voxel.
  LARCH_HD uint32_t leaf(uint32_t tree, const Vec3i& at) const {
    const auto value = [&](const tree::ForestNode& node) {
      return features::response_of_channels(taps + node.feature, node.leaf, [&](uint32_t channel) {
        return integral + layouts[channel].base(at);
      });
    };
    return tree::reached_leaf(forest.nodes, forest.roots[tree], value);
  }

  /// Stores what follows from the leaves of a voxel, leaf_of(tree).
  template <class LeafOf>
  LARCH_HD void store(int64_t voxel, const LeafOf& leaf_of) const {
    const bool outside = is_outside(voxel);
    for (uint32_t t = 0; t < leaf_trees; ++t) {
      leaves[t * voxels() + voxel] = outside ? -1 : static_cast<int32_t>(leaf_of(t));
    }
    if (distribution == nullptr && labels == nullptr) return;
    uint64_t most = 0;
    uint32_t likeliest = 0;
    for (uint32_t c = 0; c < forest.classes; ++c) {
      const uint64_t sum = outside ? 0 : forest.sum(c, leaf_of);
      if (distribution != nullptr) distribution[c * voxels() + voxel] = forest.mean(sum);
      if (sum > most) {
        most = sum;
        likeliest = c;
      }
    }
    if (labels != nullptr) labels[voxel] = outside ? 0 : values[likeliest];
  }
};
namespace cpu {
void evaluate(const EvaluateJob& job, const Context& context);
}
namespace cuda {
void evaluate(const EvaluateJob& job, const Context& context);
}

}  // namespace larch::forest
