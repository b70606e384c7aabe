// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_memory.h"

#include <algorithm>
#include <string>

#include "larch/config/bytes.h"
#include "larch/core/error.h"
#include "larch/levelset/brick_layout.h"
#include "larch/levelset/evolve/field.h"
#include "larch/levelset/speed/regions_math.h"

namespace larch::pipeline {
namespace {

// Bytes per voxel.
constexpr int64_t kImage = 4, kPhi = 4, kLabels = 4, kMask = 1, kSpeed = 2;
/// Of an image beside the input as it stands in its file, at most.
constexpr int64_t kLargestVoxel = 8;
/// A distance in doubles' place with its mask and what comes of it.
constexpr int64_t kDistance = 13;
/// Gradients of the smoothed image, of which those of edges are copied to a list that grows.
constexpr int64_t kFindingEdges = 16;
/// g and A.
constexpr int64_t kEdges = 8;
/// Times, states and the queue of a front.
constexpr int64_t kArrival = 5 + 32;
/// Gradients at the surface, a list that grows.
constexpr int64_t kMeasuring = 8;
/// A volume's copy while it is written, and what is compressed of it.
constexpr int64_t kWriting = 8;

// Bytes per voxel of the bricks.
/// Lists of active and changed voxels, which grow; the seven buffers.
constexpr int64_t kVoxelLists = 24, kSevenBuffers = 40;
/// On a device: a stamp, two lists and what changed; the seven buffers and one more.
constexpr int64_t kDeviceLists = 4 * 4, kDeviceBuffers = 8 * 4;
/// On a device, bits per voxel: what is c and what is -c in both buffers, and where these differ.
constexpr int64_t kDeviceBits = 2 * 2 + 1;

/// Voxels that are counted at most. Headers can claim so many that a sum of bytes overflows; no
/// machine has the memory for these either.
constexpr int64_t kMostVoxels = int64_t{1} << 40, kMostOfSeries = int64_t{1} << 53;

std::string bytes_both(int64_t bytes) {
  return bytes_text(bytes) + " (" + std::to_string(bytes) + " bytes)";
}

int64_t stored_voxels(const Vec3i& size) {
  return std::min(levelset::make_brick_layout(size).stored_voxels(), kMostVoxels);
}

int64_t bytes_of_field(const Vec3i& size, const levelset::LevelsetConfig& config) {
  constexpr int32_t kSide = levelset::kBrick;
  const levelset::FieldBytes one = levelset::field_bytes({kSide, kSide, kSide});
  uint64_t brick = one.plain;
  if (config.edge_stop) brick += one.edge_stop;
  if (config.advection_weight > 0) brick += one.advection;
  return static_cast<int64_t>(brick) * (stored_voxels(size) / levelset::kBrickVoxels);
}

/// The sets of voxels that means of regions are taken by, a bit per voxel: those inside, and with a
/// band two of those near to them.
int64_t bytes_of_regions(const Vec3i& size, const levelset::LevelsetConfig& config) {
  if (!(config.region_weight > 0)) return 0;
  const int64_t words = std::min(levelset::make_bit_rows(size).words(), kMostVoxels);
  return (config.region_band_mm > 0 ? 3 : 1) * int64_t{sizeof(uint32_t)} * words;
}

/// What a segmentation keeps and makes, by the names of the settings that it follows from.
struct Parts {
  Parts(const ImageInfo& image, const SegmentationRequest& request,
        const levelset::LevelsetConfig& config, int64_t labels, bool is_on_gpu)
      : image(image),
        request(request),
        config(config),
        labels(std::max<int64_t>(1, labels)),
        is_on_gpu(is_on_gpu) {}

  const ImageInfo& image;
  const SegmentationRequest& request;
  const levelset::LevelsetConfig& config;
  const int64_t labels;
  const bool is_on_gpu;
  const int64_t voxels = std::min(image.grid.voxels(), kMostVoxels);
  const int64_t of_all_frames = static_cast<int64_t>(
      std::min(static_cast<double>(request.frames) * static_cast<double>(voxels),
               static_cast<double>(kMostOfSeries)));
  const int64_t stored = stored_voxels(image.grid.size);
  const bool has_edges = config.edge_stop || config.advection_weight > 0;
  const bool has_regions = config.region_weight > 0;
  const bool is_series = request.frames > 1;

  /// The image and those beside it, which stay to the end; in a series the surfaces of the frame
  /// before, twice, and the frames that are finished.
  int64_t kept() const {
    const SegmentationSeeds& seeds = request.seeds;
    int64_t bytes = kImage;
    if (seeds.speed) bytes += kImage;
    if (seeds.mask) bytes += kMask;
    if (seeds.frozen) bytes += kLabels;
    int64_t start = 0;
    if (seeds.init_labelmap) start += kLabels;
    if (seeds.init_level_set) start += kPhi;
    if (is_series) start = std::max(start, 2 * labels * kPhi);
    return (bytes + start) * voxels + (is_series ? kLabels * of_all_frames : 0);
  }
  int64_t reading() const {
    int64_t raw = std::max(std::min(image.bytes, 2 * kLargestVoxel * voxels), kImage * voxels);
    if (request.seeds.has_files()) raw = std::max(raw, (kLargestVoxel + kLabels) * voxels);
    // The image of the next frame is read beside that of the last and its surfaces.
    return kept() + raw + (is_series ? (kImage + labels * kPhi) * voxels : 0);
  }
  /// A first surface, with its distance beyond the clamp if that is needed.
  int64_t surface() const {
    const bool is_window_found = !request.seeds.speed && !(config.lower && config.upper);
    const bool has_reach = config.max_distance_mm > 0 || is_window_found;
    return (has_reach ? 2 : 1) * kPhi * voxels;
  }
  BesideImage beside() const {
    const SegmentationSeeds& seeds = request.seeds;
    return {!seeds.speed.path.empty(), seeds.mask || seeds.frozen || config.max_distance_mm > 0};
  }
  /// Of one label, while its field is made.
  int64_t pinned() const { return beside().has_limits ? kMask * voxels : 0; }
  /// Of one label, for new means.
  int64_t kept_pinned() const { return has_regions && !is_on_gpu ? pinned() : 0; }
  /// Sets of voxels for means.
  int64_t regions() const { return is_on_gpu ? 0 : bytes_of_regions(image.grid.size, config); }
  /// Of one label, on the host.
  int64_t field() const { return is_on_gpu ? 0 : bytes_of_field(image.grid.size, config); }
  /// First surfaces become fields one by one.
  int64_t starting() const {
    const int64_t surfaces = labels * surface();
    const int64_t finding =
        surfaces + (has_edges ? std::max(kDistance, kFindingEdges) : kDistance) * voxels;
    int64_t making = labels * (std::max(surface(), field()) + kept_pinned()) + surface() +
                     2 * pinned() + regions() + (is_on_gpu ? kPhi * stored : 0);
    if (has_edges) making += kEdges * voxels;
    if (request.seeds.init_arrival_mm > 0) {
      making += (kArrival + kSpeed) * voxels;
      // The field of means has another phi before the front has run.
      making += is_on_gpu ? kSpeed * stored : has_regions ? 2 * kPhi * stored : 0;
    }
    return kept() + std::max(finding, making);
  }
  /// Fields with all that belongs to them.
  int64_t fields() const { return labels * (field() + kept_pinned()); }
  int64_t tracking() const {
    if (is_on_gpu) return 0;
    if (config.tracker == levelset::Tracker::kBrick) return labels * stored / 4;
    return (labels * kVoxelLists + kSevenBuffers) * stored;
  }
  int64_t moving() const { return kept() + fields() + tracking() + regions(); }
  /// Labels and level sets, which stay.
  int64_t result() const { return (kLabels + labels * kPhi) * voxels; }
  int64_t measuring() const {
    return kept() + fields() + result() + (kPhi + kMeasuring) * voxels +
           (is_on_gpu ? kPhi * stored : 0);
  }
  /// Of the files, one after the other, those of single labels among them.
  int64_t writing() const {
    int64_t most = kWriting;
    if (!request.files.level_set.empty()) most = kPhi + kWriting;
    if (!request.files.distance.empty()) most = std::max(most, kDistance + kMask);
    return kept() + result() + most * voxels;
  }
  int64_t resting() const { return kept() + std::max(result(), is_on_gpu ? fields() : 0); }
};

}  // namespace

int64_t device_bytes(const Vec3i& size, const levelset::LevelsetConfig& config, int64_t labels,
                     const BesideImage& beside) {
  int64_t bytes = labels * bytes_of_field(size, config);
  const int64_t stored = stored_voxels(size);
  if (config.region_weight > 0) {
    // Without means D is made before phi, of images that are fewer bytes.
    const int64_t images = beside.is_speed_given ? 2 : 1;
    bytes += (images * kImage + (beside.has_limits ? labels * kMask : 0)) * stored;
    bytes += bytes_of_regions(size, config);
  }
  if (config.tracker == levelset::Tracker::kBrick) return bytes + labels * stored / 8 * kDeviceBits;
  return bytes + (labels * kDeviceLists + kDeviceBuffers) * stored;
}

int64_t device_bytes(const levelset::SegmentRequest& request) {
  const bool has_limits =
      !request.mask.empty() || !request.frozen.empty() || request.config.max_distance_mm > 0;
  return device_bytes(request.image.size(), request.config,
                      static_cast<int64_t>(labels_of(request).size()),
                      {!request.speed.empty(), has_limits});
}

SegmentationMemory segmentation_memory(const ImageInfo& image, const SegmentationRequest& request,
                                       const levelset::LevelsetConfig& config, int64_t labels,
                                       bool is_on_gpu) {
  const Parts parts(image, request, config, labels, is_on_gpu);
  SegmentationMemory memory;
  memory.images = parts.kept();
  memory.labels = parts.labels;
  if (is_on_gpu) {
    memory.device = device_bytes(image.grid.size, config, parts.labels, parts.beside());
  }
  cases::MemoryNeed& host = memory.host;
  host.reading = parts.reading();
  host.resting = parts.resting();
  host.computing = std::max({parts.starting(), parts.moving(), parts.measuring()});
  host.computing += host.computing / 3;  // what is freed on the way stays with the allocator
  host.finishing = parts.writing();
  host.least = host.most();
  return memory;
}

void require_memory(const SegmentationMemory& memory, const Grid& grid, int64_t host_free,
                    int64_t device_free) {
  // A label map of hundreds of labels may be none, but an image of intensities.
  const bool has_labels = memory.labels > 1;
  const std::string of =
      describe(grid) + (has_labels ? " with " + std::to_string(memory.labels) + " labels" : "");
  const std::string crop =
      has_labels ? "crop the image, start from fewer labels" : "crop the image";
  if (memory.device > device_free) {
    throw MemoryError("the level set of " + of + " takes " + bytes_both(memory.device) +
                      " of the device's memory, and " +
                      bytes_both(std::max<int64_t>(0, device_free)) + " are free; " + crop +
                      ", take a larger device, or give --device cpu");
  }
  if (memory.host.most() > host_free) {
    throw MemoryError("the segmentation of " + of + " takes up to " +
                      bytes_both(memory.host.most()) + ", and " +
                      bytes_both(std::max<int64_t>(0, host_free)) + " are free; " + crop +
                      ", or run where more memory is free");
  }
}

void require_memory(const SegmentationMemory& memory, const Grid& grid, const Device& device) {
  const int64_t on_device =
      memory.device > 0 ? static_cast<int64_t>(free_memory_bytes(device)) : int64_t{0};
  require_memory(memory, grid, static_cast<int64_t>(free_memory_bytes(Device::cpu())), on_device);
}

}  // namespace larch::pipeline
