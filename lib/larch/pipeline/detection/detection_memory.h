// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>

#include "larch/cases/memory.h"
#include "larch/io/image/image.h"
#include "larch/pbt/model.h"
#include "larch/pipeline/detection/pbt_detection.h"

namespace larch::pipeline {

/// What the steps of one detection take on the host, beside the program itself. `memory_bytes` is
/// what they may take together (0: no promise was made); where it is less than the evaluation of
/// the whole volume on the CPU takes, the evaluation goes in slabs.
struct DetectionMemory {
  /// The least: into however many slabs it is cut, and however narrow the band of the cut is.
  cases::MemoryNeed need;
  int64_t evaluation = 0;  ///< for DetectionJob::memory_bytes
};
DetectionMemory detection_memory(const pbt::Model& model, const DetectConfig& config,
                                 const Wanted& wanted, const ImageInfo& image, int64_t memory_bytes,
                                 const Device& device);

/// Takes the posterior of an evaluated job to the grid of its image and returns the bytes that
/// find_structure and the files then take at most: the band of the graph cut is known now.
int64_t survey_structure(const DetectConfig& config, DetectionJob& job, const Context& context);

/// Upper bound for the bytes that a job whose structure is found takes until its files are written,
/// the surface mesh, which goes to `mesh_file`, included.
int64_t bytes_with_surface(const DetectConfig& config, const DetectionJob& job,
                           const std::string& mesh_file, const Context& context);

}  // namespace larch::pipeline
