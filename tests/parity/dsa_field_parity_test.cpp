// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <cstring>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
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
          make_block_grid({20, 300, 1}, {32, 32, 1}, {16, 16, 1})};
}

TEST_CASE("splines and their Jacobians are the same on both devices",
          "[dsa::spline_field][dsa::least_jacobians]") {
  constexpr size_t kFrames = 2;
  for (const BlockGrid& grid : grids()) {
    if (small_tests() && grid.image.x > 100) continue;
    std::vector<Vec3i> vectors;
    for (size_t i = 0; i < kFrames * static_cast<size_t>(grid.blocks()); ++i) {
      vectors.push_back({static_cast<int>(hash_below(7, 1, i, 600000)) - 300000,
                         static_cast<int>(hash_below(7, 2, i, 600000)) - 300000, 0});
    }
    const auto bytes = [&](const Context& context) {
      const Buffer<Vec3i> field = spline_field(grid, vectors, context);
      std::vector<uint8_t> all = bytes_of(field.to_vector());
      const auto least = bytes_of(least_jacobians(grid.image, field, context));
      all.insert(all.end(), least.begin(), least.end());
      return all;
    };
    CAPTURE(grid.blocks());
    CHECK(bytes(cpu_context()) == bytes(cuda_context()));
  }
}

struct Wanted {
  bool has_vectors = true, field = true;
  BorderField border = BorderField::kLinear;
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
                       -60000 + static_cast<int>(hash_below(1, 2, i, 30000)), 0});
    if (hash_below(1, 3, i, 6) == 0) vectors.back() = vectors.back() * -3;
  }
  const Buffer<Vec3i> on_device(device, vectors);
  const auto total = static_cast<size_t>(frames.size());
  Buffer<int16_t> difference(device, total);
  Buffer<uint8_t> validity(device, total);
  Buffer<Vec3f> field_px(device, wanted.field ? total : 0);
  Buffer<SubtractFigures> figures(device, static_cast<size_t>(s.count()));
  SubtractJob job;
  job.mask_values = mask_values.values.data();
  job.mask_samples = p.mask.values.data();
  job.contrast_values = values.values.data();
  job.contrast_samples = p.frames.values.data();
  job.region = region.data();
  job.size = s.size;
  job.frames = s.count();
  job.vectors = wanted.has_vectors ? on_device.data() : nullptr;
  job.border = wanted.border;
  job.out = difference.data();
  job.validity = validity.data();
  job.field_px = field_px.data();
  job.figures = figures.data();
  subtract(job, grid, p.table, config, context);
  std::vector<uint8_t> bytes = bytes_of(difference.to_vector());
  for (const auto& more :
       {validity.to_vector(), bytes_of(field_px.to_vector()), bytes_of(figures.to_vector())}) {
    bytes.insert(bytes.end(), more.begin(), more.end());
  }
  return bytes;
}

TEST_CASE("frames are subtracted alike on both devices", "[dsa::subtract]") {
  for (const Sequence& s : sequences()) {
    const BlockGrid grid = make_block_grid(s.size, {64, 64, 1}, {32, 32, 1});
    for (const BorderField border :
         {BorderField::kClamp, BorderField::kZero, BorderField::kLinear}) {
      DsaConfig config;
      config.literal = border == BorderField::kZero;
      config.domain = config.literal ? Domain::kLinear : Domain::kAuto;
      config.normalize = config.literal ? Normalize::kNone : Normalize::kMode;
      config.vessels = border == BorderField::kLinear ? Vessels::kBright : Vessels::kDark;
      CAPTURE(s.name, static_cast<int>(border));
      for (const bool field : {false, true}) {
        const Wanted wanted{border != BorderField::kClamp || field, field, border};
        CHECK(subtracted(s, grid, wanted, config, cpu_context()) ==
              subtracted(s, grid, wanted, config, cuda_context()));
      }
    }
  }
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
    for (const bool literal : {false, true}) {
      DsaConfig config;
      config.literal = literal;
      config.passes = literal ? "48/32" : "48/32,32/16";
      config.range = sized(5, 1);
      CAPTURE(s.name, literal);
      CHECK(corrected(s, config, cpu_context()) == corrected(s, config, cuda_context()));
    }
  }
}

TEST_CASE("translations of whole frames are the same on both devices",
          "[dsa::shrink][dsa::frame_scores]") {
  for (const Sequence& s : sequences()) {
    for (const bool literal : {false, true}) {
      DsaConfig config;
      config.literal = literal;
      const auto shifts = [&](const Context& context) {
        const Prepared p = prepare(s, config, context);
        return rigid_shifts(p.mask.values.data(), p.mask_at_zero.values.data(), p.frames, p.at_zero,
                            p.table, config, context);
      };
      CAPTURE(s.name, literal);
      CHECK(shifts(cpu_context()) == shifts(cuda_context()));
    }
  }
}

}  // namespace
}  // namespace larch::dsa
