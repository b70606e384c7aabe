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

/// The active set of a field of a group.
struct FieldBricks {
  explicit FieldBricks(int64_t bricks)
      : next(bricks),
        changes{std::vector<RowChanges>(static_cast<size_t>(bricks)),
                std::vector<RowChanges>(static_cast<size_t>(bricks))} {}

  std::vector<uint32_t> list{};  ///< ascending
  BrickSet next;
  std::vector<RowChanges> changes[2];  ///< by the step's parity and by brick
  SharedCount count{};
};

/// A group while it moves.
struct GroupBricks {
  GroupBricks(EvolveJob& j, const FieldRange& g)
      : job(j), group(g), layout(j.fields[g.first]->layout) {
    for (size_t f = group.first; f < group.last; ++f) fields.emplace_back(layout.bricks());
  }

  EvolveJob& job;
  const FieldRange group;
  const BrickLayout layout;
  std::deque<FieldBricks> fields{};
};

/// The lists of a group's fields from where an earlier call ended, or found anew.
void begin(GroupBricks& g, int threads) {
  if (is_known(g.job, g.group)) {
    for (size_t k = 0; k < g.fields.size(); ++k) {
      g.fields[k].list = g.job.active[g.group.first + k].items;
    }
    return;
  }
  count_inside(g.job, g.group, threads);
  const GroupPhi phi(g.job, g.group);
  const EvenBricks even(g.layout, phi, threads);
  BrickSet& found = g.fields[0].next;
  parallel_for(threads, g.layout.bricks(), 64, [&](int64_t first, int64_t last) {
    for (int64_t brick = first; brick < last; ++brick) {
      if (!even.are_around(brick) && can_change(g.layout, phi, brick)) found.add(brick);
    }
  });
  found.take(g.fields[0].list);
  for (FieldBricks& field : g.fields) field.list = g.fields[0].list;
}

/// What changed in brick `brick` of field `k` wakes bricks of the field, and the brick itself in
/// the others of the group.
void wake(GroupBricks& g, size_t k, int64_t brick, const RowChanges& changes) {
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

/// One brick of field `k` in step `step`. `is_first`: what changed before it is not known.
void step_brick(GroupBricks& g, const GroupPhi& phi, size_t k, int64_t brick, int64_t step,
                bool is_first, BrickChange& sum) {
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
  step_rows(g.job, g.group, phi, k, brick, rows, sum);
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

void step_group(GroupBricks& g, bool is_first, int threads, std::vector<StepCount>& counts) {
  const GroupPhi phi(g.job, g.group);
  const int64_t step = g.job.progress[g.group.first].iterations;
  for (size_t k = 0; k < g.fields.size(); ++k) {
    FieldBricks& field = g.fields[k];
    const auto compute = [&](int64_t first, int64_t last) {
      BrickChange sum;
      for (int64_t i = first; i < last; ++i) {
        step_brick(g, phi, k, field.list[static_cast<size_t>(i)], step, is_first, sum);
      }
      field.count.add(sum);
    };
    const auto bricks = static_cast<int64_t>(field.list.size());
    const int at_work = threads_for(bricks, threads);
    parallel_for(at_work, bricks, fair_grain(at_work, bricks, 16), compute);
    counts[k] = field.count.take(static_cast<uint32_t>(bricks));
  }
  for (FieldBricks& field : g.fields) field.next.take(field.list);
}

void evolve_group(EvolveJob& job, const FieldRange& group, int64_t steps, const Context& context) {
  GroupBricks g(job, group);
  begin(g, context.threads);
  const bool is_empty = std::all_of(g.fields.begin(), g.fields.end(),
                                    [](const FieldBricks& field) { return field.list.empty(); });
  const FieldProgress& progress = job.progress[group.first];
  stop_group(job, group, stop_before(progress, is_empty, job.stops));
  std::vector<StepCount> counts(g.fields.size());
  for (int64_t t = 0; t < steps && progress.stop == Stop::kNone && !context.stop_requested(); ++t) {
    step_group(g, t == 0, context.threads, counts);
    finish_step(job, group, counts);
  }
  for (size_t k = 0; k < g.fields.size(); ++k) {
    const bool goes_on = progress.stop == Stop::kNone;
    job.active[group.first + k] =
        goes_on ? ActiveSet{std::move(g.fields[k].list), true} : ActiveSet{};
  }
}

}  // namespace

void evolve_bricks(EvolveJob& job, int64_t steps, const Context& context) {
  for_moving_groups(job, context, [&](const FieldRange& group, const Context& of_one) {
    evolve_group(job, group, steps, of_one);
  });
}

}  // namespace larch::levelset::cpu
