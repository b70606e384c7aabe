// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/core/device.h"

#include "larch_build.h"

#include "larch/core/dispatch.h"
#include "larch/core/host_memory.h"
#include "larch/core/text.h"

namespace larch {
namespace cuda {  // defined in cuda/core/device.cu, if built
/// Devices that can run this build's kernels; `*why` says why there are none.
int device_count(std::string* why);
std::string device_name(int index);
size_t free_bytes(int index);
size_t total_bytes(int index);
}  // namespace cuda

namespace {

using CountFn = int (*)(std::string*);
using NameFn = std::string (*)(int);
using BytesFn = size_t (*)(int);
constexpr CountFn kCount = LARCH_CUDA_FN(cuda::device_count);
constexpr NameFn kName = LARCH_CUDA_FN(cuda::device_name);
constexpr BytesFn kFree = LARCH_CUDA_FN(cuda::free_bytes);
constexpr BytesFn kTotal = LARCH_CUDA_FN(cuda::total_bytes);

int count_with_reason(std::string* why) {
  if (!kBuiltWithCuda) {
    *why = "this build has no CUDA code";
    return 0;
  }
  return kCount(why);
}

}  // namespace

std::string to_string(const Device& device) {
  return device.is_cuda() ? "cuda:" + std::to_string(device.index) : "cpu";
}

bool built_with_cuda() {
  return kBuiltWithCuda;
}

int cuda_device_count() {
  std::string why;
  return count_with_reason(&why);
}

std::string describe(const Device& device, int threads) {
  if (!device.is_cuda() || !kBuiltWithCuda) {
    return "cpu, " + std::to_string(threads) + (threads == 1 ? " thread" : " threads");
  }
  const double gib = static_cast<double>(kTotal(device.index)) / (1024.0 * 1024 * 1024);
  return kName(device.index) + " (" + to_string(device) + formatted("), %.1f GiB", gib);
}

Device choose_device(const std::string& text, std::string* reason) {
  std::string why;
  if (text == "cpu") return Device::cpu();
  if (text == "auto") {
    const int count = count_with_reason(&why);
    if (reason != nullptr) *reason = count > 0 ? "a CUDA device is present" : why;
    return count > 0 ? Device::cuda(0) : Device::cpu();
  }
  const std::string number = text == "cuda"                ? "0"
                             : text.rfind("cuda:", 0) == 0 ? text.substr(5)
                                                           : "";
  if (number.empty() || number.size() > 3 ||
      number.find_first_not_of("0123456789") != std::string::npos) {
    throw UsageError("device '" + text + "' is not one of auto, cpu, cuda, cuda:N, cuda:all");
  }
  const int index = std::stoi(number);
  const int count = count_with_reason(&why);
  if (count == 0) {
    constexpr const char* kWhatToDo =
        kBuiltWithCuda
            ? "; use --device cpu or run on a machine with an NVIDIA GPU"
            : "; build it again where the CUDA toolkit is installed (nvcc " LARCH_LEAST_NVCC
              " or newer; cmake -DLARCH_WITH_CUDA=ON says what is missing), or use "
              "--device cpu";
    throw DeviceError("no CUDA device for '" + text + "': " + why + kWhatToDo);
  }
  if (index >= count) {
    throw DeviceError("device '" + text + "' does not exist: " + std::to_string(count) +
                      " CUDA device(s) are visible, cuda:0 is the first; CUDA_VISIBLE_DEVICES "
                      "decides which");
  }
  return Device::cuda(index);
}

size_t free_memory_bytes(const Device& device) {
  if (device.is_cuda() && kBuiltWithCuda) return kFree(device.index);
  return free_host_memory().bytes;
}

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
