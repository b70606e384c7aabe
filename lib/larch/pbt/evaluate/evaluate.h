// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/image/integral.h"
#include "larch/pbt/evaluate/walk_queues.h"
#include "larch/pbt/model.h"

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
constexpr size_t bytes_of(ProbabilityType type) {
  return type == ProbabilityType::kFloat32 ? 4 : type == ProbabilityType::kUint16 ? 2 : 1;
}
constexpr auto enum_names(ProbabilityType*) {
  return std::to_array<EnumName<ProbabilityType>>({{ProbabilityType::kFloat32, "float32"},
                                                   {ProbabilityType::kUint16, "uint16"},
                                                   {ProbabilityType::kUint8, "uint8"}});
}

struct EvaluateConfig {
  Walk walk = Walk::kAuto;
  std::vector<int> tile{};
  bool hard = false;
  bool early_rejection = false;
  double e1 = 0;

  template <class F>
  void fields(F&& f) {
    f(Field{"walk", walk,
            "auto, tile (neighbouring voxels visit a node together), stack (one by one) or "
            "queue (all voxels at a node together, level by level)"}
          .no_effect_on_results(),
      Field{"tile", tile,
            "voxels along x, y, z of a tile; empty: chosen for the device; the result does not "
            "depend on it",
            1, 256}
          .lengths({0, 3})
          .no_effect_on_results(),
      Field{"hard", hard, "descend one child only: the plain boosting tree"},
      Field{"early_rejection", early_rejection,
            "stop inside a node when its outcome is certain; the result does not change"}
          .no_effect_on_results(),
      Field{"e1", e1, "certainty beyond which one child gets the whole weight; 0: the model's", 0,
            0.5});
  }
};

/// Throws UsageError for a tile of too many voxels, as `evaluate` does.
void check_config(const EvaluateConfig& config);

/// The posterior of every voxel of an image: Algorithms 1 and 2 of Birkbeck et al. `T` is float
/// (p), uint16_t (p * 65535, rounded) or uint8_t (p * 255, rounded). Where `roi` is given and 0,
/// the result is 0 and nothing is computed. `set` must have been made with the model's channels and
/// padding and a pad of at least model.reach(), on context.device. `queue_items`: most that may
/// wait at a level of the queue walk; the result does not depend on it.
template <class T>
Volume<T> evaluate(const Model& model, const image::IntegralSet& set, const Grid& grid,
                   const EvaluateConfig& config, const Context& context,
                   const Volume<uint8_t>* roi = nullptr, int64_t queue_items = kMostQueueItems);

/// A model that is compiled once for many evaluations of volumes with these layouts. `rule` from
/// the configuration.
CompiledModel compile(const Model& model, const image::IntegralSet& set,
                      const EvaluateConfig& config);

/// The same evaluation with a compiled model; the probabilities stay on the device of `set`. `out`:
/// one T per voxel, in x-fastest order, on that device. Throws Error (a bug of the caller) when the
/// model was compiled for other layouts, UsageError when `out` does not fit.
template <class T>
void evaluate_resident(const CompiledModel& model, const image::IntegralSet& set,
                       const EvaluateConfig& config, Buffer<T>& out, const Context& context);

/// A voxel and its probability.
struct Candidate {
  int64_t voxel = 0;  ///< linear index
  float probability = 0;
};
/// The `count` most probable voxels, by descending probability, then ascending index.
std::vector<Candidate> top_candidates(const Volume<float>& probability, int64_t count);

/// The walk that `Walk::kAuto` means, by what was measured: on the CPU tile; on a CUDA device queue
/// for trees of more than kTileLevels levels and for regions of interest of less than a tenth of
/// the voxels, else tile. `share`: of the voxels that are evaluated.
constexpr int kTileLevels = 7;
Walk chosen_walk(Walk wanted, int depth, double share, int64_t voxels, const Device& device);

/// What one implementation receives; every pointer is of its device, except `host_out`.
struct EvaluateJob {
  Vec3i size{};
  const image::IntegralLayout* layouts = nullptr;  ///< host
  int channel_count = 0;
  const uint32_t* integral = nullptr;
  std::span<const CompiledTree> trees;  ///< host; the result is the mean of their posteriors
  const uint8_t* roi = nullptr;         ///< host, may be null
  Walk walk = Walk::kTile;
  Vec3i tile{};  ///< 0, 0, 0: the implementation chooses
  ProbabilityType type = ProbabilityType::kFloat32;
  void* host_out = nullptr;               ///< null: the result stays at device_out
  void* device_out = nullptr;             ///< null: memory of the call's own
  int64_t queue_items = kMostQueueItems;  ///< of the queue walk, at a level
};
namespace cpu {
void evaluate(const EvaluateJob& job, const Context& context);
}
namespace cuda {
void evaluate(const EvaluateJob& job, const Context& context);
}

}  // namespace larch::pbt
