// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <deque>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/levelset/evolve/brick_steps.h"
#include "larch/levelset/evolve/evolve.h"
#include "larch/levelset/evolve/row_changes.h"

namespace larch::levelset::cpu {
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

/// What a field needs beside its active set.
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
  parallel_for(threads, g.layout.bricks(), 64, [&](int64_t first, int64_t last) {
    for (int64_t brick = first; brick < last; ++brick) {
      if (!even.are_around(brick) && can_change(g.layout, phi, brick)) found.add(brick);
    }
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
