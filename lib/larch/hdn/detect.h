// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "larch/hdn/stages.h"

// The hypotheses of orientation divided between the GPU and the CPU (US 2012/0069003 A1, paragraphs
// 84 to 87 and figure 15): both evaluate their part at the same time, and the best of all are kept.

namespace larch::hdn {

/// Times of the stages that were shared.
struct SharedTimes {
  double cpu_seconds = 0;   ///< until the CPU had done its part
  double wait_seconds = 0;  ///< from then until its scores were sent and the GPU had done its part
};

/// A model on one device, for as many images as wanted.
struct ResidentModel {
  Model model;  ///< without the classifiers
  Vec3i reach{};
  std::vector<bool> sums_boxes{};  ///< by level: tells whether a detector has Haar features
  std::vector<std::vector<ResidentDetector>> detectors{};      ///< by structure
  std::vector<std::vector<ResidentDetector>> root_position{};  ///< by structure, at most one
  double gpu_share = 1;  ///< of the hypotheses of orientation; below 1 the CPU evaluates the rest
  std::shared_ptr<const ResidentModel> on_host{};  ///< for the CPU's part; otherwise null
};
/// On the CPU the share of the GPU counts for nothing.
ResidentModel make_resident(Model model, const tree::EvaluationRule& rule, const Device& device,
                            double gpu_share = 1);

enum class FoundStatus : uint8_t {
  kFound = 0,
  kUncertain,  ///< less sure than that, as learning::Calibration has it
  kNotFound,   ///< no candidate, or less sure still
  kSkipped,    ///< its parent was not found, and it was not trained to be found without
};

/// A structure in an image.
struct FoundStructure {
  FoundStatus status = FoundStatus::kNotFound;
  Pose pose{};  ///< world, LPS mm; of no meaning where there was no candidate
  bool has_pose = false;
  double confidence = 0;  ///< probability that the structure is there, by all stages
  double support = 0;     ///< their share of those that were kept
  double spread_mm = 0, spread_deg = 0;
  bool truncated = false;       ///< its box leaves the image
  bool is_fallback = false;     ///< searched everywhere, since the parent was not found
  std::vector<int32_t> kept{};  ///< candidates after each stage
};

/// Tells whether a structure counts as being there, sure or not.
inline bool is_there(const FoundStructure& found) {
  return found.status == FoundStatus::kFound || found.status == FoundStatus::kUncertain;
}

/// Finds all structures of a model in an image that is in its space. `input`: the grid that it is
/// stored on, outside of which nothing is looked for. The search goes level by level, all
/// structures of a level before the next one, those with the same depth in the network in one
/// launch. On a GPU there is one upload of the image and one read-back; a second pass follows only
/// where a parent was not found. With a gpu_share below 1 the CPU takes part in the stages of
/// orientation, with a read-back in each; `times` then gets how long. The same bytes on every
/// device and for every share. Throws InputError for an image that is too large for the coarsest
/// level, and MemoryError.
std::vector<FoundStructure> detect(const ResidentModel& resident, const Volume<int16_t>& voxels,
                                   const Grid& input, const Context& context,
                                   SharedTimes* times = nullptr);

/// Corrects the poses of what was found by one another, and then each by how the image looks there;
/// on the CPU.
void correct(const Model& model, std::vector<FoundStructure>& found, const Volume<int16_t>& voxels,
             const Grid& input, const Context& context);

}  // namespace larch::hdn
