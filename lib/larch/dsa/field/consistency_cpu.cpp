// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "larch/core/parallel.h"
#include "larch/dsa/field/consistency.h"
#include "larch/dsa/field/consistency_math.h"

namespace larch::dsa::cpu {
namespace {

void replace_in_frame(const Neighbourhood& blocks, Outlier rule, bool judges) {
  const int64_t n = blocks.blocks();
  for (int64_t i = 0; i < n; ++i) begin_judging(blocks, i);
  if (judges) {
    for (int64_t i = 0; i < n; ++i) judge(blocks, i, rule);
  }
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
      for (int i = 0; i < std::max(job.iterations, 1); ++i) {
        replace_in_frame(blocks, job.rule, job.iterations > 0);
      }
    }
  });
}

void field_vectors(const VectorsJob& job, const Context& context) {
  const int64_t blocks = static_cast<int64_t>(job.count[0]) * job.count[1] * job.count[2];
  parallel_for(context.threads, job.frames * blocks, 256, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin; i < end; ++i) {
      job.vectors[i] = smoothed_vector(job, i / blocks, i % blocks);
    }
  });
}

}  // namespace larch::dsa::cpu
