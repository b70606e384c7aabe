// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/dsa/dsa_config.h"
#include "larch/pipeline/angiography/input/angiography_input.h"
#include "larch/pipeline/angiography/outputs/angiography_files.h"

namespace larch::pipeline {

/// One sequence, before it is subtracted.
struct SequenceRequest {
  AngiographyInput input{};
  AngiographyFiles files{};
  FieldUnits field_units = FieldUnits::kMm;
  bool has_scores = true;    ///< how well frames were corrected is measured: dsa::score_frames
  int batch_frames = 0;      ///< frames that are worked on at a time; 0: as memory allows
  int64_t memory_bytes = 0;  ///< of the frames in work; 0: a GiB, or half of what is free
};

/// Reads a sequence, registers its mask to every contrast frame and writes what is asked for, in
/// batches: while one is computed the next is read and uploaded, and the one before downloaded,
/// scored and written. The report says how long each of that took (stages_ms); they overlap. The
/// files are filled when this returns and get their names with the Outputs. Results do not depend
/// on the batches, nor on device and threads. Throws InputError, UsageError, OutputError,
/// MemoryError; Stopped when the stop flag of `context` is set.
Outputs subtract_sequence(const SequenceRequest& request, const dsa::DsaConfig& config,
                          const Context& context);

/// Frames of a batch and the bytes that the batches in flight take on the host.
struct BatchPlan {
  int frames = 1;
  bool overlaps = true;  ///< a batch is read and one is finished while another is computed
  int64_t bytes = 0;
};
/// For `frames` frames of a size: the device, and what is wanted of them, decide. Throws
/// MemoryError if batches of one frame take more than `memory_bytes`.
BatchPlan plan_batches(const SequenceRequest& request, const dsa::DsaConfig& config,
                       const Vec3i& size, int64_t frames, const Context& context);
/// Throws MemoryError if the frames of a mask, which are held together while their mean is made,
/// take more than is allowed.
void require_masks_fit(const SequenceRequest& request, const MaskPlan& plan, const Grid& grid);

}  // namespace larch::pipeline
