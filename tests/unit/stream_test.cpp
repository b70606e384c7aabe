// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <catch2/catch.hpp>

#include "larch/core/buffer.h"
#include "larch/core/device.h"
#include "larch/core/error.h"
#include "larch/image/integral.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

TEST_CASE("a stream of the CPU is the CPU") {
  const Stream stream(Device::cpu());
  CHECK(stream.device() == Device::cpu());
  CHECK(stream.device().stream == nullptr);
  const Buffer<int> buffer(stream.device(), 3);
  CHECK(buffer.size() == 3);
}

TEST_CASE("devices that differ in their stream alone are one place") {
  int handle = 0;
  Device other = Device::cuda(1);
  other.stream = &handle;
  CHECK(other == Device::cuda(1));
  CHECK_FALSE(other == Device::cuda(0));
  CHECK(to_string(other) == "cuda:1");
}

}  // namespace
}  // namespace larch
