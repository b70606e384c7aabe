// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <numeric>
#include <string>
#include <thread>

#include <catch2/catch.hpp>

#include "larch/core/context.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/core/sha256_blocks.h"
#include "larch/data/grid.h"
#include "larch/data/volume.h"

namespace larch {
namespace {

// No variable of the environment weakens a program that is used.
static_assert(guarded(Guard::kDicomBitRules) && guarded(Guard::kNiftiOffset));

std::string sha(const std::string& text) {
  Sha256 s;
  s.update(text.data(), text.size());
  return hex(s.digest());
}

TEST_CASE("SHA-256 gives the published digests") {
  CHECK(sha("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST_CASE("SHA-256 is the same by every implementation, however the bytes are cut") {
  CHECK(sha(std::string(1000000, 'a')) ==
        "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
  std::string text(1000, ' ');
  for (size_t i = 0; i < text.size(); ++i) text[i] = static_cast<char>(hash64(1, 2, i));
  const auto* data = reinterpret_cast<const uint8_t*>(text.data());
  detail::Sha256State expected{1, 2, 3, 4, 5, 6, 7, 8};
  const detail::Sha256State begin = expected;
  detail::sha256_blocks_portable(expected, data, 15);
  for (const detail::Sha256Blocks work_in : detail::all_sha256_blocks()) {
    detail::Sha256State state = begin;
    work_in(state, data, 15);
    CHECK(state == expected);
    detail::Sha256State in_two = begin;
    work_in(in_two, data, 4);
    work_in(in_two, data + size_t{4} * 64, 11);
    CHECK(in_two == expected);
  }
  for (const size_t first : {1, 63, 64, 65, 500}) {
    Sha256 cut;
    cut.update(text.data(), first);
    cut.update(text.data() + first, text.size() - first);
    CHECK(hex(cut.digest()) == sha(text));
  }
}

TEST_CASE("index and world are inverse, with oblique and sheared directions") {
  Grid g;
  g.size = {5, 6, 7};
  g.spacing_mm = {0.5, 2, 3};
  g.origin_mm = {-10, 20, 7};
  g.direction = {{{0.8, -0.6, 0.1}, {0.6, 0.8, 0.0}, {0, 0, 0.9949874371066199}}};
  const Vec3d index{1.25, -3, 4.5};
  const Vec3d back = index_from_world(g, world_from_index(g, index));
  CHECK(norm(back - index) < 1e-12);
  for (int64_t i : {0, 17, 209}) CHECK(g.linear(g.voxel(i)) == i);
}

TEST_CASE("two grids that differ are described by what differs") {
  Grid a;
  a.size = {10, 10, 10};
  Grid b = a;
  CHECK(describe_difference(a, b).empty());
  b.origin_mm.x = 2.5;
  CHECK(describe_difference(a, b).find("origin differs by (-2.5") != std::string::npos);
  b = a;
  b.size.z = 9;
  CHECK(describe_difference(a, b) == "size 10x10x10 against 10x10x9");
  CHECK_NOTHROW(require_on_grid("'a'", a, "'b'", a));
  CHECK_THROWS_WITH(require_on_grid("'a'", a, "'b'", b),
                    Catch::StartsWith("'a' is not on the grid of 'b': size 10x10x10"));
  // A tenth of a voxel along each axis, at the corners, for voxels of any size.
  for (const double mm : {1e-6, 5e-4, 0.35, 100.0}) {
    CAPTURE(mm);
    a.size = {320, 320, 40};
    a.spacing_mm = {mm, mm, 7 * mm};
    const auto differs = [&](const Vec3d& shift, double stretch, double turn) {
      Grid c = a;
      c.origin_mm = a.origin_mm + shift * mm;
      c.spacing_mm.x *= 1 + stretch / 319;
      c.direction = {{{1, -turn / 319, 0}, {turn / 319, 1, 0}, {0, 0, 1}}};
      return describe_difference(c, a);
    };
    CHECK(differs({0.09, -0.09, 0.63}, 0, 0).empty());
    CHECK_THAT(differs({1.9, 0, 0}, 0, 0), Catch::StartsWith("origin differs by"));
    CHECK_THAT(differs({1.9, 0, 0}, 0, 0), Catch::EndsWith(" mm, 1.9 voxels"));
    CHECK_FALSE(differs({0, 0.11, 0}, 0, 0).empty());
    CHECK_FALSE(differs({0, 0, 0.77}, 0, 0).empty());
    CHECK(differs({}, 0.09, 0).empty());
    CHECK_THAT(differs({}, 0.2, 0), Catch::StartsWith("spacing differs by"));
    CHECK(differs({}, 0, 0.09).empty());
    CHECK_THAT(differs({}, 0, 0.2), Catch::StartsWith("direction differs, the far corner by"));
  }
}

TEST_CASE("parallel_for covers each index once for any number of threads") {
  for (const int threads : {1, 2, 5}) {
    std::vector<int> hits(1000, 0);
    parallel_for(threads, 1000, 7, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) ++hits[static_cast<size_t>(i)];
    });
    CHECK(std::accumulate(hits.begin(), hits.end(), 0) == 1000);
    CHECK(*std::max_element(hits.begin(), hits.end()) == 1);
  }
  CHECK_THROWS_AS(parallel_for(2, 100, 1, [](int64_t, int64_t) { throw InputError("x"); }),
                  InputError);
}

TEST_CASE("parallel_for inside of itself, and from several threads at once") {
  std::atomic<int64_t> sum{0};
  const auto outer = [&] {
    parallel_for(3, 20, 1, [&](int64_t begin, int64_t end) {
      for (int64_t i = begin; i < end; ++i) {
        parallel_for(4, 1000, 10, [&](int64_t a, int64_t b) { sum += b - a; });
      }
    });
  };
  std::thread other(outer);
  outer();
  other.join();
  CHECK(sum == 2 * 20 * 1000);
}

TEST_CASE(
    "parallel_for: loops of several callers have no more threads together than were started") {
  start_threads(3);
  std::atomic<int> now{0}, most{0}, sum{0};
  const auto call = [&] {
    parallel_for(8, 200, 1, [&](int64_t begin, int64_t end) {
      const int here = ++now;
      for (int seen = most; here > seen && !most.compare_exchange_weak(seen, here);) {
      }
      std::this_thread::sleep_for(std::chrono::microseconds(100));
      sum += static_cast<int>(end - begin);
      --now;
    });
  };
  std::thread other(call);
  call();
  other.join();
  CHECK(sum == 400);
  CHECK(most <= 4);  // three, and the caller who came second
  CHECK(most >= 2);
}

TEST_CASE("parallel_for: what one thread throws ends the loop, and the next one works") {
  for (int round = 0; round < 50; ++round) {
    std::atomic<int> calls{0};
    CHECK_THROWS_AS(parallel_for(4, 1000000, 1,
                                 [&](int64_t begin, int64_t) {
                                   ++calls;
                                   if (begin == 5) throw InputError("x");
                                 }),
                    InputError);
    CHECK(calls < 1000000);
  }
  std::atomic<int> calls{0};
  parallel_for(4, 100, 1, [&](int64_t, int64_t) { ++calls; });
  CHECK(calls == 100);
}

}  // namespace
}  // namespace larch
