// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/learning/response_source.cuh"
#include "larch/learning/stored_codes.h"

namespace larch::learning::cuda {

std::unique_ptr<FeatureSource> stored_source(const StoredCodes& codes, size_t columns,
                                             const Device& device) {
  return std::make_unique<ResponseSource<StoredCodes>>(codes, columns, "stored column", device);
}

}  // namespace larch::learning::cuda
