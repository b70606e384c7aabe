// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/features/linear_columns.cuh"
#include "cuda/learning/order_statistics.cuh"

namespace larch::features::cuda {
void range(const LinearRangeJob& job) {
  const Device& device = job.context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const Buffer<uint32_t> index(device, job.samples);
  const LinearValue value{job.columns.device_features.data(), job.columns.device_taps.data(),
                          on_device(job.places, index)};
  learning::cuda::add_ends(value, job.columns.features.size(), job.samples.size(), job.ends,
                           device);
}

}  // namespace larch::features::cuda
