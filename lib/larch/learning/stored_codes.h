// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "larch/learning/feature_matrix.h"
#include "larch/learning/feature_source.h"

namespace larch::learning {

/// A row of a matrix that holds all columns of a source in their order.
struct StoredRow {
  const uint8_t* codes = nullptr;  ///< of the matrix
  uint64_t rows = 0, row = 0;
};

/// The response of a source whose values are the codes of filled matrices: they are computed once,
/// and as many trees as wanted grow from them.
struct StoredCodes {
  const StoredRow* at = nullptr;  ///< by sample
  uint32_t width = 1;             ///< of the matrices

  LARCH_HD int32_t operator()(uint32_t column, size_t sample) const {
    const StoredRow r = at[sample];
    return r.codes[(column / width * r.rows + r.row) * width + column % width];
  }
};

/// Code maps of stored columns: those of a column that does not vary (`maps`, of its values) say
/// so, the others leave codes as they are.
std::vector<CodeMap> maps_of_codes(std::span<const CodeMap> maps);

/// Returns the source; the rows lie on `device`.
std::unique_ptr<FeatureSource> make_stored_source(const StoredCodes& codes, size_t columns,
                                                  const Device& device);
namespace cuda {
std::unique_ptr<FeatureSource> stored_source(const StoredCodes& codes, size_t columns,
                                             const Device& device);
}

}  // namespace larch::learning
