// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <future>

#include <catch2/catch.hpp>

#include "larch/core/device.h"
#include "larch/dsa/mask_frames.h"
#include "larch/dsa/sequence.h"
#include "tests/parity/cuda_context.h"
#include "tests/parity/dsa_sequences.h"

// Whole sequences, subtracted on both devices, in one piece and in batches on their way.
namespace {

using namespace larch;
using namespace larch::dsa;
namespace on_both = larch::dsa::test;

SequenceMask mask_of(const on_both::Sequence& s, const DsaConfig& config, const Context& context) {
  MaskInput input;
  input.size = s.size;
  input.stored = {s.mask};
  input.table = make_sample_table(s.stored, config);
  input.region = s.region;
  return make_mask(input, config, context);
}

constexpr SequenceWants kAll{true, true, true, true};

SubtractedFrames subtracted(const on_both::Sequence& s, const DsaConfig& config,
                            const Context& context) {
  return subtract_frames(mask_of(s, config, context), s.frames, config, kAll, context);
}

/// A batch per frame. A second thread uploads one and downloads another while one is computed, in
/// queues of their own.
SubtractedFrames streamed(const on_both::Sequence& s, const DsaConfig& config,
                          const Context& on_device) {
  const Stream up(on_device.device), work(on_device.device), down(on_device.device);
  Context context = on_device;
  context.device = work.device();
  const SequenceMask mask = mask_of(s, config, context);
  const size_t pixels = s.mask.size();
  const auto count = static_cast<size_t>(s.count());
  std::vector<Buffer<uint16_t>> stored(count);
  std::vector<SubtractedBatch> batches(count);
  SubtractedFrames one, all;
  const auto upload = [&](size_t i) {
    if (i >= count) return;
    stored[i] = Buffer<uint16_t>(up.device(), std::span(s.frames).subspan(i * pixels, pixels));
    wait_for(up.device());
  };
  const auto take = [&](size_t i) {
    download(batches[i], one, down.device());
    const auto add = [](auto& to, const auto& from) {
      to.insert(to.end(), from.begin(), from.end());
    };
    add(all.difference, one.difference);
    add(all.validity, one.validity);
    add(all.field_px, one.field_px);
    add(all.shifted, one.shifted);
    add(all.uncorrected, one.uncorrected);
    add(all.vectors, one.vectors);
    add(all.shift, one.shift);
  };
  upload(0);
  for (size_t i = 0; i < count; ++i) {
    std::future<void> beside = std::async(std::launch::async, [&] {
      upload(i + 1);
      if (i > 0) take(i - 1);
    });
    batches[i] = subtract_on_device(mask, stored[i], config, kAll, context);
    wait_for(context.device);
    stored[i] = {};
    beside.get();
  }
  take(count - 1);
  return all;
}

void check_same(const SubtractedFrames& a, const SubtractedFrames& b) {
  CHECK(a.difference == b.difference);
  CHECK(a.validity == b.validity);
  CHECK(a.vectors == b.vectors);
  CHECK(a.shift == b.shift);
  CHECK(a.shifted == b.shifted);
  CHECK(a.uncorrected == b.uncorrected);
  const auto same = [](const Vec3f& x, const Vec3f& y) { return x == y; };
  CHECK(
      std::equal(a.field_px.begin(), a.field_px.end(), b.field_px.begin(), b.field_px.end(), same));
}

}  // namespace

TEST_CASE("sequences are subtracted alike on both devices, in one piece and as a stream",
          "[stream::wait_for]") {
  for (const on_both::Sequence& s : on_both::sequences()) {
    DsaConfig config;
    config.passes = "32/32";
    config.range = larch::test::sized(config.range, 2);
    INFO(s.name);
    const SubtractedFrames expected = subtracted(s, config, on_both::cpu_context());
    check_same(subtracted(s, config, larch::test::cuda_context()), expected);
    check_same(streamed(s, config, larch::test::cuda_context()), expected);
  }
}

TEST_CASE("frames of a mask are chosen and moved to each other alike on both devices",
          "[dsa::frame_scores]") {
  for (const on_both::Sequence& s : on_both::sequences()) {
    INFO(s.name);
    DsaConfig config;
    config.passes = "32/32";
    config.range = larch::test::sized(config.range, 2);
    MaskInput input;
    input.size = s.size;
    input.table = make_sample_table(s.stored, config);
    input.region = s.region;
    const auto chosen = [&](const Context& context) {
      return MaskCandidates(input, s.frames, context).best_of(s.mask, context);
    };
    CHECK(chosen(larch::test::cuda_context()) == chosen(on_both::cpu_context()));
    const size_t pixels = s.mask.size();
    input.stored = {std::span(s.frames).first(pixels), s.mask};
    const SequenceMask there = make_mask(input, config, larch::test::cuda_context());
    const SequenceMask here = make_mask(input, config, on_both::cpu_context());
    CHECK(there.samples.to_vector() == here.samples.to_vector());
    CHECK(there.values.to_vector() == here.values.to_vector());
  }
}
