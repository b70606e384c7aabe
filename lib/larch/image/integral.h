// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/image/channel_math.h"

namespace larch::image {

/// In place of a component: 0.299 R + 0.587 G + 0.114 B of three, or the only one.
constexpr int kLuminance = -1;

/// A channel of one pyramid level: what a feature refers to.
struct ChannelSpec {
  ChannelKind kind = ChannelKind::kIntensity;
  int level = 0;            ///< a feature at voxel x reads voxel x >> level
  int component = 0;        ///< of the input; filters may take kLuminance
  double sigma_voxels = 0;  ///< of filters

  friend bool operator==(const ChannelSpec&, const ChannelSpec&) = default;
};
/// Returns voxels that a channel reads to each side along an axis.
int radius_of(const ChannelSpec& channel);

/// The components of an image: volumes of one size, on the host or on the device of an operation.
using Components = std::span<const VolumeView<const int16_t>>;

/// Where the integral volume of one channel lies in a buffer.
///
/// The channel is padded by `pad` voxels on both sides along each axis before integration, so that
/// no feature of that reach needs a bounds check. S(c) = sum of the padded channel over all voxels
/// below corner c in x, y and z, modulo 2^32; corner (0,0,0) of the unpadded image is element
/// (pad.x, pad.y, pad.z).
struct IntegralLayout {
  int64_t offset = 0;   ///< element of S(-pad.x, -pad.y, -pad.z)
  Vec3i stride_size{};  ///< allocated corners along x, y, z: strides come from x and y
  Vec3i voxels{};       ///< voxels of the channel along x, y, z, without padding
  Vec3i pad{};
  int32_t level = 0;
  bool is_cut = false;  ///< planes below were taken away: the lowest one is not that of zeros

  /// Element of corner `at` (a voxel of the full-resolution image) at this channel's level.
  LARCH_HD int64_t base(const Vec3i& at) const {
    return element_at_level({at.x >> level, at.y >> level, at.z >> level});
  }
  /// Element of corner `at`, a voxel of this channel's level.
  LARCH_HD int64_t element_at_level(const Vec3i& at) const {
    return offset + linear_offset(at.x + pad.x, at.y + pad.y, at.z + pad.z);
  }
  LARCH_HD int64_t linear_offset(int dx, int dy, int dz) const {
    return dx +
           static_cast<int64_t>(stride_size.x) * (dy + static_cast<int64_t>(stride_size.y) * dz);
  }
  int64_t elements() const {
    return static_cast<int64_t>(stride_size.x) * stride_size.y * stride_size.z;
  }
};

/// Layouts for one image of `size` voxels, packed one behind the other from element 0.
std::vector<IntegralLayout> layouts_for(const Vec3i& size, std::span<const ChannelSpec> channels,
                                        const Vec3i& pad);

/// Returns bytes of the images that are made at a time before channels are integrated; the
/// intensities are integrated as they are.
int64_t channel_image_bytes(const Vec3i& size, std::span<const ChannelSpec> channels);

/// Throws UsageError for channels of components that are not there, of a filter without a sigma, or
/// of luminance where it is not defined.
void check_channels(std::span<const ChannelSpec> channels, size_t components);

/// Returns the sum of the elements of all layouts.
int64_t total_elements(std::span<const IntegralLayout> layouts);

/// Makes the channels of one image, one after the other, and integrates them into `out` at the
/// given layouts. The components are on the host, x fastest. Crow 1984; in 3-D: section 3.2 of
/// Birkbeck et al. `out` is on context.device, where the work is done on return. Throws MemoryError
/// when the device's memory does not suffice, and UsageError when `out` is elsewhere.
void integrate(Components components, std::span<const ChannelSpec> channels, Padding padding,
               std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
               const Context& context);

/// The same for components that are on the device of `out` already; of one in a buffer, whose
/// place is checked. Throw UsageError if `out` is elsewhere.
void integrate_resident(Components components, std::span<const ChannelSpec> channels,
                        Padding padding, std::span<const IntegralLayout> layouts,
                        Buffer<uint32_t>& out, const Context& context);
void integrate_resident(const Buffer<int16_t>& voxels, const Vec3i& size,
                        std::span<const ChannelSpec> channels, Padding padding,
                        std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
                        const Context& context);

/// The integral channels of one image, ready for evaluation, on context.device.
struct IntegralSet {
  Vec3i size{};  ///< voxels of the full-resolution image
  std::vector<IntegralLayout> layouts;
  Buffer<uint32_t> data;
};
IntegralSet integral_set(Components components, std::span<const ChannelSpec> channels,
                         Padding padding, const Vec3i& pad, const Context& context);
IntegralSet integral_set(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
                         Padding padding, const Vec3i& pad, const Context& context);
IntegralSet integral_set(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
                         Padding padding, int pad, const Context& context);

/// The image of a channel and where its integral lies.
template <class T>
struct ChannelImage {
  VolumeView<const T> voxels;
  IntegralLayout layout;
};
/// Holds what one implementation integrates: images of one size, intensities as they are and
/// others. All pointers are of its device.
struct IntegrateJob {
  std::span<const ChannelImage<int16_t>> intensities;
  std::span<const ChannelImage<int32_t>> others;
  Padding padding = Padding::kClamp;
  uint32_t* out = nullptr;
};
/// The image of a channel by an integer rule.
struct ChannelJob {
  ChannelKind kind;
  VolumeView<const int16_t> voxels;
  int32_t* out;
};
namespace cuda {
void make_channel(const ChannelJob& job, const Context& context);
void integrate(const IntegrateJob& job, const Context& context);
}  // namespace cuda

}  // namespace larch::image
