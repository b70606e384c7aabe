// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"
#include "larch/experts/experts_math.h"

/// Experts look again at what another model has found: linear regressions on the image, one for
/// each node of a grid in the frame of the structure (README.md).
namespace larch::experts {

/// Names a structure that experts tell from others, where the model itself does not.
struct Part {
  int32_t value = 0;  ///< in label maps
  std::string name;
};

/// Holds what is around the structures of a training case: a piece of the image of a person.
struct Atlas {
  Vec3i size{};
  Placement placement{};         ///< of its indices
  std::vector<int16_t> image{};  ///< up to kLimit
  std::vector<int8_t> part{};    ///< the structure of a voxel; -1: none
};

/// Holds what experts have learned.
struct Experts {
  int32_t parts = 0;               ///< structures that they tell apart; 0: there are no experts
  int32_t turns = 0;               ///< 1: the axes of a structure turn its frame
  Quaternion mean_axes{};          ///< of the training structures, which give the axes their signs
  std::vector<Part> table{};       ///< its parts; empty: they are the classes of the model
  std::vector<int32_t> entries{};  ///< by node: its place in `beta`; 0: it never occurred
  std::vector<int32_t> beta{};     ///< [entry][part][feature], of 2^-26
  std::vector<Atlas> atlases{};    ///< that vote with the experts; may be empty

  bool empty() const { return parts == 0; }
};

/// Holds experts and atlases on a device, for any number of images.
struct Resident {
  Buffer<int32_t> entries{}, beta{};
  std::vector<int16_t> halves{};   ///< on the CPU in place of beta: ReadJob
  Buffer<int16_t> atlas_images{};  ///< one after another
  Buffer<int8_t> atlas_parts{};    ///< of the same voxels

  int64_t bytes() const {
    return static_cast<int64_t>(4 * (entries.size() + beta.size()) + 2 * halves.size() +
                                3 * atlas_parts.size());
  }
};
Resident make_resident(const Experts& experts, const Device& device);

/// Throws InputError that says which invariant failed. `parts`: structures of the model.
void check_experts(const Experts& experts, size_t parts);

/// Tells where a structure is, in mm along the axes of the grid from the centre of its first voxel.
struct Frame {
  Vec3d centre_mm{};
  Mat3 axes{};             ///< in columns: unit vectors of most spread first
  Vec3d spread_mm{};       ///< standard deviations along the axes of the structure ...
  Vec3d grid_spread_mm{};  ///< ... and of the grid
};
/// Returns the frame of the largest component of what is likelier than 0.4, dilated by a voxel and
/// weighted by its probability; nothing if there is none.
std::optional<Frame> frame_of(const Volume<float>& probability, const Context& context);
/// Gives the axes the signs of a right-handed frame that is nearest to others.
void align(Frame& frame, const Mat3& to);
/// Returns the way from indices, which count from the voxel `origin` of the grid, to nodes.
Placement placement_of(const Frame& frame, bool turns, const Grid& grid, const Vec3i& origin);

/// Returns where experts look: within two voxels of what is likelier than 0.1.
Volume<uint8_t> band_of(const Volume<float>& probability);

/// Calls use(i, at) for each voxel of a piece of an image, with its number in the piece and its
/// index in the image.
template <class Use>
void for_piece(const Vec3i& origin, const Vec3i& size, const Use& use) {
  size_t i = 0;
  Vec3i at;
  for (at.z = origin.z; at.z < origin.z + size.z; ++at.z) {
    for (at.y = origin.y; at.y < origin.y + size.y; ++at.y) {
      for (at.x = origin.x; at.x < origin.x + size.x; ++at.x) use(i++, at);
    }
  }
}

/// Owns a piece of an image with its channels on a device.
struct Piece {
  Vec3i origin{}, size{};
  Buffer<int16_t> image{};
  Buffer<int32_t> filtered{};

  Channels channels() const { return {image.data(), filtered.data(), size}; }
};
constexpr int64_t kBytesOfPiece = 2 + 2 * 4;  ///< for each voxel
/// Returns bytes for each voxel of a piece that is looked at: image, channels and what they are
/// made of, band and results.
int64_t bytes_per_voxel(int parts);
/// Returns a piece without channels: the voxels from `lo` to `hi`, and as many around as those
/// need.
Piece piece_around(const Volume<int16_t>& image, const Vec3i& lo, const Vec3i& hi);
/// Returns such a piece with its channels. `steps`: the integer that the high end of intensities
/// maps to.
Piece make_piece(const Volume<int16_t>& image, int steps, const Vec3i& lo, const Vec3i& hi,
                 const Context& context);

/// Returns how many slices from `lo` to `hi` may be looked at together, beside what the model
/// takes, in so many quarters of the memory. `parts`: 0 where channels are made and nothing more.
/// Throws MemoryError.
int64_t slices_at_once(const Vec3i& lo, const Vec3i& hi, int parts, int64_t model_bytes,
                       int64_t memory_bytes, int quarters = 4);

/// Returns the probability of the structures together.
Volume<float> together(const std::vector<Volume<float>>& parts);

/// Returns the probability of each part, 0 outside of the band; none if nothing was found to look
/// at. `resident`: the experts on the device. `image` and `probability` (of the structures
/// together) are in model space. The image is worked on in slabs of memory_bytes, on which the
/// result does not depend. Throws MemoryError, and Stopped.
std::vector<Volume<float>> look_again(const Experts& experts, const Resident& resident,
                                      const Volume<int16_t>& image, int steps,
                                      const Volume<float>& probability, int64_t memory_bytes,
                                      const Context& context);

namespace cpu {
void read(const ReadJob& job, const Context& context);
void smooth(const SmoothJob& job, int parts, const Context& context);
}  // namespace cpu
namespace cuda {
void read(const ReadJob& job, const Context& context);
void smooth(const SmoothJob& job, int parts, const Context& context);
}  // namespace cuda

}  // namespace larch::experts
