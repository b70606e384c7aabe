// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <exception>
#include <thread>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/device.h"
#include "larch/image/integral.h"
#include "larch/pbt/evaluate/evaluate.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

using test::cuda_context;
using test::sized;

/// What a detector does for its images, one after the other.
std::vector<std::vector<float>> detect_all(const pbt::ResidentModel& model, pbt::Walk walk,
                                           uint64_t seed, const Context& context) {
  pbt::EvaluateConfig config;
  config.walk = walk;
  std::vector<std::vector<float>> found;
  const uint64_t images = sized(6, 2);
  for (uint64_t image = 0; image < images; ++image) {
    const Vec3i size = sized<Vec3i>({40 + static_cast<int>(image), 37, 29},
                                    {36 + static_cast<int>(image), 13, 11});
    const Volume<int16_t> voxels = fixtures::noise_volume(size, seed + image);
    const Volume<float> p = pbt::evaluate_volume(model, {&voxels, 1}, config, 0, context);
    found.emplace_back(p.begin(), p.end());
  }
  return found;
}

TEST_CASE("detectors with streams of their own run at once, share models, and give the same bytes",
          "[stream::create][stream::destroy]") {
  fixtures::RandomTree deep;
  deep.depth = sized(10, 5);
  const pbt::ResidentModel models[] = {{fixtures::random_model(21), Device::cuda()},
                                       {fixtures::random_model(22, deep), Device::cuda()}};
  for (const pbt::Walk walk : {pbt::Walk::kTile, pbt::Walk::kStack, pbt::Walk::kQueue}) {
    std::vector<std::vector<float>> alone[3], found[3];
    std::exception_ptr failed[3];
    const auto run = [&](size_t which, const Context& context) {
      return detect_all(models[which % 2], walk, 100 * which, context);
    };
    for (size_t which = 0; which < 3; ++which) alone[which] = run(which, cuda_context());
    std::vector<std::thread> threads;
    for (size_t which = 0; which < 3; ++which) {
      threads.emplace_back([&, which] {
        try {
          const Stream stream(Device::cuda());
          found[which] = run(which, cuda_context(stream.device()));
        } catch (...) {
          failed[which] = std::current_exception();
        }
      });
    }
    for (std::thread& thread : threads) thread.join();
    for (size_t which = 0; which < 3; ++which) {
      if (failed[which]) std::rethrow_exception(failed[which]);
      CHECK(found[which] == alone[which]);
    }
  }
}

TEST_CASE("large copies and clearing keep the order of their stream") {
  const Stream stream(Device::cuda());
  constexpr size_t kCount = size_t{3} << 20;
  std::vector<uint32_t> values(kCount);
  for (size_t i = 0; i < kCount; ++i) values[i] = static_cast<uint32_t>(hash64(2, 3, i));
  Buffer<uint32_t> there(stream.device(), kCount);
  for (int turn = 0; turn < 4; ++turn) {
    there.set_zero();
    CHECK(there.to_vector() == std::vector<uint32_t>(kCount, 0));
    there.upload(values);
    CHECK(there.to_vector() == values);
  }
}

TEST_CASE("large copies of two streams do not get into each other") {
  const Stream first(Device::cuda()), second(Device::cuda());
  constexpr size_t kCount = size_t{3} << 20;
  std::vector<uint32_t> sent(kCount), other(kCount);
  for (size_t i = 0; i < kCount; ++i) {
    sent[i] = static_cast<uint32_t>(hash64(4, 5, i));
    other[i] = ~sent[i];
  }
  const Buffer<uint32_t> there(second.device(), std::span<const uint32_t>(other));
  CHECK(there.to_vector() == other);
  Buffer<uint8_t> work(first.device(), size_t{256} << 20);
  Buffer<uint32_t> target(first.device(), kCount);
  for (int turn = 0; turn < 4; ++turn) {
    // The upload waits behind this for so long that the download comes before it.
    for (int i = 0; i < 300; ++i) work.set_zero();
    target.upload(sent);
    CHECK(there.to_vector() == other);
    CHECK(target.to_vector() == sent);
  }
}

}  // namespace
}  // namespace larch
