// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/levelset/evolve/evolve.h"

#include <algorithm>
#include <array>
#include <atomic>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/dispatch.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/evolve/brick_steps.h"
#include "larch/levelset/step/step_math.h"

// The lists of active voxels of Roberts et al. 2010, with the rule that makes them exact: what
// changed wakes all voxels that read it. (Listing 1 of the paper's supplement wakes a neighbour
// only if that changed itself, so that the set could never grow.)

namespace larch::levelset::cpu {
namespace {

bool contains(const BrickLayout& layout, const Vec3i& at) {
  return at.x >= 0 && at.y >= 0 && at.z >= 0 && at.x < layout.size.x && at.y < layout.size.y &&
         at.z < layout.size.z;
}

/// Returns the voxel at an offset of the layout.
Vec3i voxel_at(const BrickLayout& layout, int64_t offset) {
  const Vec3i brick = layout.brick_at(offset / kBrickVoxels);
  const auto i = static_cast<int32_t>(offset % kBrickVoxels);
  return {brick.x * kBrick + i % kBrick, brick.y * kBrick + i / kBrick % kBrick,
          brick.z * kBrick + i / (kBrick * kBrick)};
}

/// phi around a voxel; beyond the image that at its border.
Stencil<float> read_stencil(const BrickLayout& layout, const float* phi, const Vec3i& at) {
  // The offset of a voxel is a sum over the axes.
  const int64_t per_y = static_cast<int64_t>(layout.count.x) * kBrickVoxels;
  const int64_t per_z = per_y * layout.count.y;
  const auto along = [](int32_t at, int32_t size, int64_t per_brick, int32_t per_voxel) {
    const int32_t inside = at < 0 ? 0 : at >= size ? size - 1 : at;
    return inside / kBrick * per_brick + inside % kBrick * per_voxel;
  };
  int64_t x[3], y[3], z[3];
  for (int32_t i = 0; i < 3; ++i) {
    x[i] = along(at.x + i - 1, layout.size.x, kBrickVoxels, 1);
    y[i] = along(at.y + i - 1, layout.size.y, per_y, kBrick);
    z[i] = along(at.z + i - 1, layout.size.z, per_z, kBrick * kBrick);
  }
  const auto read = [&](int32_t dx, int32_t dy, int32_t dz) {
    return phi[x[dx + 1] + y[dy + 1] + z[dz + 1]];
  };
  return {read(0, 0, 0),   read(-1, 0, 0),  read(1, 0, 0),   read(0, -1, 0), read(0, 1, 0),
          read(0, 0, -1),  read(0, 0, 1),   read(-1, -1, 0), read(1, -1, 0), read(-1, 1, 0),
          read(1, 1, 0),   read(-1, 0, -1), read(1, 0, -1),  read(-1, 0, 1), read(1, 0, 1),
          read(0, -1, -1), read(0, 1, -1),  read(0, -1, 1),  read(0, 1, 1)};
}

/// Calls visit(i, offset) for the neighbours of a voxel across faces, i from 0 to 5, that lie in
/// the image.
template <class Visit>
void for_neighbours(const BrickLayout& layout, uint32_t offset, const Visit& visit) {
  const Vec3i at = voxel_at(layout, offset);
  for (int32_t n = 0; n < 6; ++n) {
    Vec3i there = at;
    there[n / 2] += n % 2 == 0 ? -1 : 1;
    if (contains(layout, there)) visit(n, layout.offset(there));
  }
}

/// Makes lists of active voxels without duplicates.
class VoxelLists {
 public:
  VoxelLists(const BrickLayout& layout, int threads)
      : layout_(layout), threads_(threads), tags_(static_cast<size_t>(layout.stored_voxels())) {}

  /// The voxels that field `k` computes next: all within two steps across faces of one
  /// that changed, among which are those whose stencil holds it; and those that changed in another
  /// field. `changed`: voxels or kNoVoxel, by field. Any order.
  void generate(const std::vector<std::vector<uint32_t>>& changed, size_t k,
                std::vector<uint32_t>& list) {
    dilate(changed[k], round_);
    clear_tags(round_);
    dilate(round_, list);
    for (size_t other = 0; other < changed.size(); ++other) {
      if (other == k) continue;
      for (const uint32_t voxel : changed[other]) {
        if (voxel == kNoVoxel || tags_[voxel] != 0) continue;
        tags_[voxel] = 1;
        list.push_back(voxel);
      }
    }
    clear_tags(list);
  }

 private:
  /// One round of the seven buffers: `from` and its neighbours across faces. Their tags stay.
  void dilate(const std::vector<uint32_t>& from, std::vector<uint32_t>& list) {
    const auto count = static_cast<int64_t>(from.size());
    const int64_t grain = fair_grain(threads_, count, 4096);
    for (std::vector<uint32_t>& buffer : buffers_) buffer.assign(from.size(), kNoVoxel);
    parallel_for_each(threads_, count, grain, [&](int64_t i) {
      const auto h = static_cast<size_t>(i);
      if (from[h] == kNoVoxel) return;
      buffers_[0][h] = from[h];
      for_neighbours(layout_, from[h], [&](int32_t n, int64_t there) {
        buffers_[static_cast<size_t>(n) + 1][h] = static_cast<uint32_t>(there);
      });
    });
    // No voxel stands twice in one buffer, so that no two threads meet at a tag.
    for (std::vector<uint32_t>& buffer : buffers_) {
      parallel_for_each(threads_, count, grain, [&](int64_t i) {
        uint32_t& voxel = buffer[static_cast<size_t>(i)];
        if (voxel == kNoVoxel) return;
        uint8_t& tag = tags_[voxel];
        if (tag != 0) voxel = kNoVoxel;
        tag = 1;
      });
    }
    list.clear();
    for (const std::vector<uint32_t>& buffer : buffers_) {
      for (const uint32_t voxel : buffer) {
        if (voxel != kNoVoxel) list.push_back(voxel);
      }
    }
  }
  void clear_tags(const std::vector<uint32_t>& list) {
    for (const uint32_t voxel : list) tags_[voxel] = 0;
  }

  BrickLayout layout_;
  int threads_;
  std::vector<uint8_t> tags_;                       ///< by voxel, all 0 between two lists
  std::array<std::vector<uint32_t>, 7> buffers_{};  ///< by offset: the voxel itself comes first
  std::vector<uint32_t> round_{};
};

/// A job while it moves.
struct JobVoxels {
  EvolveJob& job;
  const BrickLayout layout;
  const int threads;
  std::vector<std::vector<uint32_t>> changed{};  ///< of EvolveJob::active, those that changed
  std::vector<VoxelSpeeds> speeds{};             ///< by field
  std::deque<SharedCount> counts{};
};

VoxelSpeeds speeds_of(const LevelsetField& field) {
  VoxelSpeeds speeds;
  speeds.speed = field.speed.data();
  for (int axis = 0; axis < 3; ++axis) {
    if (!field.advection[axis].empty()) speeds.advection[axis] = field.advection[axis].data();
  }
  return speeds;
}

/// The smallest phi of the other fields of a job; null where there is none.
const float* least_other(const std::vector<const float*>& others, int64_t offset, float& least) {
  if (others.empty()) return nullptr;
  least = others[0][offset];
  for (const float* other : others) least = smaller(least, other[offset]);
  return &least;
}

/// Tells whether a voxel belongs to the active sets when these are found anew (EvolveJob::active).
bool is_active(const BrickLayout& layout, const JobPhi& phi, const Vec3i& at) {
  const int64_t offset = layout.offset(at);
  for (size_t k = 0; k < phi.before.size(); ++k) {
    const Stencil<float> p = read_stencil(layout, phi.before[k], at);
    float other = 0;
    const float* least = least_other(phi.others[k], offset, other);
    if (!is_constant(p) || phi.after[k][offset] != p.centre ||
        (least != nullptr && overlap(p.centre, *least))) {
      return true;
    }
  }
  return false;
}

/// Finds the active sets anew.
void find_active(JobVoxels& g) {
  count_inside(g.job, g.threads);
  const JobPhi phi(g.job);
  std::vector<uint32_t> found;
  std::mutex lock;
  parallel_for(g.threads, g.layout.bricks(), 64, [&](int64_t first, int64_t last) {
    std::vector<uint32_t> here;
    for (int64_t offset = first * kBrickVoxels; offset < last * kBrickVoxels; ++offset) {
      const Vec3i at = voxel_at(g.layout, offset);
      if (contains(g.layout, at) && is_active(g.layout, phi, at)) {
        here.push_back(static_cast<uint32_t>(offset));
      }
    }
    const std::lock_guard guard(lock);
    found.insert(found.end(), here.begin(), here.end());
  });
  g.job.active.assign(g.job.fields.size(), found);
}

/// Computes the active voxels of field `k` and lists those that change.
StepCount step_field(JobVoxels& g, const JobPhi& phi, size_t k) {
  const std::vector<uint32_t>& list = g.job.active[k];
  const Step step = g.job.fields[k].step;
  const auto count = static_cast<int64_t>(list.size());
  std::vector<uint32_t>& changed = g.changed[k];
  changed.assign(list.size(), kNoVoxel);
  parallel_for(g.threads, count, fair_grain(g.threads, count, 4096),
               [&](int64_t first, int64_t last) {
                 BrickChange sum;
                 for (int64_t i = first; i < last; ++i) {
                   const uint32_t offset = list[static_cast<size_t>(i)];
                   const Stencil<float> p =
                       read_stencil(g.layout, phi.before[k], voxel_at(g.layout, offset));
                   float other = 0;
                   const float* least = least_other(phi.others[k], offset, other);
                   const float after = voxel_after(p, g.speeds[k], offset, least, step);
                   phi.after[k][offset] = after;
                   if (after == p.centre) continue;
                   changed[static_cast<size_t>(i)] = offset;
                   ++sum.changed;
                   if ((after < 0) != (p.centre < 0)) {
                     ++sum.flipped;
                     sum.grown += after < 0 ? 1 : -1;
                   }
                 }
                 g.counts[k].add(sum);
               });
  return g.counts[k].take(static_cast<uint32_t>(count));
}

}  // namespace

void evolve_buffers(EvolveJob& job, int64_t steps, const Context& context) {
  const BrickLayout layout = job.fields[0].layout;
  check_voxels_fit(layout);
  const size_t fields = job.fields.size();
  JobVoxels g{job, layout, context.threads};
  g.changed.resize(fields);
  g.counts.resize(fields);
  for (const LevelsetField& field : job.fields) g.speeds.push_back(speeds_of(field));
  if (!job.is_active_known) find_active(g);
  stop_before_steps(job);
  VoxelLists next(layout, context.threads);
  std::vector<StepCount> counts(fields);
  for (int64_t t = 0; t < steps && goes_on(job, context); ++t) {
    const JobPhi phi(job);
    for (size_t k = 0; k < fields; ++k) counts[k] = step_field(g, phi, k);
    for (size_t k = 0; k < fields; ++k) next.generate(g.changed, k, job.active[k]);
    finish_step(job, counts);
  }
  for (std::vector<uint32_t>& list : job.active) std::sort(list.begin(), list.end());
}

namespace {

/// A set of bricks that several threads add to.
class BrickSet {
 public:
  explicit BrickSet(int64_t bricks) : words_(static_cast<size_t>((bricks + 63) / 64)) {}

  void add(int64_t brick) {
    const std::atomic_ref<uint64_t> word(words_[static_cast<size_t>(brick / 64)]);
    const uint64_t bit = uint64_t{1} << (brick % 64);
    if ((word.load(std::memory_order_relaxed) & bit) == 0) {
      word.fetch_or(bit, std::memory_order_relaxed);
    }
  }
  /// Moves the bricks in ascending order to `list`.
  void take(std::vector<uint32_t>& list) {
    list.clear();
    for (size_t i = 0; i < words_.size(); ++i) {
      for (uint64_t word = std::exchange(words_[i], 0); word != 0; word &= word - 1) {
        list.push_back(static_cast<uint32_t>(i * 64 + static_cast<size_t>(__builtin_ctzll(word))));
      }
    }
  }

 private:
  std::vector<uint64_t> words_;
};

/// Holds what a field needs beside its active set.
struct FieldBricks {
  explicit FieldBricks(int64_t bricks)
      : next(bricks),
        changes{std::vector<RowChanges>(static_cast<size_t>(bricks)),
                std::vector<RowChanges>(static_cast<size_t>(bricks))} {}

  BrickSet next;
  std::vector<RowChanges> changes[2];  ///< by the step's parity and by brick
  SharedCount count{};
};

/// A job while it moves.
struct JobBricks {
  explicit JobBricks(EvolveJob& j) : job(j), layout(j.fields[0].layout) {
    for (size_t k = 0; k < job.fields.size(); ++k) fields.emplace_back(layout.bricks());
  }

  EvolveJob& job;
  const BrickLayout layout;
  std::deque<FieldBricks> fields{};
};

/// Finds the active sets anew.
void find_active(JobBricks& g, int threads) {
  count_inside(g.job, threads);
  const JobPhi phi(g.job);
  const EvenBricks even(g.layout, phi, threads);
  BrickSet& found = g.fields[0].next;
  parallel_for_each(threads, g.layout.bricks(), 64, [&](int64_t brick) {
    if (!even.are_around(brick) && can_change(g.layout, phi, brick)) found.add(brick);
  });
  std::vector<uint32_t> list;
  found.take(list);
  g.job.active.assign(g.fields.size(), list);
}

/// What changed in brick `brick` of field `k` wakes bricks of the field, and the brick itself in
/// the others.
void wake(JobBricks& g, size_t k, int64_t brick, const RowChanges& changes) {
  const Vec3i at = g.layout.brick_at(brick), count = g.layout.count;
  for (uint32_t bits = bricks_to_wake(changes); bits != 0; bits &= bits - 1) {
    const int32_t i = __builtin_ctz(bits);
    const Vec3i there = at + Vec3i{i % 3 - 1, i / 3 % 3 - 1, i / 9 - 1};
    if (there.x < 0 || there.y < 0 || there.z < 0 || there.x >= count.x || there.y >= count.y ||
        there.z >= count.z) {
      continue;
    }
    g.fields[k].next.add(g.layout.brick_of(there));
  }
  for (FieldBricks& other : g.fields) other.next.add(brick);
}

/// One brick of field `k` in a step. `is_first`: what changed before it is not known.
void step_brick(JobBricks& g, const JobPhi& phi, size_t k, int64_t brick, bool is_first,
                BrickChange& sum) {
  const int64_t step = g.job.progress.iterations;
  RowMask rows = kAllRows;
  if (!is_first) {
    const auto before = static_cast<size_t>((step - 1) % 2);
    rows = rows_to_compute(g.layout, g.fields[k].changes[before], step - 1, brick);
    for (size_t other = 0; other < g.fields.size(); ++other) {
      const RowChanges& c = g.fields[other].changes[before][static_cast<size_t>(brick)];
      if (other != k && c.step == step - 1) rows |= c.rows;
    }
  }
  sum.rows = sum.first = sum.last = 0;
  step_rows(g.job, phi, k, brick, rows, sum);
  if (sum.rows == 0) return;
  RowChanges& changes = g.fields[k].changes[step % 2][static_cast<size_t>(brick)];
  changes = {sum.rows, sum.first, sum.last, step};
  wake(g, k, brick, changes);
}

/// Threads that a step of so many bricks is worth: a brick takes about 2 us, and to wake a thread
/// about 5 us.
int threads_for(int64_t bricks, int threads) {
  constexpr int64_t kBricksEach = 32;
  return static_cast<int>(std::clamp<int64_t>(bricks / kBricksEach, 1, threads));
}

void step_job(JobBricks& g, bool is_first, int threads, std::vector<StepCount>& counts) {
  const JobPhi phi(g.job);
  for (size_t k = 0; k < g.fields.size(); ++k) {
    const std::vector<uint32_t>& list = g.job.active[k];
    const auto compute = [&](int64_t first, int64_t last) {
      BrickChange sum;
      for (int64_t i = first; i < last; ++i) {
        step_brick(g, phi, k, list[static_cast<size_t>(i)], is_first, sum);
      }
      g.fields[k].count.add(sum);
    };
    const auto bricks = static_cast<int64_t>(list.size());
    const int at_work = threads_for(bricks, threads);
    parallel_for(at_work, bricks, fair_grain(at_work, bricks, 16), compute);
    counts[k] = g.fields[k].count.take(static_cast<uint32_t>(bricks));
  }
  for (size_t k = 0; k < g.fields.size(); ++k) g.fields[k].next.take(g.job.active[k]);
}

}  // namespace

void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context) {
  JobBricks g(job);
  if (!job.is_active_known) find_active(g, context.threads);
  stop_before_steps(job);
  std::vector<StepCount> counts(g.fields.size());
  for (int64_t t = 0; t < steps && goes_on(job, context); ++t) {
    step_job(g, t == 0, context.threads, counts);
    finish_step(job, counts);
  }
}

}  // namespace larch::levelset::cpu

namespace larch::levelset {
namespace {

using Evolve = void(EvolveJob& job, int64_t steps, const Context& context);
constexpr Dispatch<Evolve> kBuffers{"levelset::evolve_buffers", cpu::evolve_buffers,
                                    LARCH_CUDA_FN(cuda::evolve_buffers)};
constexpr Dispatch<Evolve> kBricks{"levelset::evolve_bricks", cpu::evolve_bricks,
                                   LARCH_CUDA_FN(cuda::evolve_bricks)};

}  // namespace

void check_voxels_fit(const BrickLayout& layout) {
  if (layout.stored_voxels() < int64_t{kNoVoxel}) return;
  throw UsageError("levelset.tracker buffers: an image of " +
                   std::to_string(layout.stored_voxels()) +
                   " voxels, and lists can have 4294967294; take levelset.tracker brick");
}

void stop_before_steps(EvolveJob& job, bool is_empty) {
  if (is_empty) {
    job.progress.stop = Stop::kAtRest;
  } else if (job.progress.iterations >= job.stops.max_iterations) {
    job.progress.stop = Stop::kIterations;
  }
}

void evolve(EvolveJob& job, int64_t steps, const Context& context) {
  if (job.progress.stop != Stop::kNone) return;
  const size_t fields = job.fields.size();
  job.inside.resize(fields);
  job.active.resize(fields);
  job.history.resize(fields);
  if (!job.is_active_known) {
    for (std::vector<uint32_t>& items : job.active) items.clear();
  }
  const auto& tracker = job.tracker == Tracker::kBrick ? kBricks : kBuffers;
  tracker(context.device, job, steps, context);
  job.is_active_known = job.progress.stop == Stop::kNone;
  if (!job.is_active_known) job.active.assign(fields, {});
}

}  // namespace larch::levelset
