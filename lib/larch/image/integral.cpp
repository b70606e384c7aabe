// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/image/integral.h"

#include <algorithm>
#include <string>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/image/levels.h"

namespace larch::image {
namespace {

constexpr Dispatch<void(const IntegrateJob&, const Context&)> kIntegrate{
    "image::integrate", cpu::integrate, LARCH_CUDA_FN(cuda::integrate)};

void check_place(const Buffer<uint32_t>& out, const Context& context) {
  if (out.device() == context.device) return;
  throw UsageError("image::integrate: the integral volume is on " + to_string(out.device()) +
                   ", the context on " + to_string(context.device));
}

Vec3i size_at_level(Vec3i size, int level) {
  for (int l = 0; l < level; ++l) size = pyramid_size(size);
  return size;
}

/// The pyramid of one image; level 0 is the caller's voxels.
std::vector<std::vector<int16_t>> build_pyramid(VolumeView<const int16_t> fine, int levels,
                                                const Context& context) {
  std::vector<std::vector<int16_t>> pyramid;
  for (int l = 0; l < levels; ++l) {
    const VolumeView<int16_t> coarse{nullptr, pyramid_size(fine.size)};
    std::vector<int16_t>& voxels = pyramid.emplace_back(static_cast<size_t>(coarse.voxels()));
    cpu::make_level({fine, {voxels.data(), coarse.size}}, context);
    fine = {voxels.data(), coarse.size};
  }
  return pyramid;
}

/// The image of a channel.
std::vector<int32_t> make_channel(const VolumeView<const int16_t>& voxels, ChannelKind kind,
                                  int threads) {
  std::vector<int32_t> image(static_cast<size_t>(voxels.voxels()));
  const VolumeView<int32_t> view{image.data(), voxels.size};
  parallel_for(threads, static_cast<int64_t>(voxels.size.y) * voxels.size.z, 4,
               [&](int64_t begin, int64_t end) {
                 for (int64_t row = begin; row < end; ++row) {
                   const auto y = static_cast<int>(row % voxels.size.y);
                   const auto z = static_cast<int>(row / voxels.size.y);
                   for (int x = 0; x < voxels.size.x; ++x) {
                     view({x, y, z}) = channel_value(voxels, kind, x, y, z);
                   }
                 }
               });
  return image;
}

/// One padded row of an image per (y, z), integrated along x, then y within its plane.
template <class T>
void integrate_plane(const VolumeView<const T>& image, Padding padding,
                     const IntegralLayout& layout, int z, uint32_t* plane) {
  const int64_t sx = layout.stride_size.x;
  const int rows = image.size.y + 2 * layout.pad.y, columns = image.size.x + 2 * layout.pad.x;
  std::fill(plane, plane + sx, 0u);
  for (int y = 0; y < rows; ++y) {
    const uint32_t* above = plane + y * sx;
    uint32_t* row = plane + (y + 1) * sx;
    uint32_t sum = 0;
    row[0] = 0;
    const int source_y = y - layout.pad.y, source_z = z - layout.pad.z;
    for (int x = 0; x < columns; ++x) {
      sum +=
          static_cast<uint32_t>(padded_value(image, padding, x - layout.pad.x, source_y, source_z));
      row[x + 1] = above[x + 1] + sum;
    }
  }
}

template <class T>
void integrate_image(const VolumeView<const T>& image, Padding padding,
                     const IntegralLayout& layout, uint32_t* out, int threads) {
  const int64_t plane = static_cast<int64_t>(layout.stride_size.x) * layout.stride_size.y;
  uint32_t* base = out + layout.offset;
  std::fill(base, base + plane, 0u);
  const int planes = image.size.z + 2 * layout.pad.z;
  parallel_for(threads, planes, 1, [&](int64_t begin, int64_t end) {
    for (int z = static_cast<int>(begin); z < end; ++z) {
      integrate_plane(image, padding, layout, z, base + (z + 1) * plane);
    }
  });
  // Along z: each thread owns a range of corners of the plane, so rows stay contiguous.
  parallel_for(threads, plane, 4096, [&](int64_t begin, int64_t end) {
    for (int z = 1; z < planes; ++z) {
      const uint32_t* below = base + z * plane;
      uint32_t* here = base + (z + 1) * plane;
      for (int64_t i = begin; i < end; ++i) here[i] += below[i];
    }
  });
}

}  // namespace

std::vector<IntegralLayout> layouts_for(const Vec3i& size, std::span<const ChannelSpec> channels,
                                        const Vec3i& pad) {
  std::vector<IntegralLayout> layouts;
  int64_t offset = 0;
  for (const ChannelSpec& channel : channels) {
    IntegralLayout layout;
    layout.voxels = size_at_level(size, channel.level);
    layout.stride_size = layout.voxels + pad + pad + Vec3i{1, 1, 1};
    layout.pad = pad;
    layout.level = channel.level;
    layout.offset = offset;
    offset += layout.elements();
    layouts.push_back(layout);
  }
  return layouts;
}

std::vector<IntegralLayout> layouts_for(const Vec3i& size, std::span<const ChannelSpec> channels,
                                        int pad) {
  return layouts_for(size, channels, Vec3i{pad, pad, pad});
}

int64_t channel_image_bytes(const Vec3i& size, std::span<const ChannelSpec> channels) {
  int64_t largest = 0;
  for (const ChannelSpec& channel : channels) {
    if (channel.kind == ChannelKind::kIntensity) continue;
    const Vec3i at_level = size_at_level(size, channel.level);
    largest = std::max(largest, int64_t{4} * at_level.x * at_level.y * at_level.z);
  }
  return largest;
}

int64_t total_elements(std::span<const IntegralLayout> layouts) {
  int64_t total = 0;
  for (const IntegralLayout& layout : layouts) total += layout.elements();
  return total;
}

void integrate(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
               Padding padding, std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
               const Context& context) {
  check_place(out, context);
  kIntegrate(context.device, IntegrateJob{voxels, channels, padding, layouts, out.data(), false},
             context);
}

void integrate_resident(const Buffer<int16_t>& voxels, const Vec3i& size,
                        std::span<const ChannelSpec> channels, Padding padding,
                        std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
                        const Context& context) {
  if (!(voxels.device() == out.device())) {
    throw UsageError("image::integrate_resident: voxels and integral volume on two devices");
  }
  check_place(out, context);
  kIntegrate(context.device,
             IntegrateJob{{voxels.data(), size}, channels, padding, layouts, out.data(), true},
             context);
}

IntegralSet integral_set(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
                         Padding padding, const Vec3i& pad, const Context& context) {
  IntegralSet set;
  set.size = voxels.size;
  set.layouts = layouts_for(voxels.size, channels, pad);
  set.data = Buffer<uint32_t>(context.device, static_cast<size_t>(total_elements(set.layouts)));
  integrate(voxels, channels, padding, set.layouts, set.data, context);
  return set;
}

IntegralSet integral_set(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
                         Padding padding, int pad, const Context& context) {
  return integral_set(voxels, channels, padding, Vec3i{pad, pad, pad}, context);
}

namespace cpu {

void integrate(const IntegrateJob& job, const Context& context) {
  int levels = 0;
  for (const ChannelSpec& channel : job.channels) levels = std::max(levels, channel.level);
  const auto pyramid = build_pyramid(job.voxels, levels, context);
  for (size_t c = 0; c < job.channels.size(); ++c) {
    const int level = job.channels[c].level;
    const VolumeView<const int16_t> source =
        level == 0 ? job.voxels
                   : VolumeView<const int16_t>{pyramid[static_cast<size_t>(level - 1)].data(),
                                               size_at_level(job.voxels.size, level)};
    const ChannelKind kind = job.channels[c].kind;
    if (kind == ChannelKind::kIntensity) {
      integrate_image(source, job.padding, job.layouts[c], job.out, context.threads);
      continue;
    }
    const std::vector<int32_t> image = make_channel(source, kind, context.threads);
    integrate_image(VolumeView<const int32_t>{image.data(), source.size}, job.padding,
                    job.layouts[c], job.out, context.threads);
  }
}

}  // namespace cpu
}  // namespace larch::image
