// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/learning/feature_source.h"

namespace larch::learning {

/// Answers a VoteRequest with the codes of a matrix, so many samples at a time that it stays small.
void vote_through_matrix(const FeatureSource& source, const VoteRequest& request,
                         const Context& context);

/// A weak classifier that reads a slot of a matrix.
struct SlotVote {
  uint32_t slot = 0;
  BinMap bins;
  uint64_t mask = 0;
  int32_t alpha_q20 = 0;
};
LARCH_HD bool slot_vote(const SlotVote& weak, const uint8_t* codes, size_t rows, size_t width,
                        size_t row) {
  const uint8_t code = codes[(weak.slot / width * rows + row) * width + weak.slot % width];
  return (weak.mask >> bin_of(weak.bins, code)) & 1;
}

/// The rows of a matrix, which were all filled.
struct MatrixVotesJob {
  const FeatureMatrix& matrix;
  std::span<const SlotVote> weaks;  ///< host
  std::span<uint32_t> bits;         ///< host; of these rows, or empty
  std::span<int32_t> scores;        ///< host; of these rows, or empty
  const Context& context;
};
namespace cuda {
void matrix_votes(const MatrixVotesJob& job);
}

}  // namespace larch::learning
