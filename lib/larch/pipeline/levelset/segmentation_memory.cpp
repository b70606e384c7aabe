// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_memory.h"

#include <algorithm>
#include <string>

#include "larch/config/bytes.h"
#include "larch/core/error.h"
#include "larch/levelset/evolve/field.h"

namespace larch::pipeline {
namespace {

// Bytes per voxel.
constexpr int64_t kImage = 4, kPhi = 4, kLabels = 4, kMask = 1;
/// Distances of the first surfaces and the speed in doubles' place, while a field is made.
constexpr int64_t kStarting = 16;
/// The distance map with what it takes while it is made.
constexpr int64_t kDistance = 13;
/// A volume's copy while it is written, and what is compressed of it.
constexpr int64_t kWriting = 8;

std::string bytes_both(int64_t bytes) {
  return bytes_text(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

}  // namespace

SegmentationMemory segmentation_memory(const ImageInfo& image,
                                       const levelset::LevelsetConfig& config,
                                       const SegmentationFiles& files, int64_t labels,
                                       bool is_on_gpu) {
  const int64_t voxels = image.grid.voxels();
  const levelset::FieldBytes one = levelset::field_bytes(image.grid.size);
  auto field = static_cast<int64_t>(one.plain);
  if (config.edge_stop) field += static_cast<int64_t>(one.edge_stop);
  if (config.advection_weight > 0) field += static_cast<int64_t>(one.advection);
  const int64_t fields = labels * field;
  SegmentationMemory memory;
  memory.device = is_on_gpu ? fields : 0;
  const int64_t kept = kImage * voxels;
  cases::MemoryNeed& host = memory.host;
  host.reading = std::max(image.bytes, kept) + kept;
  host.resting = kept;
  host.computing = kept + kStarting * voxels + (is_on_gpu ? 0 : fields) + labels * kPhi * voxels;
  host.finishing = kept + (labels * kPhi + kLabels + kMask + kWriting) * voxels +
                   (files.distance.empty() ? 0 : kDistance * voxels);
  host.least = host.most();
  return memory;
}

void require_memory(const SegmentationMemory& memory, const Grid& grid, int64_t host_free,
                    int64_t device_free) {
  if (memory.device > device_free) {
    throw MemoryError("the level set of " + describe(grid) + " takes " + bytes_both(memory.device) +
                      " of the device's memory, and " +
                      bytes_both(std::max<int64_t>(0, device_free)) +
                      " are free; crop the image, take a larger device, or give --device cpu");
  }
  if (memory.host.most() > host_free) {
    throw MemoryError("the segmentation of " + describe(grid) + " takes up to " +
                      bytes_both(memory.host.most()) + ", and " +
                      bytes_both(std::max<int64_t>(0, host_free)) +
                      " are free; crop the image, or run where more memory is free");
  }
}

void require_memory(const SegmentationMemory& memory, const Grid& grid, const Device& device) {
  const int64_t on_device =
      memory.device > 0 ? static_cast<int64_t>(free_memory_bytes(device)) : int64_t{0};
  require_memory(memory, grid, static_cast<int64_t>(free_memory_bytes(Device::cpu())), on_device);
}

}  // namespace larch::pipeline
