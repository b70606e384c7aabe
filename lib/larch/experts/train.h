// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/experts/experts.h"

namespace larch::experts {

/// Holds an image in model space with its truth, and what a model that did not learn from it says.
struct TrainingCase {
  std::shared_ptr<const Volume<int16_t>> image;
  Volume<float> probability;  ///< of the structures together
  Volume<int8_t> part;        ///< the structure of a voxel, or one of these:
  static constexpr int8_t kNone = -1, kUnused = -2;
  int fold = 0;
  std::string group{};  ///< of cases that have one person in common; may be empty
};

/// Holds experts of all cases, and those that did not see the cases of each fold.
struct Trained {
  Experts all;
  std::vector<Experts> without_fold;
};

/// Trains experts. `steps`: the integer that the high end of intensities maps to. Cases in which
/// the model finds nothing are left out. The result depends neither on the device nor on the
/// threads nor on `memory_bytes`, which bounds what images and sums take on the device. Throws
/// InputError if the model finds nothing in all of a fold, MemoryError, and Stopped.
Trained train(const std::vector<TrainingCase>& cases, int parts, int folds, int steps,
              int64_t memory_bytes, const Context& context);

/// Holds what one implementation receives; all pointers are of its device.
struct SumsJob {
  const Channels* slabs = nullptr;
  const Sample* samples = nullptr;
  const Share* shares = nullptr;   ///< bin after bin
  const int64_t* first = nullptr;  ///< share of each bin, and the end
  int32_t bins = 0;
  int32_t parts = 0;
  int64_t* sums = nullptr;  ///< [bin][sums_of(parts)], to which those of the shares are added
};
namespace cpu {
void sum(const SumsJob& job, const Context& context);
}
namespace cuda {
void sum(const SumsJob& job, const Context& context);
}

}  // namespace larch::experts
