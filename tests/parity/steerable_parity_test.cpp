// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/features/steerable/steerable.h"
#include "larch/image/levels.h"
#include "larch/learning/stored_codes.h"
#include "tests/parity/cuda_context.h"
#include "tests/unit/pbt/pbt_fixtures.h"

namespace larch {
namespace {

using test::cuda_context;
using test::sized;

TEST_CASE("images of a pyramid and their texels are the same bytes on both devices",
          "[image::make_levels]") {
  const Context cpu = fixtures::context_of(2), gpu = cuda_context();
  for (const Vec3i size : {Vec3i{70, 33, 18}, Vec3i{1, 1, 1}, Vec3i{1, 40, 9}, Vec3i{64, 2, 5}}) {
    const Volume<int16_t> v = fixtures::noise_volume(size, 3, -8191, 24574);
    for (const int first_texels : {0, 2, 3}) {
      const auto a = image::make_levels(v.view(), 2, first_texels, cpu);
      const auto b = image::make_levels(v.view(), 2, first_texels, gpu);
      REQUIRE(a.size() == b.size());
      for (size_t l = 0; l < a.size(); ++l) {
        CHECK(a[l].size == b[l].size);
        CHECK(a[l].voxels.to_vector() == b[l].voxels.to_vector());
        const auto p = a[l].texels.to_vector(), q = b[l].texels.to_vector();
        REQUIRE(p.size() == q.size());
        const size_t used = p.empty() ? 0 : p.size() - 1;  // one more is spare
        CHECK(std::memcmp(p.data(), q.data(), used * sizeof(image::Texel)) == 0);
      }
    }
  }
}

/// Boxes of an image as one device has them, and the columns of a set at them.
struct Bench {
  Bench(features::SteerableSet set, size_t boxes, const Context& context)
      : pool(features::steerable_pool(set)), columns(context.device, pool) {
    const auto v = fixtures::noise_volume({31, 20, 26}, 4, -500, 1500);
    pyramid = image::make_levels(v.view(), features::kSteerableLevels - 1, 0, context);
    std::vector<features::SteerableFrame> frame;
    for (uint64_t i = 0; i < boxes; ++i) {
      const auto drawn = [&](uint64_t k) { return hash_unit(1, k, i); };
      // Some boxes lie partly outside, and some wholly.
      const Pose pose{{70 * drawn(0) - 5, 60 * drawn(1) - 5, 60 * drawn(2) - 5},
                      from_rotation_vector({2 * drawn(3), 2 * drawn(4) - 1, drawn(5)}),
                      {2 + 40 * drawn(6), 2 + 30 * drawn(7), 2 + 20 * drawn(8)}};
      frame.push_back(features::frame_of(pose, image::level_scale(2, 0)));
    }
    frames = {context.device, std::span<const features::SteerableFrame>(frame)};
    source = features::make_steerable_source(
        {columns.data(), frames.data(), features::steerable_images(pyramid, 0, 1023)}, pool.size(),
        context.device);
    for (uint32_t i = 0; i < boxes; ++i) index.push_back(i * 7 % static_cast<uint32_t>(boxes));
    maps = source->range(index, context);
  }

  learning::FeatureMatrix matrix(std::span<const uint32_t> samples, const Context& context) const {
    return learning::fill_matrix(*source, *learning::prepare_all(*source, maps, context), samples,
                                 context);
  }

  std::vector<features::SteerableFeature> pool;
  Buffer<features::SteerableFeature> columns;
  std::vector<image::LevelImage> pyramid;
  Buffer<features::SteerableFrame> frames;
  std::unique_ptr<learning::FeatureSource> source;
  std::vector<uint32_t> index;
  std::vector<learning::CodeMap> maps;
};

/// The codes of a matrix in one order for all devices, whose blocks differ in width.
std::vector<uint8_t> codes_of(const learning::FeatureMatrix& matrix, size_t columns) {
  const std::vector<uint8_t> all = matrix.codes.to_vector();
  std::vector<uint8_t> codes;
  for (size_t c = 0; c < columns; ++c)
    for (size_t row = 0; row < matrix.rows; ++row) {
      codes.push_back(
          all[(c / matrix.width * matrix.rows + row) * matrix.width + c % matrix.width]);
    }
  return codes;
}

bool same_maps(const std::vector<learning::CodeMap>& a, const std::vector<learning::CodeMap>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), learning::same_map);
}

TEST_CASE("steerable features at boxes are the same on both devices",
          "[features::steerable_source]") {
  const Context cpu = fixtures::context_of(2), gpu = cuda_context();
  for (const auto set : {features::SteerableSet::kBase9, features::SteerableSet::kSeed21}) {
    const size_t boxes = sized<size_t>(500, 20);
    const Bench a(set, boxes, cpu), b(set, boxes, gpu);
    CHECK(same_maps(a.maps, b.maps));
    CHECK(codes_of(a.matrix(a.index, cpu), a.pool.size()) ==
          codes_of(b.matrix(b.index, gpu), b.pool.size()));
  }
}

/// The codes of a source of stored columns, at samples whose rows are of two matrices in turns.
struct StoredResult {
  std::vector<learning::CodeMap> maps;
  std::vector<uint8_t> codes;
};
StoredResult through_store(const Bench& bench, const Context& context) {
  const std::span<const uint32_t> index = bench.index;
  const size_t half = index.size() / 2;
  const learning::FeatureMatrix first = bench.matrix(index.first(half), context),
                                second = bench.matrix(index.subspan(half), context);
  std::vector<learning::StoredRow> rows;
  for (size_t i = 0; i < half; ++i) {
    rows.push_back({second.codes.data(), second.rows, i});
    rows.push_back({first.codes.data(), first.rows, i});
  }
  const Buffer<learning::StoredRow> there(context.device,
                                          std::span<const learning::StoredRow>(rows));
  const size_t columns = bench.pool.size();
  const auto source = learning::make_stored_source(
      {there.data(), static_cast<uint32_t>(first.width)}, columns, context.device);
  std::vector<uint32_t> all(rows.size());
  std::iota(all.begin(), all.end(), 0U);
  const auto prepared =
      learning::prepare_all(*source, learning::maps_of_codes(bench.maps), context);
  return {source->range(all, context),
          codes_of(learning::fill_matrix(*source, *prepared, all, context), columns)};
}

TEST_CASE("stored codes are read the same way on both devices", "[learning::stored_source]") {
  const Context cpu = fixtures::context_of(2), gpu = cuda_context();
  const size_t boxes = sized<size_t>(500, 20);
  const Bench a(features::SteerableSet::kBase9, boxes, cpu),
      b(features::SteerableSet::kBase9, boxes, gpu);
  const StoredResult p = through_store(a, cpu), q = through_store(b, gpu);
  CHECK(same_maps(p.maps, q.maps));
  CHECK(p.codes == q.codes);
}

}  // namespace
}  // namespace larch
