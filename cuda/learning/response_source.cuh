// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "cuda/core/check.cuh"
#include "cuda/learning/order_statistics.cuh"
#include "larch/learning/response_source.h"

namespace larch::learning::cuda {

/// A response at samples that are chosen by an index on the device.
template <class Response>
struct ResponseAt {
  Response response;
  const uint32_t* index;

  __device__ int32_t operator()(uint32_t column, int64_t k) const {
    return response(column, index != nullptr ? index[k] : static_cast<size_t>(k));
  }
};

/// One thread per code: neighbouring threads write neighbouring slots of a row.
template <class Response>
__global__ void response_codes_kernel(const __grid_constant__ ResponseAt<Response> value,
                                      const Slot* slots, size_t slot_count, size_t rows,
                                      uint8_t* codes) {
  const size_t slot = size_t{blockIdx.x} * blockDim.x + threadIdx.x;
  if (slot >= slot_count) return;
  const Slot column = slots[slot];
  for (size_t row = blockIdx.y; row < rows; row += gridDim.y) {
    const uint32_t code =
        column.column == kFilling
            ? 0
            : code_of(column.codes, value(column.column, static_cast<int64_t>(row)));
    codes[(slot / kCudaWidth * rows + row) * kCudaWidth + slot % kCudaWidth] =
        static_cast<uint8_t>(code);
  }
}

/// The source of learning::ResponseSource on a GPU: what `response` points to lies on `device`.
/// Votes are answered through the matrix.
template <class Response>
class ResponseSource final : public learning::ResponseSource<Response> {
 public:
  ResponseSource(const Response& response, size_t columns, std::string name, const Device& device,
                 std::vector<Price> prices = {})
      : learning::ResponseSource<Response>(response, columns, std::move(name), std::move(prices)),
        device_(device) {
    static_assert(std::is_trivially_copyable_v<Response>);
  }

  Device device() const override { return device_; }

  void add_ends(std::span<const uint32_t> samples, ColumnEnds& ends,
                const Context&) const override {
    LARCH_CUDA_CHECK(cudaSetDevice(device_.index));
    const Buffer<uint32_t> index(device_, samples);
    const ResponseAt<Response> value{this->response(), index.data()};
    cuda::add_ends(value, this->columns(), samples.size(), ends, device_);
  }

  void fill(const PreparedColumns& columns, std::span<const uint32_t> samples,
            FeatureMatrix& matrix, const Context&) const override {
    if (matrix.rows == 0 || columns.slots.empty()) return;
    LARCH_CUDA_CHECK(cudaSetDevice(device_.index));
    const Buffer<uint32_t> index(device_, samples);
    const ResponseAt<Response> value{this->response(), index.data()};
    constexpr size_t kThreads = kCudaWidth, kMaximumRows = 65535;
    const dim3 grid(static_cast<unsigned>(columns.slots.size() / kThreads),
                    static_cast<unsigned>(std::min(matrix.rows, kMaximumRows)));
    response_codes_kernel<<<grid, kThreads, 0, larch::cuda::stream_of(device_)>>>(
        value, columns.on_device.data(), columns.slots.size(), matrix.rows, matrix.codes.data());
    larch::cuda::check_launch("response_codes_kernel");
  }

 private:
  Device device_;
};

}  // namespace larch::learning::cuda
