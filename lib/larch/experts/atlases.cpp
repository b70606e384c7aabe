// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/experts/atlases.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"

namespace larch::experts {
namespace {

constexpr int kAtlasMargin = 8;  ///< voxels around the structures of an atlas
/// Voxels around the band: a patch, the shift of one, and the votes of its neighbours.
constexpr int kMargin = 4;

constexpr Dispatch<void(const FuseJob&, const Context&)> kFuse{"experts::fuse", cpu::fuse,
                                                               LARCH_CUDA_FN(cuda::fuse)};

/// Leads from a frame, in units of the spread of the structure, to indices from `origin` on.
struct FromFrame {
  Mat3 matrix{};
  Vec3d offset{};
};
FromFrame from_frame(const Frame& frame, bool turns, const Vec3d& spacing_mm, const Vec3i& origin) {
  FromFrame from;
  for (int row = 0; row < 3; ++row) {
    for (int k = 0; k < 3; ++k) {
      const double along = turns ? frame.axes.m[row][k] : row == k ? 1 : 0;
      from.matrix.m[row][k] =
          along * (turns ? frame.spread_mm : frame.grid_spread_mm)[k] / spacing_mm[row];
    }
    from.offset[row] = frame.centre_mm[row] / spacing_mm[row] - origin[row];
  }
  return from;
}

int16_t intensity(const Volume<int16_t>& image, int steps, Vec3i at) {
  for (int axis = 0; axis < 3; ++axis) at[axis] = image::clamp_index(at[axis], image.size()[axis]);
  return static_cast<int16_t>(image(at) * kFullIntensity / steps);
}

AtlasView view_of(const Atlas& atlas, const FromFrame& target) {
  AtlasView view;
  view.size = atlas.size;
  const Mat3 back = inverse(target.matrix);
  const auto& from = atlas.index_from_frame;
  for (size_t row = 0; row < 3; ++row) {
    double m[3], offset = from[row * 4 + 3];
    for (int k = 0; k < 3; ++k) {
      m[k] = from[row * 4] * back.m[0][k] + from[row * 4 + 1] * back.m[1][k] +
             from[row * 4 + 2] * back.m[2][k];
      offset -= m[k] * target.offset[k];
      view.matrix[row][k] = static_cast<int32_t>(std::llround(
          std::clamp(m[k] * (1 << kMatrixBits), -double(kLargestScale), double(kLargestScale))));
    }
    view.offset[row] = std::llround(std::clamp(offset * (1 << (kMatrixBits + kPlaceBits)),
                                               -double(kLargestOffset), double(kLargestOffset)));
  }
  return view;
}

/// Joins what experts say of a voxel with the votes of atlases by the mean of the logs of both.
void join(std::vector<Volume<float>>& said, const Vec3i& at, const int32_t* votes, size_t stride) {
  double both[kMaximumParts] = {}, none = 1, none_voted = 1;
  for (size_t k = 0; k < said.size(); ++k) {
    const double p = said[k](at), voted = static_cast<double>(votes[k * stride]) / kOne;
    both[k] = std::sqrt(p * voted);
    none -= p;
    none_voted -= voted;
  }
  double sum = std::sqrt(std::max(none, 0.0) * std::max(none_voted, 0.0));
  for (const double one : both) sum += one;
  for (size_t k = 0; k < said.size() && sum > 0; ++k) {
    said[k](at) = static_cast<float>(both[k] / sum);
  }
}

/// `stored`: voxels of the atlases and the piece.
void require_memory(const FuseJob& job, int64_t stored, int64_t memory_bytes,
                    const Context& context) {
  const int64_t votes = 8 * (1 + job.parts);
  const int64_t of_voxel =
      11 + votes + 4 * job.parts + job.atlases * (2 + job.parts) +
      (context.device.is_cuda() ? 2 * kShifts : context.threads * (20 + votes));
  const int64_t needed = stored * 7 + job.voxels() * of_voxel + job.atlases * job.node_count() * 24;
  if (needed <= memory_bytes) return;
  throw MemoryError("the atlases of the model need " + std::to_string(needed) +
                    " bytes for the structure in this image, and may take " +
                    std::to_string(memory_bytes));
}

std::vector<uint16_t> weight_table() {
  std::vector<uint16_t> table;
  for (int k = 0; k + 1 < kWeights; ++k) {
    table.push_back(static_cast<uint16_t>(std::lround(kMostWeight * exp_of(-k / 128.0))));
  }
  table.push_back(0);
  return table;
}

}  // namespace

Atlas make_atlas(const Experts& experts, const Volume<int16_t>& image, const Volume<int8_t>& part,
                 int steps, const Context& context) {
  Atlas atlas;
  const auto inside = mapped<uint8_t>(part, [](int8_t p) { return p >= 0; });
  std::optional<Frame> frame =
      frame_of(mapped<float>(inside, [](uint8_t v) { return static_cast<float>(v); }), context);
  if (!frame) return atlas;
  align(*frame, rotation_matrix(experts.mean_axes));
  auto [lo, hi] = box_of(inside);
  for (int axis = 0; axis < 3; ++axis) {
    lo[axis] = std::max(lo[axis] - kAtlasMargin, 0);
    hi[axis] = std::min(hi[axis] + kAtlasMargin, image.size()[axis] - 1);
    atlas.size[axis] = hi[axis] - lo[axis] + 1;
  }
  const FromFrame from = from_frame(*frame, experts.turns != 0, image.grid().spacing_mm, lo);
  for (int row = 0; row < 3; ++row) {
    double* out = atlas.index_from_frame.data() + size_t{4} * static_cast<size_t>(row);
    for (int k = 0; k < 3; ++k) out[k] = from.matrix.m[row][k];
    out[3] = from.offset[row];
  }
  Vec3i at;
  for (at.z = lo.z; at.z <= hi.z; ++at.z) {
    for (at.y = lo.y; at.y <= hi.y; ++at.y) {
      for (at.x = lo.x; at.x <= hi.x; ++at.x) {
        atlas.image.push_back(intensity(image, steps, at));
        atlas.part.push_back(std::max(part(at), int8_t{-1}));
      }
    }
  }
  return atlas;
}

void ask_atlases(const Experts& experts, const Volume<int16_t>& image, int steps, int left_out,
                 int64_t memory_bytes, std::vector<Volume<float>>& said, const Context& context) {
  if (said.empty()) return;
  const Volume<float> found = together(said);
  std::optional<Frame> frame = frame_of(found, context);
  if (!frame) return;
  align(*frame, rotation_matrix(experts.mean_axes));
  const Volume<uint8_t> band = band_of(found);
  const auto [lo, hi] = box_of(band);
  const Device& device = context.device;
  // The piece is padded, so that no shift leaves it, and odd along each axis, so that its last
  // voxels are nodes.
  FuseJob job;
  const Vec3i origin = lo - Vec3i{kMargin, kMargin, kMargin};
  for (int axis = 0; axis < 3; ++axis) job.size[axis] = (hi[axis] - lo[axis] + 2 * kMargin + 1) | 1;
  job.nodes = {job.size.x / 2 + 1, job.size.y / 2 + 1, job.size.z / 2 + 1};
  const auto voxels = static_cast<size_t>(job.voxels());
  std::vector<int16_t> values(voxels);
  std::vector<uint8_t> wanted(voxels, 0);
  for (size_t i = 0; i < voxels; ++i) {
    const Vec3i at = voxel_of(static_cast<int64_t>(i), job.size) + origin;
    values[i] = intensity(image, steps, at);
    if (!image.grid().contains(at) || band(at) == 0) continue;
    for (int s = 0; s < kShifts; ++s) {
      int32_t square = 0;
      uint8_t& beside = wanted[static_cast<size_t>(static_cast<int64_t>(i) + job.shift(s, square))];
      beside = std::max<uint8_t>(beside, square == 0 ? 2 : 1);
    }
  }
  const FromFrame target = from_frame(*frame, experts.turns != 0, image.grid().spacing_mm, origin);
  std::vector<AtlasView> views;
  std::vector<int8_t> parts;
  for (int a = 0; a < std::ssize(experts.atlases); ++a) {
    const Atlas& atlas = experts.atlases[static_cast<size_t>(a)];
    if (a == left_out || atlas.image.empty()) continue;
    views.push_back(view_of(atlas, target));
    values.insert(values.end(), atlas.image.begin(), atlas.image.end());
    parts.insert(parts.end(), atlas.part.begin(), atlas.part.end());
  }
  if (views.empty()) return;
  job.atlases = static_cast<int32_t>(views.size());
  job.parts = experts.parts;
  views.emplace_back().size = job.size;
  std::ranges::rotate(values, values.begin() + job.voxels());  // the piece is behind the atlases
  const Buffer<int16_t> images(device, values);
  const Buffer<int8_t> parts_there(device, parts);
  Buffer<int16_t> smooth(device, values.size()), beside(device, values.size());
  int64_t first = 0;
  for (AtlasView& view : views) {
    view.image = images.data() + first;
    view.smooth = smooth.data() + first;
    view.spare = beside.data() + first;
    view.part = parts_there.data() + first;
    first += int64_t{view.size.x} * view.size.y * view.size.z;
  }
  require_memory(job, std::ssize(values), memory_bytes, context);
  const auto nodes = static_cast<size_t>(job.node_count()), n = views.size() - 1;
  const Buffer<AtlasView> views_there(device, views);
  const Buffer<uint8_t> band_there(device, wanted);
  const Buffer<uint16_t> table(device, weight_table());
  Buffer<int32_t> moved(device, n * 3 * nodes), spare(device, n * 3 * nodes);
  Buffer<int16_t> warped(device, n * voxels);
  Buffer<uint8_t> share(device, n * static_cast<size_t>(job.parts) * voxels);
  Buffer<int32_t> least(device, voxels);
  Buffer<uint32_t> factor(device, voxels);
  Buffer<uint64_t> votes(device, (1 + static_cast<size_t>(job.parts)) * voxels);
  Buffer<int32_t> out(device, static_cast<size_t>(job.parts) * voxels);
  moved.set_zero();
  votes.set_zero();
  out.set_zero();
  job.views = views_there.data();
  job.image = views.back().image;
  job.smooth = views.back().smooth;
  job.band = band_there.data();
  job.table = table.data();
  job.moved = moved.data();
  job.spare = spare.data();
  job.warped = warped.data();
  job.share = share.data();
  job.least = least.data();
  job.factor = factor.data();
  job.votes = votes.data();
  job.out = out.data();
  kFuse(device, job, context);
  const std::vector<int32_t> votes_for = out.to_vector();
  for (size_t i = 0; i < voxels; ++i) {
    if (wanted[i] != 2) continue;
    join(said, voxel_of(static_cast<int64_t>(i), job.size) + origin, votes_for.data() + i, voxels);
  }
}

namespace {

/// Blurs rows of a volume along an axis.
template <class T>
void blur_rows(const T* in, T* out, const Vec3i& size, int axis) {
  const int64_t width = size.x, plane = width * size.y;
  for (int32_t z = 0; z < size.z; ++z) {
    for (int32_t y = 0; y < size.y; ++y) {
      const T* rows[5];
      for (int k = 0; k < 5; ++k) {
        rows[k] = in + (axis == 2 ? image::clamp_index(z + k - 2, size.z) : z) * plane +
                  (axis == 1 ? image::clamp_index(y + k - 2, size.y) : y) * width;
      }
      T* to = out + z * plane + y * width;
      if (axis > 0) {
        for (int32_t x = 0; x < size.x; ++x) {
          to[x] =
              static_cast<T>(blurred(rows[0][x], rows[1][x], rows[2][x], rows[3][x], rows[4][x]));
        }
        continue;
      }
      for (int32_t x = 2; x + 2 < size.x; ++x) {
        const T* v = rows[0] + x;
        to[x] = static_cast<T>(blurred(v[-2], v[-1], v[0], v[1], v[2]));
      }
      for (int32_t x = 0; x < size.x; x = x == 1 && size.x > 4 ? size.x - 2 : x + 1) {
        to[x] = static_cast<T>(blurred_along(in, z * plane + y * width + x, size, 0));
      }
    }
  }
}

void register_atlas(const FuseJob& job, int a) {
  const int64_t n = job.node_count();
  int32_t* moved = job.moved + a * 3 * n;
  int32_t* spare = job.spare + a * 3 * n;
  for (int round = 0; round < kRounds; ++round) {
    for (int64_t node = 0; node < n; ++node) job.move(a, node);
    for (int axis = 0; axis < 3; ++axis) {
      int32_t* u = moved + axis * n;
      blur_rows(u, spare, job.nodes, 0);
      blur_rows(spare, spare + n, job.nodes, 1);
      blur_rows(spare + n, u, job.nodes, 2);
    }
  }
}

/// Holds the differences of the patches of an atlas, moved by a shift, of a range of voxels.
struct Differences {
  std::vector<int32_t> a, b;

  /// Sums three neighbours along each axis; those at the ends of the range are not known.
  void box_sum(const FuseJob& job) {
    const int64_t n = std::ssize(a);
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t s = job.step(axis == 0, axis == 1, axis == 2);
      const int32_t* from = a.data();
      int32_t* to = b.data();
      for (int64_t i = s; i < n - s; ++i) to[i] = from[i - s] + from[i] + from[i + s];
      std::swap(a, b);
    }
  }
  void compare(const FuseJob& job, int atlas, int64_t shift) {
    const int64_t n = job.voxels(), first = std::max<int64_t>(0, -shift);
    const int64_t last = std::min(n, n - shift);
    const int16_t* x = job.image;
    const int16_t* y = job.warped + atlas * n + shift;
    for (int64_t i = first; i < last; ++i) {
      const int32_t d = x[i] - y[i];
      a[static_cast<size_t>(i)] = d * d;
    }
    box_sum(job);
  }
};

}  // namespace

void cpu::fuse(const FuseJob& job, const Context& context) {
  const int64_t n = job.voxels();
  const auto size = static_cast<size_t>(n);
  parallel_for_each(context.threads, job.atlases + 1, 1, [&](int64_t a) {
    const AtlasView& view = job.views[a];
    blur_rows(view.image, view.smooth, view.size, 0);
    blur_rows(view.smooth, view.spare, view.size, 1);
    blur_rows(view.spare, view.smooth, view.size, 2);
  });
  parallel_for_each(context.threads, job.atlases, 1, [&](int64_t a) {
    register_atlas(job, static_cast<int>(a));
    for (int64_t i = 0; i < n; ++i) job.warp(static_cast<int>(a), i);
  });
  std::vector<int64_t> near, asked;
  for (int64_t i = 0; i < n; ++i) {
    if (job.band[i] > 0) near.push_back(i);
    if (job.band[i] > 1) asked.push_back(i);
  }
  const int64_t grain = (job.atlases + context.threads - 1) / context.threads;
  std::mutex mutex;
  std::fill_n(job.least, n, 0x7fffffff);
  parallel_for(context.threads, job.atlases, grain, [&](int64_t begin, int64_t end) {
    Differences differences{std::vector<int32_t>(size), std::vector<int32_t>(size)};
    std::vector<int32_t> least(size, 0x7fffffff);
    for (int64_t a = begin; a < end; ++a) {
      for (int s = 0; s < kShifts; ++s) {
        int32_t square = 0;
        differences.compare(job, static_cast<int>(a), job.shift(s, square));
        const int32_t* d = differences.a.data();
        int32_t* m = least.data();
        for (int64_t i = 0; i < n; ++i) m[i] = d[i] < m[i] ? d[i] : m[i];
      }
    }
    const std::lock_guard lock(mutex);
    for (const int64_t i : near) {
      job.least[i] = std::min(job.least[i], least[static_cast<size_t>(i)]);
    }
  });
  for (const int64_t i : near) job.set_factor(i);
  parallel_for(context.threads, job.atlases, grain, [&](int64_t begin, int64_t end) {
    Differences differences{std::vector<int32_t>(size), std::vector<int32_t>(size)};
    Differences weights = differences;
    std::vector<uint64_t> votes(size * (1 + static_cast<size_t>(job.parts)), 0);
    for (int64_t a = begin; a < end; ++a) {
      for (int s = 0; s < kShifts; ++s) {
        int32_t square = 0;
        const int64_t shift = job.shift(s, square);
        differences.compare(job, static_cast<int>(a), shift);
        std::ranges::fill(weights.a, 0);
        for (const int64_t i : near) {
          weights.a[static_cast<size_t>(i)] =
              job.weight(i, differences.a[static_cast<size_t>(i)], square);
        }
        weights.box_sum(job);
        for (const int64_t i : asked) {
          const auto weight = static_cast<uint64_t>(weights.a[static_cast<size_t>(i)]);
          votes[static_cast<size_t>(i)] += weight;
          for (int k = 0; k < job.parts; ++k) {
            votes[static_cast<size_t>((k + 1) * n + i)] +=
                weight * job.share[(a * job.parts + k) * n + i + shift];
          }
        }
      }
    }
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < votes.size(); ++i) job.votes[i] += votes[i];
  });
  for (const int64_t i : asked) job.count_votes(i);
}

}  // namespace larch::experts
