// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <numeric>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <cub/device/device_radix_sort.cuh>
#include <cub/device/device_scan.cuh>
#include <cub/device/device_select.cuh>
#include <cuda_runtime.h>
#include <thrust/iterator/counting_iterator.h>

#include "larch/core/random_math.h"
#include "tests/emulation/emulation_kernels.h"

// What stands in for CUDA's functions, for instructions in assembly and for CUB, against plain
// formulas.
namespace larch::test {
namespace {

std::string wrong() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

/// Part `i` of so many bits of a word.
uint32_t part(uint64_t word, int bits, int i) {
  return static_cast<uint32_t>(word / (uint64_t{1} << bits * i) % (uint64_t{1} << bits));
}

TEST_CASE("operations on parts of words give what their formulas say") {
  constexpr uint32_t kCount = 200;
  std::vector<uint32_t> pairs{0, 0, 0xffffffff, 1, 0x80000000, 0x80000000, 0x00ff01fe, 0xff00fe01};
  while (pairs.size() < 2 * kCount) {
    // Every second pair is of small numbers of either sign.
    const auto drawn = static_cast<uint32_t>(hash64(1, 2, pairs.size()));
    pairs.push_back(pairs.size() % 4 < 2 ? drawn : drawn % 3000 - 1000);
  }
  std::vector<uint32_t> out(8 * kCount);
  run_words(pairs.data(), out.data(), kCount);
  REQUIRE(wrong().empty());
  for (size_t k = 0; k < kCount; ++k) {
    const uint32_t a = pairs[2 * k], b = pairs[2 * k + 1];
    const uint32_t* const own = out.data() + 8 * k;
    CAPTURE(a, b);
    for (int i = 0; i < 4; ++i) {
      CHECK(part(own[0], 8, i) == std::min(part(a, 8, i), part(b, 8, i)));
      CHECK(part(own[1], 8, i) == std::max(part(a, 8, i), part(b, 8, i)));
    }
    for (int i = 0; i < 2; ++i) {
      CHECK(part(own[2], 16, i) == std::max(part(a, 16, i), part(b, 16, i)));
    }
    CHECK(own[3] == part(a, 16, 1) + (part(b, 16, 0) << 16));
    CHECK(own[4] == part(a, 16, 0) + (part(b, 16, 1) << 16));
    CHECK(own[5] == static_cast<uint64_t>(a) * b / (uint64_t{1} << 32));
    const auto sum = static_cast<int32_t>(a + b);
    CHECK(own[6] == static_cast<uint32_t>(std::clamp(sum, 0, 1000)));
    const uint64_t both = static_cast<uint64_t>(b) << 32 | a;
    CHECK(own[7] == (b % 70 < 64 ? static_cast<uint32_t>(both >> b % 70) : 0));
  }
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
  std::vector<uint32_t> out(4 + keys.size());
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
    CHECK(std::equal(sorted.begin(), sorted.end(), out.begin() + 4,
                     [](int32_t a, uint32_t b) { return a == static_cast<int32_t>(b); }));
  }
}

TEST_CASE("extremes of numbers with a sign over a warp") {
  std::vector<int32_t> keys(256, 0);
  for (int32_t i = 0; i < 32; ++i) keys[static_cast<size_t>(i)] = 5 - 3 * i;
  // The second warp, whose values are all the same, may write last.
  std::vector<uint32_t> out(4 + keys.size());
  std::array<bool, 2> seen{};
  for (int launch = 0; launch < 40; ++launch) {
    run_block(keys.data(), out.data(), true);
    REQUIRE(wrong().empty());
    const auto low = static_cast<int32_t>(out[2]), high = static_cast<int32_t>(out[3]);
    CHECK((low == -88 || low == -1000000));
    CHECK((high == 5 || high == -1000000));
    if (low == -88) seen[0] = true;
    if (high == 5) seen[1] = true;
  }
  CHECK((seen[0] && seen[1]));
}

TEST_CASE("the launches of a graph have the arguments that they were added with") {
  std::vector<uint32_t> memory(321, 0);
  run_graph(memory.data() + 320, memory.data());
  REQUIRE(wrong().empty());
  CHECK(memory[320] == 96);
  CHECK(memory[192] == 5);
}

TEST_CASE("prefix sums, selections and sorts are those of plain loops") {
  const std::vector<uint32_t> counts{3, 0, 0xffffffff, 2, 1};
  std::vector<int64_t> places(counts.size());
  size_t bytes = 0;
  const auto add = [](int64_t a, int64_t b) { return a + b; };
  char scratch = 0;
  cub::DeviceScan::ExclusiveScan(nullptr, bytes, counts.data(), places.data(), add, int64_t{0}, 5,
                                 nullptr);
  CHECK(bytes > 0);
  cub::DeviceScan::ExclusiveScan(&scratch, bytes, counts.data(), places.data(), add, int64_t{0}, 5,
                                 nullptr);
  CHECK(places == std::vector<int64_t>{0, 3, 3, 0x100000002, 0x100000004});
  std::vector<uint32_t> list(4, 77);
  int64_t found = -1;
  const thrust::counting_iterator<uint32_t> all(0);
  cub::DeviceSelect::If(
      &scratch, bytes, all, list.data(), &found, 10, [](uint32_t i) { return i % 4 == 1; },
      nullptr);
  CHECK(found == 3);
  CHECK(list == std::vector<uint32_t>{1, 5, 9, 77});
  // Of keys that agree in the bits that count, the first stays the first.
  const std::vector<uint64_t> keys{0xf11, 0xf35, 0x023, 0xe30, 0x02f};
  std::vector<uint64_t> sorted(keys.size());
  cub::DeviceRadixSort::SortKeysDescending(nullptr, bytes, keys.data(), sorted.data(), 5, 4, 8,
                                           nullptr);
  cub::DeviceRadixSort::SortKeysDescending(&scratch, bytes, keys.data(), sorted.data(), 5, 4, 8,
                                           nullptr);
  CHECK(sorted == std::vector<uint64_t>{0xf35, 0xe30, 0x023, 0x02f, 0xf11});
}

}  // namespace
}  // namespace larch::test
