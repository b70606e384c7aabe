// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/brick_steps.h"

#include <algorithm>
#include <limits>

#include "larch/core/parallel.h"

namespace larch::levelset::cpu {
namespace {

/// Rows of a brick at y = 0, and at z = 0.
constexpr RowMask kFirstY = 0x0101010101010101, kFirstZ = 0xff;
constexpr RowMask kLastY = kFirstY << 7, kLastZ = kFirstZ << 56;

/// Returns the rows y - 1 and y + 1 of rows of a brick and of the ones before and after it along y.
RowMask beside_y(RowMask brick, RowMask before, RowMask after) {
  return (brick << 1 & ~kFirstY) | (before >> 7 & kFirstY) | (brick >> 1 & ~kLastY) |
         (after << 7 & kLastY);
}
RowMask beside_z(RowMask brick, RowMask before, RowMask after) {
  return brick << 8 | before >> 56 | brick >> 8 | after << 56;
}

/// A mask of the bricks around one, as far as they lie in the image.
struct Neighbours {
  const BrickLayout& layout;
  const std::vector<RowChanges>& changes;
  int64_t step, brick;
  Vec3i at;

  RowMask get(RowMask RowChanges::*mask, int32_t dx, int32_t dy, int32_t dz) const {
    const Vec3i there = at + Vec3i{dx, dy, dz}, count = layout.count;
    if (there.x < 0 || there.y < 0 || there.z < 0 || there.x >= count.x || there.y >= count.y ||
        there.z >= count.z) {
      return 0;
    }
    const RowChanges& c = changes[static_cast<size_t>(layout.brick_of(there))];
    return c.step == step ? c.*mask : 0;
  }
};

}  // namespace

RowMask rows_to_compute(const BrickLayout& layout, const std::vector<RowChanges>& changes,
                        int64_t step, int64_t brick) {
  const Neighbours n{layout, changes, step, brick, layout.brick_at(brick)};
  // Along x the brick itself: neighbours across faces and edges are all those beside the row.
  const auto row = [&](int32_t dz) {
    const RowMask here = n.get(&RowChanges::rows, 0, 0, dz);
    return here |
           beside_y(here, n.get(&RowChanges::rows, 0, -1, dz), n.get(&RowChanges::rows, 0, 1, dz));
  };
  const RowMask along_y = row(0);
  RowMask wanted = along_y | beside_z(along_y, row(-1), row(1));
  // The brick before along x, by its last voxels: no neighbours across corners.
  const auto side = [&](RowMask RowChanges::*mask, int32_t dx) {
    const RowMask here = n.get(mask, dx, 0, 0);
    return here | beside_y(here, n.get(mask, dx, -1, 0), n.get(mask, dx, 1, 0)) |
           beside_z(here, n.get(mask, dx, 0, -1), n.get(mask, dx, 0, 1));
  };
  return wanted | side(&RowChanges::last, -1) | side(&RowChanges::first, 1);
}

uint32_t bricks_to_wake(const RowChanges& changes) {
  if (changes.rows == 0) return 0;
  const bool x[3] = {changes.first != 0, true, changes.last != 0};
  const bool y[3] = {(changes.rows & kFirstY) != 0, true, (changes.rows & kLastY) != 0};
  const bool z[3] = {(changes.rows & kFirstZ) != 0, true, (changes.rows & kLastZ) != 0};
  uint32_t bits = 0;
  for (int32_t i = 0; i < 27; ++i) {
    const int32_t dx = i % 3, dy = i / 3 % 3, dz = i / 9;
    const bool is_corner = dx != 1 && dy != 1 && dz != 1;
    if (!is_corner && x[dx] && y[dy] && z[dz]) bits |= 1U << i;
  }
  return bits;
}

namespace {

/// Tells whether phi differs somewhere on the stencils of a brick: on the brick and its halo
/// without the eight corners.
bool is_uneven(const float* phi, const BrickHalo& halo) {
  const float first = phi[0];
  for (int32_t z = 0; z < kHalo; ++z) {
    bool differs = false;
    for (int32_t y = 0; y < kHalo; ++y) {
      const float* row = phi + halo.z[z] + halo.y[y];
      if (halo.width == kBrick) {
        for (int32_t x = 0; x < kBrick; ++x) differs |= row[x] != first;
      } else {
        for (int32_t x = 0; x < halo.width; ++x) differs |= row[x] != first;
      }
      const bool is_corner = (y == 0 || y == kHalo - 1) && (z == 0 || z == kHalo - 1);
      if (!is_corner) differs |= (row[halo.left] != first) | (row[halo.right] != first);
    }
    if (differs) return true;
  }
  return false;
}

/// Tells whether something holds for a voxel of a brick that lies in the image.
template <class Test>
bool any_voxel(const BrickHalo& halo, const Test& test) {
  for (int32_t z = 0; z < kBrick; ++z) {
    bool holds = false;
    for (int32_t y = 0; y < kBrick; ++y) {
      const int32_t row = z * kBrick + y;
      if ((halo.inside >> row & 1) == 0) continue;
      for (int32_t x = 0; x < halo.width; ++x) holds |= test(row * kBrick + x);
    }
    if (holds) return true;
  }
  return false;
}

}  // namespace

JobPhi::JobPhi(EvolveJob& job) {
  const int64_t iterations = job.progress.iterations;
  for (LevelsetField& field : job.fields) {
    before.push_back(field.phi[iterations % 2].data());
    after.push_back(field.phi[(iterations + 1) % 2].data());
  }
  for (size_t k = 0; k < before.size(); ++k) {
    others.push_back(before);
    others.back().erase(others.back().begin() + static_cast<std::ptrdiff_t>(k));
  }
}

BrickHalo brick_halo(const BrickLayout& layout, int64_t brick) {
  const Vec3i at = layout.brick_at(brick);
  const int64_t row_of_bricks = int64_t{layout.count.x} * kBrickVoxels;
  const int64_t slice_of_bricks = row_of_bricks * layout.count.y;
  BrickHalo halo;
  for (int32_t i = 0; i < kHalo; ++i) {
    const int32_t y = std::clamp(at.y * kBrick + i - 1, 0, layout.size.y - 1);
    const int32_t z = std::clamp(at.z * kBrick + i - 1, 0, layout.size.z - 1);
    halo.y[i] = (y / kBrick - at.y) * row_of_bricks + y % kBrick * kBrick;
    halo.z[i] = (z / kBrick - at.z) * slice_of_bricks + z % kBrick * kBrick * kBrick;
  }
  halo.width = std::min(kBrick, layout.size.x - at.x * kBrick);
  halo.left = at.x > 0 ? kBrick - 1 - kBrickVoxels : 0;
  halo.right = at.x + 1 < layout.count.x ? kBrickVoxels : halo.width - 1;
  const int32_t height = std::min(kBrick, layout.size.y - at.y * kBrick);
  const int32_t depth = std::min(kBrick, layout.size.z - at.z * kBrick);
  halo.inside = 0;
  for (int32_t z = 0; z < depth; ++z) {
    halo.inside |= ((RowMask{1} << height) - 1) << (z * kBrick);
  }
  return halo;
}

void step_rows(const EvolveJob& job, const JobPhi& phi, size_t k, int64_t brick, RowMask rows,
               BrickChange& change) {
  const LevelsetField& field = job.fields[k];
  const int64_t begin = brick * kBrickVoxels;
  BrickStep step;
  step.step = &field.step;
  step.halo = brick_halo(field.layout, brick);
  step.rows = rows & step.halo.inside;
  step.before = phi.before[k] + begin;
  step.after = phi.after[k] + begin;
  step.speed = field.speed.data() + begin;
  for (int axis = 0; axis < 3; ++axis) {
    if (!field.advection[axis].empty()) step.advection[axis] = field.advection[axis].data() + begin;
  }
  step.others = phi.others[k].data();
  step.other_count = static_cast<int32_t>(phi.others[k].size());
  step.begin = begin;
  step_lanes().step_brick(step, change);
}

bool can_change(const BrickLayout& layout, const JobPhi& phi, int64_t brick) {
  const BrickHalo halo = brick_halo(layout, brick);
  const int64_t begin = brick * kBrickVoxels;
  for (size_t k = 0; k < phi.before.size(); ++k) {
    const float *before = phi.before[k] + begin, *other_buffer = phi.after[k] + begin;
    if (is_uneven(before, halo)) return true;
    if (any_voxel(halo, [&](int32_t i) { return before[i] != other_buffer[i]; })) return true;
    const auto overlaps = [&](const float* other) {
      return any_voxel(halo, [&](int32_t i) { return overlap(before[i], other[begin + i]); });
    };
    if (std::any_of(phi.others[k].begin(), phi.others[k].end(), overlaps)) return true;
  }
  return false;
}

EvenBricks::EvenBricks(const BrickLayout& layout, const JobPhi& phi, int threads)
    : layout_(layout) {
  for (size_t k = 0; k < phi.before.size(); ++k) {
    std::vector<float>& values = values_.emplace_back(static_cast<size_t>(layout.bricks()));
    parallel_for_each(threads, layout.bricks(), 64, [&](int64_t brick) {
      const float* before = phi.before[k] + brick * kBrickVoxels;
      const float* other_buffer = phi.after[k] + brick * kBrickVoxels;
      const float value = before[0];
      uint32_t differs = 0;
      for (int32_t i = 0; i < kBrickVoxels; ++i) {
        differs |= static_cast<uint32_t>(before[i] != value) |
                   static_cast<uint32_t>(other_buffer[i] != value);
      }
      values[static_cast<size_t>(brick)] =
          differs == 0 ? value : std::numeric_limits<float>::quiet_NaN();
    });
  }
}

bool EvenBricks::have_value(const std::vector<float>& values, int64_t brick) const {
  const float value = values[static_cast<size_t>(brick)];
  const Vec3i at = layout_.brick_at(brick), end = layout_.count - Vec3i{1, 1, 1};
  for (int32_t z = std::max(at.z - 1, 0); z <= std::min(at.z + 1, end.z); ++z) {
    for (int32_t y = std::max(at.y - 1, 0); y <= std::min(at.y + 1, end.y); ++y) {
      for (int32_t x = std::max(at.x - 1, 0); x <= std::min(at.x + 1, end.x); ++x) {
        if (!(values[static_cast<size_t>(layout_.brick_of({x, y, z}))] == value)) return false;
      }
    }
  }
  return true;
}

bool EvenBricks::are_around(int64_t brick) const {
  for (size_t k = 0; k < values_.size(); ++k) {
    if (!have_value(values_[k], brick)) return false;
    for (size_t other = 0; other < k; ++other) {
      const auto at = static_cast<size_t>(brick);
      if (overlap(values_[k][at], values_[other][at])) return false;
    }
  }
  return true;
}

void count_inside(EvolveJob& job, int threads) {
  const JobPhi phi(job);
  for (size_t k = 0; k < job.fields.size(); ++k) {
    const BrickLayout& layout = job.fields[k].layout;
    std::atomic<int64_t> inside{0};
    parallel_for(threads, layout.bricks(), 256, [&](int64_t begin, int64_t end) {
      int64_t sum = 0;
      for (int64_t brick = begin; brick < end; ++brick) {
        const float* voxels = phi.before[k] + brick * kBrickVoxels;
        any_voxel(brick_halo(layout, brick), [&](int32_t i) {
          sum += voxels[i] < 0 ? 1 : 0;
          return false;
        });
      }
      inside += sum;
    });
    job.inside[k] = inside;
  }
}

void stop_before_steps(EvolveJob& job) {
  levelset::stop_before_steps(
      job, std::all_of(job.active.begin(), job.active.end(),
                       [](const std::vector<uint32_t>& items) { return items.empty(); }));
}

void SharedCount::add(const BrickChange& change) {
  changed.fetch_add(change.changed, std::memory_order_relaxed);
  flipped.fetch_add(change.flipped, std::memory_order_relaxed);
  grown.fetch_add(change.grown, std::memory_order_relaxed);
}

StepCount SharedCount::take(uint32_t active) {
  return {active, changed.exchange(0), flipped.exchange(0), grown.exchange(0)};
}

void finish_step(EvolveJob& job, const std::vector<StepCount>& counts) {
  StepSum sum;
  for (size_t k = 0; k < counts.size(); ++k) {
    sum.add(counts[k], job.inside[k]);
    job.history[k].push_back(counts[k]);
  }
  job.progress = advanced(job.progress, sum, job.stops);
}

}  // namespace larch::levelset::cpu
