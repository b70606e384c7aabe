// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <memory>
#include <numeric>
#include <set>
#include <utility>
#include <vector>

#include "cuda/features/linear_columns.cuh"

namespace larch::features::cuda {
namespace {

constexpr int kGroup = 32;

/// Undoes linear_offset of a corner within the padding, relative to corner (-pad, -pad, -pad).
Vec3i padded_corner(int32_t offset, const image::IntegralLayout& layout) {
  return voxel_of(offset + layout.linear_offset(layout.pad.x, layout.pad.y, layout.pad.z),
                  layout.stride_size);
}

/// Lays out the columns of one channel.
class PlanWriter {
 public:
  explicit PlanWriter(const LinearPrepareJob& job) : job_(job) {}

  /// Feature i of the request.
  const LinearFeature& feature(uint32_t i) const {
    return job_.columns.features[job_.request.columns[i]];
  }

  void add_channel(int channel, std::span<const uint32_t> members) {
    const image::IntegralLayout& layout = job_.columns.layouts[static_cast<size_t>(channel)];
    ChannelColumns out;
    out.channel = channel;
    out.first_group = static_cast<int32_t>(groups.size());
    out.row_stride = layout.stride_size.x;
    out.plane_stride = out.row_stride * layout.stride_size.y;
    Vec3i low{INT32_MAX, INT32_MAX, INT32_MAX}, high{0, 0, 0};
    for (const uint32_t i : members) {
      for (const LinearTap& tap : taps_of(i)) {
        const Vec3i c = padded_corner(tap.offset, layout);
        low = {std::min(low.x, c.x), std::min(low.y, c.y), std::min(low.z, c.z)};
        high = {std::max(high.x, c.x), std::max(high.y, c.y), std::max(high.z, c.z)};
      }
    }
    out.extent = high - low + Vec3i{1, 1, 1};
    out.first_element =
        layout.linear_offset(low.x - layout.pad.x, low.y - layout.pad.y, low.z - layout.pad.z);
    for (size_t first = 0; first < members.size(); first += kColumns) {
      const auto some = members.subspan(first, std::min<size_t>(kColumns, members.size() - first));
      for (size_t g = 0; g < kColumns; g += kGroup) {
        add_group(some.subspan(std::min(g, some.size()),
                               std::min<size_t>(kGroup, some.size() - std::min(g, some.size()))),
                  layout, low, out.extent);
      }
    }
    out.end_group = static_cast<int32_t>(groups.size());
    channels.push_back(out);
  }

  std::vector<learning::Slot> slots;
  std::vector<ColumnGroup> groups;
  std::vector<LinearTap> staged, direct;
  std::vector<ChannelColumns> channels;

 private:
  std::span<const LinearTap> taps_of(uint32_t i) const {
    const LinearFeature& f = feature(i);
    return std::span<const LinearTap>(job_.columns.taps)
        .subspan(static_cast<size_t>(f.first_tap), f.n_tap);
  }

  void add_group(std::span<const uint32_t> members, const image::IntegralLayout& layout,
                 const Vec3i& low, const Vec3i& extent) {
    ColumnGroup group;
    group.first_tap = static_cast<int32_t>(staged.size());
    for (const uint32_t i : members) {
      const LinearFeature& f = feature(i);
      slots.push_back({job_.request.columns[i], f.n_tap, f.cost_units, job_.request.maps[i]});
      group.n_tap = std::max<int32_t>(group.n_tap, f.n_tap);
    }
    slots.resize(slots.size() + kGroup - members.size());
    const size_t all = static_cast<size_t>(group.n_tap) * kGroup;
    staged.resize(staged.size() + all, LinearTap{0, 0});
    direct.resize(direct.size() + all, LinearTap{0, 0});
    for (size_t lane = 0; lane < members.size(); ++lane) {
      const auto taps = taps_of(members[lane]);
      for (size_t k = 0; k < taps.size(); ++k) {
        const Vec3i c = padded_corner(taps[k].offset, layout) - low;
        const size_t at = static_cast<size_t>(group.first_tap) + k * kGroup + lane;
        staged[at] = {c.x + extent.x * (c.y + extent.y * c.z), taps[k].weight};
        direct[at] = taps[k];
      }
    }
    groups.push_back(group);
  }

  const LinearPrepareJob& job_;
};

/// Tells whether a column is of several channels or has no taps, or a warp would have few columns
/// of a channel.
bool is_direct(const LinearPrepareJob& job) {
  std::set<uint16_t> channels;
  bool has_taps = true;
  for (const uint32_t column : job.request.columns) {
    channels.insert(job.columns.features[column].channel);
    has_taps = has_taps && job.columns.features[column].n_tap > 0;
  }
  return channels.count(kSeveralChannels) > 0 || !has_taps ||
         job.request.columns.size() < channels.size() * kGroup;
}

}  // namespace

PreparedPointer prepare(const LinearPrepareJob& job) {
  if (is_direct(job)) return std::make_shared<DirectColumns>(job);
  const Device device = job.source.device();
  PlanWriter writer(job);
  std::vector<uint32_t> order(job.request.columns.size());
  std::iota(order.begin(), order.end(), 0u);
  std::stable_sort(order.begin(), order.end(), [&writer](uint32_t a, uint32_t b) {
    const LinearFeature &f = writer.feature(a), &g = writer.feature(b);
    return f.channel != g.channel ? f.channel < g.channel : f.n_tap < g.n_tap;
  });
  for (size_t begin = 0; begin < order.size();) {
    const uint16_t channel = writer.feature(order[begin]).channel;
    size_t end = begin;
    while (end < order.size() && writer.feature(order[end]).channel == channel) ++end;
    writer.add_channel(channel, std::span<const uint32_t>(order).subspan(begin, end - begin));
    begin = end;
  }
  auto plan = std::make_shared<WarpColumns>(std::move(writer.slots), device);
  plan->groups = Buffer<ColumnGroup>(device, std::span<const ColumnGroup>(writer.groups));
  using Taps = std::span<const LinearTap>;
  plan->staged_taps = Buffer<LinearTap>(device, Taps(writer.staged));
  plan->direct_taps = Buffer<LinearTap>(device, Taps(writer.direct));
  plan->channels = std::move(writer.channels);
  return plan;
}

}  // namespace larch::features::cuda
