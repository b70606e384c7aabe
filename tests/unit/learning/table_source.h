// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include "larch/core/context.h"
#include "larch/learning/boost.h"
#include "larch/learning/response_source.h"

namespace larch::fixtures {

/// A number of a table, [sample][column].
struct TableResponse {
  const int32_t* values = nullptr;
  size_t columns = 0;

  LARCH_HD int32_t operator()(uint32_t column, size_t sample) const {
    return values[sample * columns + column];
  }
};

inline Context cpu_context(int threads = 1) {
  Context context;
  context.threads = threads;
  return context;
}

/// Feature values given as a table, with classes and weights: what boosting needs, without images.
struct Table {
  size_t columns;
  std::vector<int32_t> values;  ///< [sample][column]
  std::vector<uint32_t> index;
  std::vector<uint8_t> positive;
  std::vector<double> weight;
  std::vector<learning::Price> prices;

  Table(size_t samples, size_t column_count)
      : columns(column_count),
        values(samples * column_count),
        index(samples),
        positive(samples),
        weight(samples, 1.0 / static_cast<double>(samples)),
        prices(column_count, {1, 0}) {
    std::iota(index.begin(), index.end(), 0u);
  }
  int32_t& at(size_t sample, size_t column) { return values[sample * columns + column]; }
  learning::ResponseSource<TableResponse> source() const {
    return {TableResponse{values.data(), columns}, columns, "column", prices};
  }
};

/// The matrix of a table: its source, and its columns with their code maps.
struct RangedTable {
  explicit RangedTable(const Table& table)
      : source(table.source()),
        maps(source.range(table.index, cpu_context())),
        columns(learning::prepare_all(source, maps, cpu_context())) {}

  const learning::ResponseSource<TableResponse> source;
  const std::vector<learning::CodeMap> maps;
  const std::shared_ptr<const learning::PreparedColumns> columns;
};

}  // namespace larch::fixtures
