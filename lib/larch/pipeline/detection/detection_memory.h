// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "larch/cases/stages.h"
#include "larch/io/image/image.h"
#include "larch/pbt/model.h"
#include "larch/pipeline/detection/pbt_detection.h"

namespace larch::pipeline {

/// What the steps of one detection take on the host, beside the program itself. `memory_bytes` is
/// what they may take together (0: no promise was made); where it is less than the evaluation of
/// the whole volume on the CPU takes, the evaluation goes in slabs.
struct DetectionMemory {
  cases::MemoryNeed need;
  int64_t evaluation = 0;  ///< for DetectionJob::memory_bytes
  /// What it takes into however many slabs it is cut, and however narrow the band of the cut is.
  int64_t least = 0;
};
DetectionMemory detection_memory(const pbt::Model& model, const DetectConfig& config,
                                 const Wanted& wanted, const ImageInfo& image, int64_t memory_bytes,
                                 const Device& device);

/// To be called before the first volume is read: memory of a volume goes back to the system when it
/// is let go, without which the promise of `memory_bytes` (0: none) would not be kept.
void give_memory_back(int64_t memory_bytes);

/// Throws MemoryError if the least that one detection of a batch takes is more than `memory_bytes`
/// (0: no promise was made).
void require_least(const DetectionMemory& memory, int64_t memory_bytes);

/// Takes the posterior of an evaluated job to the grid of its image and returns the bytes that
/// find_structure and the files then take at most: the band of the graph cut is known now.
int64_t survey_structure(const DetectConfig& config, DetectionJob& job, const Context& context);

/// Upper bound for the bytes that a job whose structure is found takes until its files are written,
/// the surface mesh, which goes to `mesh_file`, included.
int64_t bytes_with_surface(const DetectConfig& config, const DetectionJob& job,
                           const std::string& mesh_file, const Context& context);

}  // namespace larch::pipeline
