// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "larch/core/parallel.h"
#include "larch/dsa/field/consistency.h"
#include "larch/dsa/field/consistency_math.h"

namespace larch::dsa::cpu {
namespace {

void replace_in_frame(const Neighbourhood& blocks) {
  const int64_t n = blocks.blocks();
  for (int64_t i = 0; i < n; ++i) begin_judging(blocks, i);
  for (int64_t i = 0; i < n; ++i) judge(blocks, i);
  bool is_unfilled = false;
  for (int64_t i = 0; i < n; ++i) is_unfilled |= end_judging(blocks, i);
  for (int32_t round = 1; is_unfilled; ++round) {
    is_unfilled = false;
    for (int64_t i = 0; i < n; ++i) is_unfilled |= fill_from_neighbours(blocks, i, round);
  }
  for (int64_t i = 0; i < n; ++i) fill_with_zero(blocks, i);
}

}  // namespace

void replace_inconsistent(const ConsistencyJob& job, const Context& context) {
  parallel_for(context.threads, job.frames, 1, [&](int64_t begin, int64_t end) {
    for (int64_t f = begin; f < end; ++f) {
      Neighbourhood blocks;
      std::copy_n(job.axes, 3, blocks.axes);
      blocks.tolerates = job.tolerates;
      blocks.drops_unreliable = job.drops_unreliable;
      blocks.matches = job.matches + f * blocks.blocks();
      blocks.known_since = job.known_since + f * blocks.blocks();
      replace_in_frame(blocks);
    }
  });
}

void field_vectors(const VectorsJob& job, const Context& context) {
  parallel_for(context.threads, job.count, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) job.vectors[i] = job.matches[i].vector;
  });
}

}  // namespace larch::dsa::cpu
