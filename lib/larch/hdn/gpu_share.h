// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <span>
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

/// Does what run_stage does, for a stage of orientation; the GPU evaluates `gpu_share` (0 to 1) of
/// the hypotheses. `segments` are as the device has them; `on_host` are their detectors and `level`
/// the images on the host. Candidates are read back before, so that the work on the GPU is waited
/// for. The result is the same for every share.
void run_shared_stage(const StageView& stage, std::span<const Segment> segments,
                      std::span<const DetectorView> on_host, const LevelViews& level,
                      double gpu_share, SharedTimes& times, const Context& context);

}  // namespace larch::hdn
