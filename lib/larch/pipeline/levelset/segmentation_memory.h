// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>

#include "larch/cases/memory.h"
#include "larch/core/device.h"
#include "larch/io/image/image.h"
#include "larch/levelset/levelset_config.h"
#include "larch/pipeline/levelset/segmentation.h"

namespace larch::pipeline {

/// What a segmentation takes, in bytes.
struct SegmentationMemory {
  cases::MemoryNeed host{};
  int64_t images = 0;  ///< of `host`: what is there from reading on to the end
  int64_t device = 0;  ///< of a GPU; 0 on the CPU
  int64_t labels = 1;
};

/// A bound of what a segmentation of `labels` structures takes, which need not be reached. Beside
/// it stand the program itself, surface meshes, whose memory is asked for when their size is known,
/// and pictures. `image`: of one frame.
SegmentationMemory segmentation_memory(const ImageInfo& image, const SegmentationRequest& request,
                                       const levelset::LevelsetConfig& config, int64_t labels,
                                       bool is_on_gpu);

/// What may stand beside the image, and is kept with it on a GPU where means are taken anew.
struct BesideImage {
  bool is_speed_given = false;
  bool has_limits = false;  ///< a mask, frozen labels, max_distance_mm
};
/// SegmentationMemory::device on a GPU.
int64_t device_bytes(const Vec3i& size, const levelset::LevelsetConfig& config, int64_t labels,
                     const BesideImage& beside = {});
/// The same of a request that is read.
int64_t device_bytes(const levelset::SegmentRequest& request);

/// Throws MemoryError that gives the bytes needed and free, and says what to do, where one of the
/// two is not free. `device_free`: not looked at where nothing is needed there.
void require_memory(const SegmentationMemory& memory, const Grid& grid, int64_t host_free,
                    int64_t device_free);
/// The same with what is free now.
void require_memory(const SegmentationMemory& memory, const Grid& grid, const Device& device);

}  // namespace larch::pipeline
