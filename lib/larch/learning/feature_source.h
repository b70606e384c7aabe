// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/feature_matrix.h"
#include "larch/learning/weak_math.h"

namespace larch::learning {

/// Holds what choosing a column costs: of columns with equal errors the simplest one wins.
struct Price {
  uint32_t complexity = 0;  ///< such as a number of taps; compared up to 255
  uint32_t cost_units = 0;  ///< added to the error in units of candidate_key: 2^31 per error of 1
};

/// Columns to be prepared, and the code map of each.
struct ColumnRequest {
  std::span<const uint32_t> columns;  ///< of the source, fewer than 2^24; ascending for boosting
  std::span<const CodeMap> maps;      ///< parallel to columns
};

/// Weak classifiers, at most kMaximumWeaks, asked about samples: for their votes or for H; either
/// `bits` or `scores` is empty.
struct VoteRequest {
  std::span<const WeakClassifier> weaks;
  std::span<const uint32_t> samples;
  std::span<uint32_t> bits;   ///< as Votes::bits
  std::span<int32_t> scores;  ///< H of the strong classifier that they are, Q20
};

/// Most samples that a code map is taken from.
constexpr size_t kMaximumRanged = 4096;

/// The smallest and the largest values of columns so far: the order statistics of a code map lie so
/// near the ends that no more are needed.
struct ColumnEnds {
  size_t keep;
  /// [column][the smallest values, the largest ones as complements][keep], ascending
  std::vector<int32_t> lists;

  /// `samples`: that there will be at each column.
  ColumnEnds(size_t columns, size_t samples)
      : keep(low_rank(samples) + 1), lists(2 * columns * keep, INT32_MAX) {}

  /// Adds to list 2 c, of the smallest values of column c, or a complement (~) to list 2 c + 1.
  void insert(size_t list, int32_t value) {
    int32_t* const ends = &lists[list * keep];
    if (value >= ends[keep - 1]) return;
    size_t at = keep - 1;
    for (; at > 0 && ends[at - 1] > value; --at) ends[at] = ends[at - 1];
    ends[at] = value;
  }
  std::vector<CodeMap> maps() const;
};

/// Where the feature matrix comes from: columns with names and prices, and a list of samples that
/// are known by their index alone. What a sample is, where it lies and how a feature is computed
/// there is the source's business; the learner asks for integers. The same request gives the same
/// integers on every device.
class FeatureSource {
 public:
  FeatureSource() = default;
  FeatureSource(const FeatureSource&) = default;
  FeatureSource& operator=(const FeatureSource&) = default;
  virtual ~FeatureSource() = default;

  /// Where matrices are filled; the contexts of all calls have to name it.
  virtual Device device() const = 0;
  /// Returns the number of columns, less than 2^24.
  virtual size_t columns() const = 0;
  virtual std::string name(uint32_t column) const = 0;
  virtual Price price(uint32_t column) const = 0;

  /// Returns the code map of each column: the order statistics low_rank from either end of its
  /// values at `samples`. A column whose statistics are equal is never chosen. Throws UsageError
  /// where there are more than kMaximumRanged samples, or none.
  std::vector<CodeMap> range(std::span<const uint32_t> samples, const Context& context) const;
  /// Adds the values of all columns at samples, at most kMaximumRanged.
  virtual void add_ends(std::span<const uint32_t> samples, ColumnEnds& ends,
                        const Context& context) const = 0;

  /// Returns what fill needs to know of the columns of a request, made once for many calls. Without
  /// a way of its own a source leaves them in their order.
  virtual std::shared_ptr<const PreparedColumns> prepare(const ColumnRequest& request,
                                                         const Context& context) const;

  /// Writes every element of `matrix`, which is on device() and was made for as many rows as there
  /// are samples: row k has the codes of samples[k], and filling is 0. No samples: row k has those
  /// of sample k.
  virtual void fill(const PreparedColumns& columns, std::span<const uint32_t> samples,
                    FeatureMatrix& matrix, const Context& context) const = 0;

  /// Answers all requests, which may cost little more than one of them. Without a way of its own a
  /// source answers through the matrix.
  virtual void vote(std::span<const VoteRequest> requests, const Context& context) const;
};

/// Returns all columns of a source with the same index in `maps`.
std::shared_ptr<const PreparedColumns> prepare_all(const FeatureSource& source,
                                                   std::span<const CodeMap> maps,
                                                   const Context& context);

/// Returns the slots of a request in its order, filled up to whole blocks.
std::vector<Slot> slots_in_order(const FeatureSource& source, const ColumnRequest& request);

/// Returns a matrix of these samples, filled.
FeatureMatrix fill_matrix(const FeatureSource& source, const PreparedColumns& columns,
                          std::span<const uint32_t> samples, const Context& context);

/// Holds what each weak classifier of a node says of each sample: bit t of sample k is bit t % 32
/// of word [k * words + t / 32], words = (weaks + 31) / 32.
struct Votes {
  size_t samples = 0, words = 0;
  std::vector<uint32_t> bits;

  bool at(size_t sample, size_t weak) const {
    return (bits[sample * words + weak / 32] >> (weak % 32)) & 1;
  }
};

/// Evaluates the weak classifiers (at most kMaximumWeaks), whose features are columns of `source`,
/// at samples.
Votes cast_votes(const FeatureSource& source, std::span<const WeakClassifier> weaks,
                 std::span<const uint32_t> samples, const Context& context);

/// Samples that are asked for H of a strong classifier.
struct ScoreRequest {
  std::span<const WeakClassifier> weaks;  ///< at most kMaximumWeaks
  std::vector<uint32_t> samples;
};
/// H of the strong classifier that the weak classifiers are, Q20, at samples; of each request.
std::vector<std::vector<int32_t>> strong_scores(const FeatureSource& source,
                                                const std::vector<ScoreRequest>& requests,
                                                const Context& context);

}  // namespace larch::learning
