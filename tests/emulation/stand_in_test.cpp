// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <cuda_runtime.h>

#include "larch/core/random_math.h"
#include "tests/emulation/emulation_kernels.h"

// Mistakes that the stand-ins for instructions in assembly and for CUB find.
namespace larch::test {
namespace {

std::string wrong() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

TEST_CASE("shared memory is counted in, copied to and read by its addresses") {
  std::vector<uint32_t> from(64), out(64);
  std::iota(from.begin(), from.end(), 100U);
  for (int launch = 0; launch < 10; ++launch) {
    run_addresses(from.data(), out.data(), true);
    REQUIRE(wrong().empty());
    for (size_t t = 0; t < 64; ++t) CHECK(out[t] == 64000 + from[t ^ 1]);
  }
  // A copy that nobody waits for has not arrived.
  run_addresses(from.data(), out.data(), false);
  REQUIRE(wrong().empty());
  for (size_t t = 0; t < 64; ++t) CHECK(out[t] == 64007);
  run_no_address(out.data());
  CHECK(wrong().find("there is no word at address") != std::string::npos);
}

TEST_CASE("blocks add up and sort, and storage that is used again too early is a race") {
  std::vector<int32_t> keys(256);
  for (size_t i = 0; i < keys.size(); ++i) {
    keys[i] = static_cast<int32_t>(hash_below(1, 3, i, 200)) - 100;
  }
  std::vector<uint32_t> out(2 + keys.size());
  for (int launch = 0; launch < 10; ++launch) {
#ifndef __clang__  // the search for races needs GCC
    run_block(keys.data(), out.data(), false);
    CHECK(wrong().find("a race in shared memory") != std::string::npos);
#endif
    run_block(keys.data(), out.data(), true);
    REQUIRE(wrong().empty());
    CHECK(out[0] == 64 * 63 / 2);
    CHECK(out[1] == 64 * 63 / 2 + 64);
    std::vector<int32_t> sorted = keys;
    std::sort(sorted.begin(), sorted.end());
    CHECK(std::equal(sorted.begin(), sorted.end(), out.begin() + 2,
                     [](int32_t a, uint32_t b) { return a == static_cast<int32_t>(b); }));
  }
}

}  // namespace
}  // namespace larch::test
