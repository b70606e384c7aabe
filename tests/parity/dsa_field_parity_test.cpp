// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/random_math.h"
#include "larch/dsa/field/spline.h"
#include "larch/dsa/field/warp.h"
#include "larch/dsa/match/rigid_shift.h"
#include "larch/dsa/sequence.h"
#include "larch/dsa/similarity/frame_scores.h"
#include "tests/parity/cuda_context.h"
#include "tests/parity/dsa_sequences.h"

namespace larch::dsa {
namespace {

using larch::test::cuda_context;
using larch::test::sized;
using larch::test::small_tests;
using test::cpu_context;
using test::moving_pattern;
using test::name_of;
using test::prepare;
using test::Prepared;
using test::Sequence;
using test::sequences;

/// Bytes of trivially copyable values without padding.
template <class T>
std::vector<uint8_t> bytes_of(const std::vector<T>& values) {
  std::vector<uint8_t> bytes(values.size() * sizeof(T));
  if (!bytes.empty()) std::memcpy(bytes.data(), values.data(), bytes.size());
  return bytes;
}

std::vector<BlockGrid> grids() {
  return {make_block_grid({500, 310, 1}, {32, 32, 1}, {32, 32, 1}),
          make_block_grid({20, 300, 1}, {32, 32, 1}, {16, 16, 1}),
          make_block_grid({70, 60, 50}, {16, 16, 16}, {16, 16, 16})};
}

TEST_CASE("splines and their Jacobians are the same on both devices",
          "[dsa::spline_field][dsa::least_jacobians]") {
  constexpr size_t kFrames = 2;
  for (const BlockGrid& grid : grids()) {
    if (small_tests() && grid.image.x > 100) continue;
    std::vector<Vec3i> vectors;
    for (size_t i = 0; i < kFrames * static_cast<size_t>(grid.blocks()); ++i) {
      vectors.push_back({static_cast<int>(hash_below(7, 1, i, 600000)) - 300000,
                         static_cast<int>(hash_below(7, 2, i, 600000)) - 300000,
                         grid.image.z > 1 ? static_cast<int>(hash_below(7, 3, i, 600000)) : 0});
    }
    for (const BorderField border :
         {BorderField::kClamp, BorderField::kZero, BorderField::kLinear}) {
      const auto bytes = [&](const Context& context) {
        const Buffer<Vec3i> field = spline_field(grid, vectors, border, context);
        std::vector<uint8_t> all = bytes_of(field.to_vector());
        const auto least = bytes_of(least_jacobians(grid.image, field, context));
        all.insert(all.end(), least.begin(), least.end());
        return all;
      };
      CAPTURE(grid.blocks(), name_of(border));
      CHECK(bytes(cpu_context()) == bytes(cuda_context()));
    }
  }
}

struct Wanted {
  bool has_vectors = true, field = true;
};

/// All that subtract gives.
std::vector<uint8_t> subtracted(const Sequence& s, const BlockGrid& grid, const Wanted& wanted,
                                const DsaConfig& config, const Context& context) {
  const Device& device = context.device;
  const Prepared p = prepare(s, config, context);
  const Buffer<uint16_t> mask(device, s.mask), frames(device, s.frames);
  const SampleFrames mask_values = to_values(mask, s.size, p.table, context);
  const SampleFrames values = to_values(frames, s.size, p.table, context);
  const Buffer<uint8_t> region(device, s.region);
  std::vector<Vec3i> vectors;
  for (uint64_t i = 0; i < static_cast<uint64_t>(s.count() * grid.blocks()); ++i) {
    vectors.push_back({100000 + static_cast<int>(hash_below(1, 1, i, 30000)),
                       -60000 + static_cast<int>(hash_below(1, 2, i, 30000)),
                       grid.image.z > 1 ? static_cast<int>(hash_below(1, 6, i, 90000)) : 0});
    if (hash_below(1, 3, i, 6) == 0) vectors.back() = vectors.back() * -3;
  }
  const Buffer<Vec3i> on_device(device, vectors);
  SubtractImages images;
  images.mask_values = mask_values.values.data();
  images.mask_samples = p.mask.values.data();
  images.contrast_values = values.values.data();
  images.contrast_samples = p.frames.values.data();
  images.region = region.data();
  images.size = s.size;
  images.frames = s.count();
  const Subtracted out = subtract(images, grid, wanted.has_vectors ? on_device.data() : nullptr,
                                  p.table, config, {true, wanted.field}, context);
  std::vector<uint8_t> bytes = bytes_of(out.difference.to_vector());
  for (const auto& more : {out.validity.to_vector(), bytes_of(out.field_px.to_vector()),
                           bytes_of(out.figures.to_vector())}) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

TEST_CASE("frames are subtracted alike on both devices", "[dsa::subtract]") {
  for (const Sequence& s : sequences()) {
    const BlockGrid grid = make_block_grid(s.size, {64, 64, 1}, {32, 32, 1});
    for (const Warp warp : {Warp::kCubic, Warp::kLinear}) {
      for (const BorderField border :
           {BorderField::kClamp, BorderField::kZero, BorderField::kLinear}) {
        DsaConfig config;
        config.warp = warp;
        config.border_field = border;
        config.domain = warp == Warp::kLinear ? Domain::kLinear : Domain::kAuto;
        config.normalize = border == BorderField::kZero ? Normalize::kNone : Normalize::kMode;
        config.vessels = border == BorderField::kLinear ? Vessels::kBright : Vessels::kDark;
        const Wanted wanted{border != BorderField::kLinear || warp != Warp::kLinear,
                            warp != Warp::kLinear};
        CAPTURE(s.name, name_of(warp), name_of(border));
        CHECK(subtracted(s, grid, wanted, config, cpu_context()) ==
              subtracted(s, grid, wanted, config, cuda_context()));
      }
    }
  }
}

TEST_CASE("volumes are subtracted alike on both devices") {
  constexpr size_t kPixels = 37 * 29;
  Sequence volume = moving_pattern("volume", {37, 29, 1}, 12, 12);
  volume.size.z = 6;
  volume.mask.assign(volume.frames.begin(), volume.frames.begin() + 6 * kPixels);
  volume.frames.erase(volume.frames.begin(), volume.frames.begin() + 6 * kPixels);
  const BlockGrid grid = make_block_grid(volume.size, {16, 16, 4}, {16, 16, 2});
  const DsaConfig config = searched_config({}, /*is_volume=*/true);
  CHECK(subtracted(volume, grid, {}, config, cpu_context()) ==
        subtracted(volume, grid, {}, config, cuda_context()));
}

/// All that a sequence becomes in two passes.
std::vector<uint8_t> corrected(const Sequence& s, const DsaConfig& config, const Context& context) {
  MaskInput input{s.size, {}, make_sample_table(s.stored, config), s.region, {}};
  input.stored.push_back(s.mask);
  const SubtractedFrames out = subtract_frames(make_mask(input, config, context), s.frames, config,
                                               {true, true, true}, context);
  std::vector<uint8_t> bytes = bytes_of(out.difference);
  for (const auto& more :
       {out.validity, bytes_of(out.field_px), bytes_of(out.matches), bytes_of(out.vectors),
        bytes_of(out.shift), bytes_of(out.shifted), bytes_of(out.uncorrected)}) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

TEST_CASE("whole sequences are the same on both devices: passes, filled blocks, dense fields") {
  for (const Sequence& s : sequences()) {
    for (const DenseField dense : {DenseField::kBilinear, DenseField::kSpline}) {
      for (const BorderField border : {BorderField::kLinear, BorderField::kZero}) {
        const bool is_default = (dense == DenseField::kSpline) == (border == BorderField::kLinear);
        if (small_tests() &&
            (!is_default || (s.stored.bits != 8 && border == BorderField::kZero))) {
          continue;
        }
        DsaConfig config;
        config.passes = "48/32,32/16";
        config.range = sized(5, 1);
        config.dense_field = dense;
        config.border_field = border;
        CAPTURE(s.name, static_cast<int>(dense), name_of(border));
        CHECK(corrected(s, config, cpu_context()) == corrected(s, config, cuda_context()));
      }
    }
  }
}

TEST_CASE("translations of whole frames are the same on both devices",
          "[dsa::shrink][dsa::frame_scores]") {
  for (const Sequence& s : sequences()) {
    for (const SubPixel subpixel : {SubPixel::kGain, SubPixel::kLinear, SubPixel::kNone}) {
      for (const Border border : {Border::kValid, Border::kClamp}) {
        DsaConfig config;
        config.subpixel = subpixel;
        config.border = border;
        const auto shifts = [&](const Context& context) {
          const Prepared p = prepare(s, config, context);
          return rigid_shifts(p.mask.values.data(), p.mask_at_zero.values.data(), p.frames,
                              p.at_zero, p.table, config, context);
        };
        CAPTURE(s.name, name_of(subpixel), name_of(border));
        CHECK(shifts(cpu_context()) == shifts(cuda_context()));
      }
    }
  }
}

}  // namespace
}  // namespace larch::dsa
