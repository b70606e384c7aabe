// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <set>
#include <string>
#include <vector>

#include <catch2/catch.hpp>
#include <cuda_runtime.h>

#include "tests/emulation/emulation_kernels.h"

// That the emulation computes what a device would, and finds what it is there to find.
namespace larch::test {
namespace {

/// Memory of the emulated device.
class Words {
 public:
  explicit Words(size_t count) {
    void* memory = nullptr;
    cudaMallocAsync(&memory, count * sizeof(uint32_t), nullptr);
    words_ = static_cast<uint32_t*>(memory);
  }
  Words(const Words&) = delete;
  Words& operator=(const Words&) = delete;
  ~Words() { cudaFreeAsync(words_, nullptr); }

  uint32_t* data() { return words_; }
  uint32_t& operator[](size_t i) { return words_[i]; }

 private:
  uint32_t* words_ = nullptr;
};

/// What is wrong with the launches since the last call; empty: nothing.
std::string wrong() {
  const cudaError_t error = cudaGetLastError();
  return error == cudaSuccess ? "" : cudaGetErrorString(error);
}

bool contains(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

TEST_CASE("operations of warps and blocks give what CUDA's give") {
  Words out(320);
  for (int launch = 0; launch < 10; ++launch) {
    run_lanes(out.data());
    REQUIRE(wrong().empty());
    for (uint32_t t = 0; t < 64; ++t) {
      CAPTURE(launch, t);
      const uint32_t first = t / 32 * 32;
      REQUIRE(out[t] == 0x49249249U);
      REQUIRE(out[64 + t] == 32 * first + 496);
      REQUIRE(out[128 + t] == (t == first ? t : t - 1));
      REQUIRE(out[192 + t] == first + 5);
      REQUIRE(out[256 + t] == 1);
    }
  }
}

TEST_CASE("a race in shared memory is found in every launch, and none where there is a barrier") {
  Words out(128);
  for (int launch = 0; launch < 10; ++launch) {
    run_neighbour(out.data(), true);
    run_lane(out.data(), true);
    REQUIRE(wrong().empty());
    run_neighbour(out.data(), false);
    const std::string text = wrong();
    CAPTURE(text);
    CHECK(contains(text, "neighbour_kernel"));
    CHECK(contains(text, "a race in shared memory"));
    CHECK(contains(text, "emulation_kernels.cu:2"));
    run_lane(out.data(), false);
    CHECK(contains(wrong(), "a race in shared memory"));
  }
}

TEST_CASE("sums that are not atomic go wrong") {
  Words sum(1);
  int wrong_sums = 0;
  for (int launch = 0; launch < 20; ++launch) {
    for (const bool is_atomic : {true, false}) {
      sum[0] = 0;
      run_add(sum.data(), is_atomic);
      REQUIRE(wrong().empty());
      if (is_atomic) REQUIRE(sum[0] == 1024);
      if (sum[0] != 1024) ++wrong_sums;
    }
  }
  CHECK(wrong_sums > 3);
}

TEST_CASE("threads that wait for ever are named") {
  Words out(64);
  run_forgotten(out.data());
  const std::string text = wrong();
  CAPTURE(text);
  CHECK(contains(text, "forgotten_kernel"));
  CHECK(contains(text, "block 0,0,0 threads 0 to 31: ended"));
  CHECK(contains(text, "threads 32 to 63: at barrier 3, where 32 of 64 are"));
  run_lanes(Words(320).data());
  CHECK(wrong().empty());
}

TEST_CASE("writing beyond the end of memory is found") {
  Words out(8);
  run_beyond(out.data(), 7);
  CHECK(wrong().empty());
  run_beyond(out.data(), 8);
  CHECK(contains(wrong(), "wrote beyond memory of 32 bytes"));
}

TEST_CASE("memory that nobody wrote is another in every launch") {
  std::set<uint32_t> found;
  for (int launch = 0; launch < 10; ++launch) {
    Words out(1);
    run_unwritten(out.data());
    found.insert(out[0]);
  }
  CHECK(found.size() > 5);
}

TEST_CASE("all blocks of a cooperative launch meet") {
  int most = 0;
  cudaDeviceGetAttribute(&most, cudaDevAttrMultiProcessorCount, 0);
  REQUIRE(most > 1);
  const auto blocks = static_cast<uint32_t>(most);
  Words sums(6);
  sums[0] = 1;
  for (size_t i = 1; i < 6; ++i) sums[i] = 0;
  run_grid({sums.data(), 5}, blocks);
  REQUIRE(wrong().empty());
  for (size_t i = 1; i < 6; ++i) CHECK(sums[i] == sums[i - 1] * blocks);
  run_grid({sums.data(), 5}, blocks + 1);
  CHECK(contains(wrong(), "more blocks than run at once"));
}

}  // namespace
}  // namespace larch::test
