// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstdint>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/buffer.h"
#include "larch/core/device.h"
#include "larch/core/random_math.h"

namespace larch {
namespace {

/// What a buffer on `device` holds after it was cleared, filled from the host, copied to another
/// buffer and read back; then a piece of it was cleared again.
std::vector<uint32_t> through(const Device& device, const std::vector<uint32_t>& values) {
  Buffer<uint32_t> buffer(device, values.size());
  const size_t bytes = values.size() * sizeof(uint32_t);
  memory::set_zero(device, buffer.data(), bytes);
  std::vector<uint32_t> out = buffer.to_vector();
  memory::copy(device, buffer.data(), Device::cpu(), values.data(), bytes / 8 * 4);
  Buffer<uint32_t> other(device, values.size());
  memory::copy(device, other.data(), device, buffer.data(), bytes);
  memory::set_zero(device, other.data(), bytes / 16 * 4);
  const std::vector<uint32_t> read = other.to_vector();
  out.insert(out.end(), read.begin(), read.end());
  return out;
}

TEST_CASE("memory of a device holds what is put there, and zeros where it is cleared",
          "[memory::allocate][memory::release][memory::set_zero][memory::copy]") {
  for (const size_t count : {size_t{7}, size_t{64}, size_t{4096}, size_t{300001}}) {
    std::vector<uint32_t> values(count);
    for (size_t i = 0; i < count; ++i) values[i] = static_cast<uint32_t>(hash64(2, count, i));
    const auto on_host = through(Device::cpu(), values);
    CHECK(on_host[count - 1] == 0);
    CHECK(through(Device::cuda(), values) == on_host);
  }
}

}  // namespace
}  // namespace larch
