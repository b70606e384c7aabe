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

/// A forest on one device, for any images and threads: what does not depend on these is made here,
/// so that an evaluation only places the taps in the channels of its image.
struct ResidentModel {
  /// The work is done on return.
  ResidentModel(Model model, const Device& device);

  Model model;
  /// A node that is no leaf has in `feature` the index of the first tap of its feature, and in
  /// `leaf` the number of taps.
  tree::ResidentForest resident;
  Buffer<features::Tap> taps;
  Buffer<int32_t> values;            ///< of the classes, in label maps
  std::vector<features::Tap> boxes;  ///< around the taps of each channel: features::widen
};

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
/// is computed, may be null. The work is done on return. Throws UsageError if a feature reaches
/// beyond the padding, MemoryError if an offset leaves 32 bits.
Results evaluate(const ResidentModel& forest, const image::IntegralSet& set, const Wanted& wanted,
                 const Context& context, const Volume<uint8_t>* roi = nullptr);

/// The maps of a whole image in model space, slab by slab within memory_bytes (0: most of what is
/// free): the result does not depend on it.
struct Maps {
  std::vector<LabelVolume> leaves;          ///< by tree
  std::vector<Volume<float>> distribution;  ///< by class
  std::vector<LabelVolume> labels;          ///< one, if it is wanted
};
Maps evaluate_volume(const ResidentModel& resident, std::span<const Volume<int16_t>> components,
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
  tree::ForestView forest;  ///< whose nodes are those that `place` makes
  const tree::ForestNode* unplaced_nodes = nullptr;
  const features::Tap* unplaced_taps = nullptr;
  tree::ForestNode* nodes = nullptr;
  features::LinearTap* taps = nullptr;  ///< of those, as many as of the model
  int64_t node_count = 0;
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

  /// Makes a node with its taps placed in the channels of the image, where they count.
  LARCH_HD void place(int64_t n) const {
    tree::ForestNode node = unplaced_nodes[n];
    const int32_t corners = node.is_leaf() ? 0 : node.leaf;
    if (!node.is_leaf()) node.leaf = 0;
    for (int32_t k = 0; k < corners; ++k) {
      const features::Tap& tap = unplaced_taps[node.feature + static_cast<uint32_t>(k)];
      const image::IntegralLayout& layout = layouts[tap.channel];
      if (!features::counts(tap, layout)) continue;
      taps[node.feature + static_cast<uint32_t>(node.leaf++)] = {
          static_cast<int32_t>(layout.linear_offset(tap.dx, tap.dy, tap.dz)),
          static_cast<int16_t>(tap.weight), tap.channel};
    }
    nodes[n] = node;
  }

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
