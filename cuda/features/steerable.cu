// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/learning/response_source.cuh"
#include "larch/features/steerable/steerable.h"

namespace larch::features::cuda {

std::unique_ptr<learning::FeatureSource> steerable_source(const SteerableResponse& response,
                                                          size_t columns, const Device& device) {
  return std::make_unique<learning::cuda::ResponseSource<SteerableResponse>>(
      response, columns, "steerable feature", device);
}

}  // namespace larch::features::cuda
