// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/stream.h"

#include "larch/core/dispatch.h"

namespace larch {
namespace cpu {
namespace {
void* create_stream(const Device& /*device*/) {
  return nullptr;
}
void destroy_stream(const Device& /*device*/) {}
void wait_for(const Device& /*device*/) {}
}  // namespace
}  // namespace cpu
namespace cuda {  // defined in cuda/core/device.cu, if built
void* create_stream(const Device& device);
void destroy_stream(const Device& device);
void wait_for(const Device& device);
}  // namespace cuda

namespace {
constexpr Dispatch<void*(const Device&)> kCreate{"stream::create", cpu::create_stream,
                                                 LARCH_CUDA_FN(cuda::create_stream)};
constexpr Dispatch<void(const Device&)> kDestroy{"stream::destroy", cpu::destroy_stream,
                                                 LARCH_CUDA_FN(cuda::destroy_stream)};
constexpr Dispatch<void(const Device&)> kWaitFor{"stream::wait_for", cpu::wait_for,
                                                 LARCH_CUDA_FN(cuda::wait_for)};
}  // namespace

void wait_for(const Device& device) {
  kWaitFor(device, device);
}

Stream::Stream(const Device& device) : device_(device) {
  device_.stream = kCreate(device, device);
}
// Where a stream could be made it can be destroyed: no slot is missing.
Stream::~Stream() {  // NOLINT(bugprone-exception-escape)
  kDestroy(device_, device_);
}

}  // namespace larch
