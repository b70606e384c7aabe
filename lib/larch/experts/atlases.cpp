// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/experts/atlases.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/filters/components.h"

namespace larch::experts {
namespace {

constexpr int kAtlasMargin = 8;  ///< voxels around the structures of an atlas
/// Voxels around the band: a patch, the shift of one, and the votes of its neighbours.
constexpr int kMargin = 4;

constexpr Dispatch<void(const FuseJob&, const Context&)> kFuse{"experts::fuse", cpu::fuse,
                                                               LARCH_CUDA_FN(cuda::fuse)};

int16_t intensity(const Volume<int16_t>& image, int steps, Vec3i at) {
  for (int axis = 0; axis < 3; ++axis) at[axis] = image::clamp_index(at[axis], image.size()[axis]);
  return static_cast<int16_t>(Channels::limited(image(at) * kFullIntensity / steps));
}

/// Returns the way to an atlas from indices that have a placement, through the places among nodes.
AtlasView view_of(const Atlas& atlas, const Placement& from) {
  AtlasView view;
  view.size = atlas.size;
  const Mat3 back = inverse(atlas.placement.matrix), matrix = back * from.matrix;
  const Vec3d offset = back * (from.offset - atlas.placement.offset);
  const auto integer = [](double value, int bits, double most) {
    return std::llround(std::clamp(value * static_cast<double>(int64_t{1} << bits), -most, most));
  };
  for (int row = 0; row < 3; ++row) {
    for (int k = 0; k < 3; ++k) {
      view.matrix[row][k] =
          static_cast<int32_t>(integer(matrix.m[row][k], kMatrixBits, kLargestScale));
    }
    view.offset[row] = integer(offset[row], kMatrixBits + kPlaceBits, kLargestOffset);
  }
  return view;
}

/// Joins what experts say of a voxel with the votes of atlases by the mean of the logs of both.
void join(std::vector<Volume<float>>& said, const Vec3i& at, const uint64_t* votes, size_t stride) {
  double both[kMaximumParts] = {}, none = 1, none_voted = 1;
  const double all = static_cast<double>(votes[0]) * kFullShare;
  for (size_t k = 0; k < said.size(); ++k) {
    const double p = said[k](at), voted = static_cast<double>(votes[(k + 1) * stride]) / all;
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

/// Returns what a job leaves of the memory.
int64_t memory_beside(const FuseJob& job, const Resident& resident, int64_t memory_bytes,
                      const Context& context) {
  const int64_t votes = 8 * (1 + job.parts);
  const int64_t workers = std::min(context.threads, job.atlases);
  const int64_t of_voxel =
      11 + votes + job.atlases * (2 + job.parts) +
      (context.device.is_cuda() ? 2 * kShifts : 12 + votes + workers * (20 + votes));
  const int64_t needed = resident.bytes() + 4 * static_cast<int64_t>(resident.atlas_parts.size()) +
                         job.voxels() * of_voxel + job.atlases * job.node_count() * 24;
  if (needed <= memory_bytes) return memory_bytes - needed;
  throw MemoryError("the atlases of the model need " + std::to_string(needed) +
                    " bytes for the structure in this image, and may take " +
                    std::to_string(memory_bytes));
}

/// Returns the atlases that vote, with the ways from a placement to them.
std::vector<AtlasView> voters_of(const Experts& experts, const Resident& resident,
                                 const std::vector<bool>& left_out, const Placement& from) {
  std::vector<AtlasView> voters;
  int64_t first = 0;
  for (size_t a = 0; a < experts.atlases.size(); ++a) {
    const Atlas& atlas = experts.atlases[a];
    if (!atlas.image.empty() && (left_out.empty() || !left_out[a])) {
      voters.push_back(view_of(atlas, from));
      voters.back().image = resident.atlas_images.data() + first;
      voters.back().part = resident.atlas_parts.data() + first;
    }
    first += std::ssize(atlas.image);
  }
  return voters;
}

std::vector<uint16_t> weight_table() {
  std::vector<uint16_t> table;
  for (int k = 0; k + 1 < kWeights; ++k) {
    table.push_back(static_cast<uint16_t>(std::lround(kMostWeight * exp_of(-k / 128.0))));
  }
  table.push_back(0);
  return table;
}

/// Holds a job with the memory that its pointers are of.
struct Fusion {
  FuseJob job{};
  std::vector<Buffer<std::byte>> memory{};

  /// Takes memory for `count` values, which are 0.
  template <class T>
  T* take(int64_t count, const Device& device) {
    memory.emplace_back(device, static_cast<size_t>(count) * sizeof(T)).set_zero();
    return reinterpret_cast<T*>(memory.back().data());
  }
  template <class T>
  T* take(const std::vector<T>& values, const Device& device) {
    memory.emplace_back(device, std::as_bytes(std::span(values)));
    return reinterpret_cast<T*>(memory.back().data());
  }
  /// Finds the ways from the piece to the atlases that vote.
  void load(const std::vector<AtlasView>& voters, const Resident& resident,
            const std::vector<int16_t>& piece, const Device& device) {
    const auto stored = static_cast<int64_t>(resident.atlas_images.size());
    auto* const smooth = take<int16_t>(stored + job.voxels(), device);
    auto* const spare = take<int16_t>(stored + job.voxels(), device);
    std::vector<AtlasView> all = voters;
    for (AtlasView& view : all) {
      view.smooth = smooth + (view.image - resident.atlas_images.data());
      view.spare = spare + (view.image - resident.atlas_images.data());
    }
    job.image = take(piece, device);
    job.smooth = smooth + stored;
    all.push_back({job.image, smooth + stored, spare + stored, nullptr, job.size});
    job.views = take(all, device);
  }
  void take_all(const std::vector<uint8_t>& wanted, const Device& device) {
    const int64_t voxels = job.voxels(), n = job.atlases;
    job.band = take(wanted, device);
    job.table = take(weight_table(), device);
    job.moved = take<int32_t>(n * 3 * job.node_count(), device);
    job.spare = take<int32_t>(n * 3 * job.node_count(), device);
    job.warped = take<int16_t>(n * voxels, device);
    job.share = take<uint8_t>(n * job.parts * voxels, device);
    job.least = take<int32_t>(voxels, device);
    job.votes = take<uint64_t>((1 + job.parts) * voxels, device);
  }
};

}  // namespace

Atlas make_atlas(const Experts& experts, const Volume<int16_t>& image, const Volume<int8_t>& part,
                 int steps, const Context& context) {
  Atlas atlas;
  const auto is_inside = [](int8_t p) { return p >= 0; };
  std::optional<Frame> frame =
      frame_of(mapped<float>(part, [&](int8_t p) { return is_inside(p) ? 1.0F : 0.0F; }), context);
  if (!frame) return atlas;
  align(*frame, rotation_matrix(experts.mean_axes));
  auto [lo, hi] = filters::box_of(part, is_inside);
  for (int axis = 0; axis < 3; ++axis) {
    lo[axis] = std::max(lo[axis] - kAtlasMargin, 0);
    hi[axis] = std::min(hi[axis] + kAtlasMargin, image.size()[axis] - 1);
    atlas.size[axis] = hi[axis] - lo[axis] + 1;
  }
  atlas.placement = placement_of(*frame, experts.turns != 0, image.grid(), lo);
  for_piece(lo, atlas.size, [&](size_t, const Vec3i& at) {
    atlas.image.push_back(intensity(image, steps, at));
    atlas.part.push_back(std::max(part(at), int8_t{-1}));
  });
  return atlas;
}

void ask_atlases(const Experts& experts, const Resident& resident, const Volume<int16_t>& image,
                 int steps, const std::vector<bool>& left_out, int64_t memory_bytes,
                 std::vector<Volume<float>>& said, const Context& context) {
  if (said.empty()) return;
  const Volume<float> found = together(said);
  std::optional<Frame> frame = frame_of(found, context);
  if (!frame) return;
  align(*frame, rotation_matrix(experts.mean_axes));
  const Volume<uint8_t> band = band_of(found);
  const auto [lo, hi] = filters::box_of(band, [](uint8_t b) { return b != 0; });
  // The piece is padded, so that no shift leaves it, and odd along each axis, so that its last
  // voxels are nodes.
  Fusion fusion;
  FuseJob& job = fusion.job;
  const Vec3i origin = lo - Vec3i{kMargin, kMargin, kMargin};
  for (int axis = 0; axis < 3; ++axis) job.size[axis] = (hi[axis] - lo[axis] + 2 * kMargin + 1) | 1;
  job.nodes = {job.size.x / 2 + 1, job.size.y / 2 + 1, job.size.z / 2 + 1};
  job.parts = experts.parts;
  const std::vector<AtlasView> voters = voters_of(
      experts, resident, left_out, placement_of(*frame, experts.turns != 0, image.grid(), origin));
  if (voters.empty()) return;
  job.atlases = static_cast<int32_t>(voters.size());
  job.memory_bytes = memory_beside(job, resident, memory_bytes, context);
  std::vector<int16_t> piece(static_cast<size_t>(job.voxels()));
  std::vector<uint8_t> asked(piece.size());
  for_piece(origin, job.size, [&](size_t i, const Vec3i& at) {
    piece[i] = intensity(image, steps, at);
    asked[i] = image.grid().contains(at) && band(at) != 0;
  });
  std::vector<uint8_t> wanted = filters::dilated(asked, job.size, 1);
  std::ranges::transform(wanted, asked, wanted.begin(), std::plus<>());
  fusion.load(voters, resident, piece, context.device);
  fusion.take_all(wanted, context.device);
  kFuse(context.device, job, context);
  std::vector<uint64_t> votes(static_cast<size_t>(1 + job.parts) * asked.size());
  fusion.memory.back().download(  // what is taken last holds the votes
      std::as_writable_bytes(std::span(votes)));
  for_piece(origin, job.size, [&](size_t i, const Vec3i& at) {
    if (asked[i] != 0) join(said, at, votes.data() + i, asked.size());
  });
}

namespace {

/// Blurs a volume along an axis, row by row.
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

/// Holds a value for each voxel, and room for their sums.
struct Sums {
  std::vector<int32_t> a, b;

  explicit Sums(const FuseJob& job)
      : a(static_cast<size_t>(job.voxels())), b(static_cast<size_t>(job.voxels())) {}
  /// Sums three neighbours along each axis; the ends are wrong, but nobody asks for them.
  void of_boxes(const FuseJob& job) {
    const int64_t n = std::ssize(a);
    for (int axis = 0; axis < 3; ++axis) {
      const int64_t s = job.step(axis == 0, axis == 1, axis == 2);
      const int32_t* from = a.data();
      int32_t* to = b.data();
      for (int64_t i = s; i < n - s; ++i) to[i] = from[i - s] + from[i] + from[i + s];
      std::swap(a, b);
    }
  }
};

/// Calls use(atlas, number of a shift, differences of patches) for all shifts of atlases from
/// `begin` to `end`.
template <class Use>
void for_shifts(const FuseJob& job, int64_t begin, int64_t end, const Context& context,
                const Use& use) {
  Sums differences(job);
  const int64_t n = job.voxels();
  for (int64_t a = begin; a < end; ++a) {
    context.throw_if_stopped(kStopped);
    for (int s = 0; s < kShifts; ++s) {
      const int64_t shift = job.shift(s);
      const int64_t first = std::max<int64_t>(0, -shift), last = std::min(n, n - shift);
      const int16_t* x = job.image;
      const int16_t* y = job.warped + a * n + shift;
      int32_t* to = differences.a.data();
      std::fill_n(to, first, 0);
      for (int64_t i = first; i < last; ++i) to[i] = (x[i] - y[i]) * (x[i] - y[i]);
      std::fill(to + last, to + n, 0);
      differences.of_boxes(job);
      use(a, s, differences.a.data());
    }
  }
}

void find_least(const FuseJob& job, const std::vector<int64_t>& near, const Context& context,
                int64_t grain) {
  const int64_t n = job.voxels();
  std::mutex mutex;
  std::fill_n(job.least, n, 0x7fffffff);
  parallel_for(context.threads, job.atlases, grain, [&](int64_t begin, int64_t end) {
    std::vector<int32_t> least(static_cast<size_t>(n), 0x7fffffff);
    int32_t* m = least.data();
    for_shifts(job, begin, end, context, [&](int64_t, int, const int32_t* d) {
      for (int64_t i = 0; i < n; ++i) m[i] = d[i] < m[i] ? d[i] : m[i];
    });
    const std::lock_guard lock(mutex);
    for (const int64_t i : near) job.least[i] = std::min(job.least[i], m[i]);
  });
}

void vote(const FuseJob& job, const std::vector<int64_t>& near, const Context& context,
          int64_t grain) {
  const int64_t n = job.voxels();
  std::mutex mutex;
  parallel_for(context.threads, job.atlases, grain, [&](int64_t begin, int64_t end) {
    Sums weights(job);
    std::vector<uint64_t> votes(static_cast<size_t>(n * (1 + job.parts)), 0);
    for_shifts(job, begin, end, context, [&](int64_t a, int s, const int32_t* d) {
      std::ranges::fill(weights.a, 0);
      int32_t* w = weights.a.data();
      for (const int64_t i : near) w[i] = job.weight(i, d[i], s);
      weights.of_boxes(job);
      w = weights.a.data();
      for (const int64_t i : near) {
        if (job.band[i] < 2) continue;
        const auto weight = static_cast<uint64_t>(w[i]);
        votes[static_cast<size_t>(i)] += weight;
        for (int k = 0; k < job.parts; ++k) {
          votes[static_cast<size_t>((k + 1) * n + i)] +=
              weight * job.share[(a * job.parts + k) * n + i + job.shift(s)];
        }
      }
    });
    const std::lock_guard lock(mutex);
    for (size_t i = 0; i < votes.size(); ++i) job.votes[i] += votes[i];
  });
}

}  // namespace

void cpu::fuse(const FuseJob& job, const Context& context) {
  parallel_for_each(context.threads, job.atlases + 1, 1, [&](int64_t a) {
    const AtlasView& view = job.views[a];
    blur_rows(view.image, view.smooth, view.size, 0);
    blur_rows(view.smooth, view.spare, view.size, 1);
    blur_rows(view.spare, view.smooth, view.size, 2);
  });
  parallel_for_each(context.threads, job.atlases, 1, [&](int64_t a) {
    context.throw_if_stopped(kStopped);
    register_atlas(job, static_cast<int>(a));
    for (int64_t i = 0; i < job.voxels(); ++i) job.warp(static_cast<int>(a), i);
  });
  std::vector<int64_t> near;
  near.reserve(static_cast<size_t>(job.voxels()));
  for (int64_t i = 0; i < job.voxels(); ++i) {
    if (job.band[i] > 0) near.push_back(i);
  }
  const int64_t grain = (job.atlases + context.threads - 1) / context.threads;
  find_least(job, near, context, grain);
  vote(job, near, context, grain);
}

}  // namespace larch::experts
