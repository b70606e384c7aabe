// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "cuda/core/check.cuh"
#include "cuda/features/linear_columns.cuh"
#include "cuda/learning/order_statistics.cuh"

namespace larch::features::cuda {
namespace {

/// The value of a linear feature at a selected sample.
struct LinearValue {
  const LinearFeature* features;
  const LinearTap* taps;
  Places places;

  __device__ int32_t operator()(uint32_t column, int64_t k) const {
    const LinearFeature feature = features[column];
    const int64_t* bases = places.bases + feature.channel * places.sample_count;
    return linear_response(taps + feature.first_tap, feature.n_tap,
                           places.integral + bases[places.index[k]]);
  }
};

}  // namespace

std::vector<learning::CodeMap> range(const LinearRangeJob& job) {
  const Device& device = job.context.device;
  LARCH_CUDA_CHECK(cudaSetDevice(device.index));
  const Buffer<uint32_t> index(device, job.samples);
  const LinearValue value{job.columns.device_features.data(), job.columns.device_taps.data(),
                          on_device(job.places, index)};
  return learning::cuda::range_columns(value, job.columns.features.size(), job.samples.size(),
                                       device);
}

}  // namespace larch::features::cuda
