// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "larch/features/linear/linear_columns.h"
#include "larch/learning/feature_source.h"

namespace larch::features {

/// Where samples lie: for sample i and channel c the element integral[bases[c * count + i]]. The
/// pointers are of one device. Of images that are not in memory together a portion is there at a
/// time.
struct SamplePlaces {
  const uint32_t* integral = nullptr;
  const int64_t* bases = nullptr;
  size_t count = 0;
  std::span<const uint32_t> portion{};  ///< of each sample, host; empty: all images are there
  /// Puts the images of a portion in the place of those that are there.
  std::function<void(uint32_t portion, const Context&)> load{};
};

/// The feature matrix of linear features at voxels of integral volumes. A view: columns, volumes
/// and places belong to the caller and outlive it.
class LinearSource final : public learning::FeatureSource {
 public:
  LinearSource(const LinearColumns& columns, const SamplePlaces& places)
      : columns_(&columns), places_(places) {}

  /// After the list of samples has changed.
  void place(const SamplePlaces& places) { places_ = places; }

  Device device() const override { return columns_->device_taps.device(); }
  size_t columns() const override { return columns_->features.size(); }
  std::string name(uint32_t column) const override;
  learning::Price price(uint32_t column) const override;
  void add_ends(std::span<const uint32_t> samples, learning::ColumnEnds& ends,
                const Context& context) const override;
  std::shared_ptr<const learning::PreparedColumns> prepare(const learning::ColumnRequest& request,
                                                           const Context& context) const override;
  void fill(const learning::PreparedColumns& columns, std::span<const uint32_t> samples,
            learning::FeatureMatrix& matrix, const Context& context) const override;
  /// The short way: taps at the samples, no matrix. Each portion of the images is loaded once.
  void vote(std::span<const learning::VoteRequest> requests, const Context& context) const override;

 private:
  void vote_here(const learning::VoteRequest& request, const Context& context) const;

  const LinearColumns* columns_;
  SamplePlaces places_;
};

/// A weak classifier for the kernels.
struct VoteRecord {
  int32_t first_tap = 0;
  uint16_t n_tap = 0;
  uint16_t channel = 0;
  learning::CodeMap codes;
  learning::BinMap bins;
  uint64_t mask = 0;
  int32_t alpha_q20 = 0;
};

/// The operations on one device. Samples and weak classifiers are on the host.
struct LinearRangeJob {
  const LinearColumns& columns;
  const SamplePlaces& places;
  std::span<const uint32_t> samples;
  learning::ColumnEnds& ends;  ///< get the values at the samples too
  const Context& context;
};
struct LinearPrepareJob {
  const LinearColumns& columns;
  const learning::FeatureSource& source;
  const learning::ColumnRequest& request;
};
struct LinearFillJob {
  const learning::PreparedColumns& prepared;
  const SamplePlaces& places;
  std::span<const uint32_t> samples;
  std::span<const uint32_t> rows;  ///< of the matrix, one for each sample; empty: all, in order
  learning::FeatureMatrix& matrix;
  const Context& context;
};
struct LinearVoteJob {
  const LinearTap* taps;
  const SamplePlaces& places;
  std::span<const VoteRecord> weaks;
  const learning::VoteRequest& request;
  const Context& context;
};
using PreparedPointer = std::shared_ptr<const learning::PreparedColumns>;
namespace cuda {
void range(const LinearRangeJob& job);
PreparedPointer prepare(const LinearPrepareJob& job);
void fill(const LinearFillJob& job);
void vote(const LinearVoteJob& job);
}  // namespace cuda

}  // namespace larch::features
