// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/image/integral.h"

#include <algorithm>
#include <string>

#include "larch/core/device.h"
#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/image/filter_bank.h"
#include "larch/image/levels.h"

namespace larch::image {
namespace {

void check_place(const Buffer<uint32_t>& out, const Context& context) {
  if (out.device() == context.device) return;
  throw UsageError("image::integrate: the integral volume is on " + to_string(out.device()) +
                   ", the context on " + to_string(context.device));
}

Vec3i size_at_level(Vec3i size, int level) {
  for (int l = 0; l < level; ++l) size = pyramid_size(size);
  return size;
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
  parallel_for_each(threads, planes, 1, [&](int z) {
    integrate_plane(image, padding, layout, z, base + (z + 1) * plane);
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

namespace cpu {

void make_channel(const ChannelJob& job, const Context& context) {
  const Vec3i size = job.voxels.size;
  const VolumeView<int32_t> view{job.out, size};
  parallel_for_each(context.threads, int64_t{size.y} * size.z, 4, [&](int64_t row) {
    const auto y = static_cast<int>(row % size.y), z = static_cast<int>(row / size.y);
    for (int x = 0; x < size.x; ++x) {
      view({x, y, z}) = channel_value(job.voxels, job.kind, x, y, z);
    }
  });
}

void integrate(const IntegrateJob& job, const Context& context) {
  const auto all = [&](const auto& images) {
    for (const auto& image : images) {
      integrate_image(image.voxels, job.padding, image.layout, job.out, context.threads);
    }
  };
  all(job.intensities);
  all(job.others);
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const IntegrateJob&, const Context&)> kIntegrate{
    "image::integrate", cpu::integrate, LARCH_CUDA_FN(cuda::integrate)};
constexpr Dispatch<void(const ChannelJob&, const Context&)> kMakeChannel{
    "image::make_channel", cpu::make_channel, LARCH_CUDA_FN(cuda::make_channel)};

/// The components of an image at one level, on the device of the context.
struct Level {
  std::vector<Buffer<int16_t>> voxels;
  std::vector<VolumeView<const int16_t>> views;
};

std::vector<Level> make_pyramid(Components components, bool resident,
                                std::span<const ChannelSpec> channels, const Context& context) {
  int32_t coarsest = 0;
  for (const ChannelSpec& channel : channels) coarsest = std::max(coarsest, channel.level);
  std::vector<Level> pyramid(static_cast<size_t>(coarsest) + 1);
  for (VolumeView<const int16_t> view : components) {
    if (!resident && context.device.is_cuda()) {
      const std::span<const int16_t> host(view.data, static_cast<size_t>(view.voxels()));
      view.data = pyramid[0].voxels.emplace_back(context.device, host).data();
    }
    pyramid[0].views.push_back(view);
    for (size_t level = 1; level < pyramid.size(); ++level) {
      VolumeView<int16_t> coarse{nullptr, pyramid_size(view.size)};
      const auto voxels = static_cast<size_t>(coarse.voxels());
      coarse.data = pyramid[level].voxels.emplace_back(context.device, voxels).data();
      make_level({view, coarse}, context);
      view = {coarse.data, coarse.size};
      pyramid[level].views.push_back(view);
    }
  }
  return pyramid;
}

/// Filters are made and integrated together on a GPU, as many as take no more than this.
constexpr int64_t kTogetherBytes = int64_t{512} << 20;

/// Makes the channels [first, end) of one level, which are filters or one other, and integrates
/// them.
void integrate_channels(const Level& level, std::span<const ChannelSpec> channels,
                        std::span<const IntegralLayout> layouts, Padding padding, uint32_t* out,
                        const Context& context) {
  const Device& device = context.device;
  const ChannelSpec& one = channels[0];
  const VolumeView<const int16_t> voxels =
      level.views[static_cast<size_t>(std::max(0, one.component))];
  if (one.kind == ChannelKind::kIntensity) {
    const ChannelImage<int16_t> image{voxels, layouts[0]};
    return kIntegrate(device, IntegrateJob{std::span(&image, 1), {}, padding, out}, context);
  }
  Buffer<int32_t> memory(device, static_cast<size_t>(voxels.voxels()) * channels.size());
  if (is_filter(one.kind)) {
    filter(channels, level.views, memory.data(), context);
  } else {
    kMakeChannel(device, ChannelJob{one.kind, voxels, memory.data()}, context);
  }
  std::vector<ChannelImage<int32_t>> images;
  for (size_t c = 0; c < channels.size(); ++c) {
    const int32_t* image = memory.data() + static_cast<int64_t>(c) * voxels.voxels();
    images.push_back({{image, voxels.size}, layouts[c]});
  }
  kIntegrate(device, IntegrateJob{{}, images, padding, out}, context);
}

void integrate_all(Components components, bool resident, std::span<const ChannelSpec> channels,
                   Padding padding, std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
                   const Context& context) {
  check_place(out, context);
  check_channels(channels, components.size());
  const std::vector<Level> pyramid = make_pyramid(components, resident, channels, context);
  for (size_t first = 0, end; first < channels.size(); first = end) {
    const Level& level = pyramid[static_cast<size_t>(channels[first].level)];
    const int64_t each = (kFilterBytes + 4) * level.views[0].voxels();
    const auto goes_along = [&](const ChannelSpec& channel) {
      return context.device.is_cuda() && is_filter(channels[first].kind) &&
             is_filter(channel.kind) && channel.level == channels[first].level &&
             each * static_cast<int64_t>(end + 1 - first) <= kTogetherBytes;
    };
    for (end = first + 1; end < channels.size() && goes_along(channels[end]);) ++end;
    integrate_channels(level, channels.subspan(first, end - first),
                       layouts.subspan(first, end - first), padding, out.data(), context);
  }
  wait_for(context.device);
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

int64_t channel_image_bytes(const Vec3i& size, std::span<const ChannelSpec> channels) {
  int64_t largest = 0;
  const auto filters = std::count_if(channels.begin(), channels.end(),
                                     [](const ChannelSpec& c) { return is_filter(c.kind); });
  for (const ChannelSpec& channel : channels) {
    if (channel.kind == ChannelKind::kIntensity) continue;
    const Vec3i at_level = size_at_level(size, channel.level);
    const int64_t voxels = int64_t{at_level.x} * at_level.y * at_level.z;
    const int64_t each = (kFilterBytes + 4) * voxels;
    largest = std::max(largest, is_filter(channel.kind)
                                    ? std::max(each, std::min(each * filters, kTogetherBytes))
                                    : 4 * voxels);
  }
  return largest;
}

int64_t total_elements(std::span<const IntegralLayout> layouts) {
  int64_t total = 0;
  for (const IntegralLayout& layout : layouts) total += layout.elements();
  return total;
}

int radius_of(const ChannelSpec& channel) {
  return is_filter(channel.kind) ? filter_radius(channel.sigma_voxels)
                                 : rule_of(channel.kind).radius;
}

void check_channels(std::span<const ChannelSpec> channels, size_t components) {
  for (const ChannelSpec& channel : channels) {
    const bool filter = is_filter(channel.kind);
    const double sigma = channel.sigma_voxels;
    if (filter ? !(sigma >= 0.3 && sigma <= kMaximumSigma) : sigma != 0) {
      throw UsageError(std::string("the channel ") + rule_of(channel.kind).name +
                       (filter ? " needs a sigma from 0.3 to 32 voxels" : " has no sigma"));
    }
    if (channel.component == kLuminance && filter && (components == 1 || components == 3)) continue;
    if (channel.component < 0 || static_cast<size_t>(channel.component) >= components) {
      throw UsageError(std::string("the channel ") + rule_of(channel.kind).name +
                       " is of a component that " + std::to_string(components) +
                       " components do not have");
    }
  }
}

void integrate(Components components, std::span<const ChannelSpec> channels, Padding padding,
               std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
               const Context& context) {
  integrate_all(components, false, channels, padding, layouts, out, context);
}

void integrate_resident(Components components, std::span<const ChannelSpec> channels,
                        Padding padding, std::span<const IntegralLayout> layouts,
                        Buffer<uint32_t>& out, const Context& context) {
  integrate_all(components, true, channels, padding, layouts, out, context);
}

void integrate_resident(const Buffer<int16_t>& voxels, const Vec3i& size,
                        std::span<const ChannelSpec> channels, Padding padding,
                        std::span<const IntegralLayout> layouts, Buffer<uint32_t>& out,
                        const Context& context) {
  if (!(voxels.device() == out.device())) {
    throw UsageError("image::integrate_resident: voxels and integral volume on two devices");
  }
  const VolumeView<const int16_t> view{voxels.data(), size};
  integrate_resident(Components(&view, 1), channels, padding, layouts, out, context);
}

IntegralSet integral_set(Components components, std::span<const ChannelSpec> channels,
                         Padding padding, const Vec3i& pad, const Context& context) {
  IntegralSet set;
  set.size = components[0].size;
  set.layouts = layouts_for(set.size, channels, pad);
  set.data = Buffer<uint32_t>(context.device, static_cast<size_t>(total_elements(set.layouts)));
  integrate(components, channels, padding, set.layouts, set.data, context);
  return set;
}

IntegralSet integral_set(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
                         Padding padding, const Vec3i& pad, const Context& context) {
  return integral_set(Components(&voxels, 1), channels, padding, pad, context);
}

IntegralSet integral_set(VolumeView<const int16_t> voxels, std::span<const ChannelSpec> channels,
                         Padding padding, int pad, const Context& context) {
  return integral_set(voxels, channels, padding, Vec3i{pad, pad, pad}, context);
}

}  // namespace larch::image
