// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/learning/feature_source.h"

namespace larch::learning {

/// A whole feature source out of a function, for features that are no taps: `Response` is trivially
/// copyable and has
///
///     LARCH_HD int32_t operator()(uint32_t column, size_t sample) const
///
/// It gives the same integer on every device: integers throughout, or doubles without fused
/// operations and with nothing but + - * / sqrt and rounding. What it points to belongs to the
/// caller. This is the source of the CPU; cuda/learning/response_source.cuh has the one of a GPU.
template <class Response>
class ResponseSource : public FeatureSource {
 public:
  /// `prices`: one per column, or empty: all alike.
  ResponseSource(const Response& response, size_t columns, std::string name,
                 std::vector<Price> prices = {})
      : response_(response),
        columns_(columns),
        name_(std::move(name)),
        prices_(std::move(prices)) {}

  Device device() const override { return Device::cpu(); }
  size_t columns() const override { return columns_; }
  std::string name(uint32_t column) const override { return name_ + " " + std::to_string(column); }
  Price price(uint32_t column) const override {
    return prices_.empty() ? Price{} : prices_[column];
  }

  void add_ends(std::span<const uint32_t> samples, ColumnEnds& ends,
                const Context& context) const override {
    parallel_for_each(context.threads, static_cast<int64_t>(columns_), 1, [&](size_t c) {
      for (const uint32_t sample : samples) {
        const int32_t value = response_(static_cast<uint32_t>(c), sample);
        ends.insert(2 * c, value);
        ends.insert(2 * c + 1, ~value);
      }
    });
  }

  void fill(const PreparedColumns& columns, std::span<const uint32_t> samples,
            FeatureMatrix& matrix, const Context& context) const override {
    parallel_for_each(context.threads, static_cast<int64_t>(matrix.rows), 16, [&](size_t k) {
      fill_row(columns.slots, samples.empty() ? static_cast<uint32_t>(k) : samples[k], matrix, k);
    });
  }

 protected:
  const Response& response() const { return response_; }

 private:
  void fill_row(const std::vector<Slot>& slots, uint32_t sample, FeatureMatrix& matrix,
                size_t row) const {
    for (size_t s = 0; s < slots.size(); ++s) {
      const uint32_t code = slots[s].column == kFilling
                                ? 0
                                : code_of(slots[s].codes, response_(slots[s].column, sample));
      matrix.row(s / matrix.width, row)[s % matrix.width] = static_cast<uint8_t>(code);
    }
  }

  Response response_;
  size_t columns_;
  std::string name_;
  std::vector<Price> prices_;
};

}  // namespace larch::learning
