// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/learning/matrix_votes.h"

#include <algorithm>
#include <stdexcept>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::learning {
namespace {

/// Rows of a matrix of at most 256 columns: a few megabytes.
constexpr size_t kRows = size_t{1} << 15;

/// Which slot has the codes of each weak classifier.
std::vector<SlotVote> find_slots(const PreparedColumns& columns,
                                 std::span<const WeakClassifier> weaks) {
  std::vector<SlotVote> votes;
  votes.reserve(weaks.size());
  for (const WeakClassifier& weak : weaks) {
    const auto slot = std::find_if(columns.slots.begin(), columns.slots.end(), [&](const Slot& s) {
      return s.column == weak.feature && same_map(s.codes, weak.codes);
    });
    if (slot == columns.slots.end()) throw std::logic_error("a column that was not prepared");
    votes.push_back({static_cast<uint32_t>(slot - columns.slots.begin()), weak.bins, weak.mask,
                     weak.alpha_q20});
  }
  return votes;
}

}  // namespace

namespace cpu {

void matrix_votes(const MatrixVotesJob& job) {
  const FeatureMatrix& matrix = job.matrix;
  const size_t words = (job.weaks.size() + 31) / 32;
  const auto vote_row = [&](size_t row) {
    int32_t h = 0;
    uint32_t bits = 0;
    for (size_t t = 0; t < job.weaks.size(); ++t) {
      const SlotVote& weak = job.weaks[t];
      const bool vote = slot_vote(weak, matrix.codes.data(), matrix.rows, matrix.width, row);
      h += vote ? weak.alpha_q20 : -weak.alpha_q20;
      if (vote) bits |= 1U << (t % 32);
      if (t % 32 != 31 && t + 1 != job.weaks.size()) continue;
      if (!job.bits.empty()) job.bits[row * words + t / 32] = bits;
      bits = 0;
    }
    if (!job.scores.empty()) job.scores[row] = h;
  };
  parallel_for_each(job.context.threads, static_cast<int64_t>(matrix.rows), 256,
                    [&](int64_t row) { vote_row(static_cast<size_t>(row)); });
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const MatrixVotesJob&)> kMatrixVotes{
    "learning::matrix_votes", cpu::matrix_votes, LARCH_CUDA_FN(cuda::matrix_votes)};

}  // namespace

void vote_through_matrix(const FeatureSource& source, const VoteRequest& request,
                         const Context& context) {
  std::vector<uint32_t> columns;
  std::vector<CodeMap> maps;
  for (const WeakClassifier& weak : request.weaks) {
    columns.push_back(weak.feature);
    maps.push_back(weak.codes);
  }
  const auto prepared = source.prepare({columns, maps}, context);
  const std::vector<SlotVote> weaks = find_slots(*prepared, request.weaks);
  const size_t words = (weaks.size() + 31) / 32;
  for (size_t first = 0; first < request.samples.size(); first += kRows) {
    const size_t count = std::min(kRows, request.samples.size() - first);
    const FeatureMatrix matrix =
        fill_matrix(source, *prepared, request.samples.subspan(first, count), context);
    const auto bits =
        request.bits.empty() ? request.bits : request.bits.subspan(first * words, count * words);
    const auto scores =
        request.scores.empty() ? request.scores : request.scores.subspan(first, count);
    kMatrixVotes(source.device(), MatrixVotesJob{matrix, weaks, bits, scores, context});
  }
}

}  // namespace larch::learning
