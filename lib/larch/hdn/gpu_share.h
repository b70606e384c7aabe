// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
#include <vector>

#include "larch/hdn/stages.h"

// The hypotheses of orientation divided between the GPU and the CPU (US 2012/0069003 A1, paragraphs
// 84 to 87 and figure 15): both evaluate their part at the same time, and the best of all are kept.
namespace larch::hdn {

/// The work on an image that is shared.
struct SharedWork {
  double gpu_share = 1;             ///< of the hypotheses; 0 to 1
  std::vector<LevelImages> levels;  ///< of the image, on the host
  double cpu_seconds = 0;           ///< until the CPU had done its part
  double wait_seconds = 0;          ///< until the GPU had, from then on
};

/// Does what run_stage does, for a stage of orientation. `segments` are as the device has them, and
/// `on_host` are their detectors on the host. Candidates are read back before, so that the work on
/// the GPU is waited for. The result is the same for every share.
void run_shared_stage(const StageView& stage, std::span<const Segment> segments,
                      std::span<const DetectorView> on_host, const LevelViews& level,
                      SharedWork& work, const Context& context);

}  // namespace larch::hdn
