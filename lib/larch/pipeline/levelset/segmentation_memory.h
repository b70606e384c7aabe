// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/cases/memory.h"
#include "larch/core/device.h"
#include "larch/io/image/image.h"
#include "larch/levelset/levelset_config.h"
#include "larch/pipeline/levelset/outputs/segmentation_files.h"

namespace larch::pipeline {

/// What a segmentation takes, in bytes.
struct SegmentationMemory {
  cases::MemoryNeed host{};
  int64_t device = 0;  ///< of a GPU; 0 on the CPU
};

/// `labels`: structures that are moved.
SegmentationMemory segmentation_memory(const ImageInfo& image,
                                       const levelset::LevelsetConfig& config,
                                       const SegmentationFiles& files, int64_t labels,
                                       bool is_on_gpu);

/// Throws MemoryError that gives the bytes needed and free, and says what to do, where one of the
/// two is not free. `device_free`: not looked at where nothing is needed there.
void require_memory(const SegmentationMemory& memory, const Grid& grid, int64_t host_free,
                    int64_t device_free);
/// The same with what is free now.
void require_memory(const SegmentationMemory& memory, const Grid& grid, const Device& device);

}  // namespace larch::pipeline
