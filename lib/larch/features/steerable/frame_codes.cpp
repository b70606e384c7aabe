// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/steerable/frame_codes.h"

#include <numeric>

#include "larch/core/random_math.h"
#include "larch/learning/lowest_hash.h"

namespace larch::features {
namespace {

constexpr uint64_t kRangeStream = 0x72616e67;
/// Images in memory together when the ranges of features are taken.
constexpr size_t kRangeImages = 16;

/// A source of the columns at frames of one or several images.
struct FrameSource {
  Buffer<SteerableFeature> pool;
  Buffer<SteerableFrame> frames;
  Buffer<SteerableImages> images;
  Buffer<uint32_t> image_of;
  std::unique_ptr<learning::FeatureSource> source;
};
FrameSource make_frame_source(const std::vector<SteerableFeature>& pool,
                              std::span<const SteerableFrame> frames,
                              std::span<const SteerableImages> images,
                              std::span<const uint32_t> image_of, const Device& device) {
  FrameSource s{Buffer<SteerableFeature>(device, std::span<const SteerableFeature>(pool)),
                Buffer<SteerableFrame>(device, frames), Buffer<SteerableImages>(device, images),
                Buffer<uint32_t>(device, image_of), nullptr};
  const SteerableResponse response{s.pool.data(), s.frames.data(), s.images.data(),
                                   image_of.empty() ? nullptr : s.image_of.data()};
  s.source = make_steerable_source(response, pool.size(), device);
  return s;
}

std::vector<uint32_t> counted(size_t count, size_t from = 0) {
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), static_cast<uint32_t>(from));
  return all;
}

}  // namespace

std::vector<learning::CodeMap> range_frames(const FramesOfImages& all,
                                            const std::vector<SteerableFeature>& pool,
                                            const Context& context) {
  std::vector<uint32_t> with_frames;
  for (size_t i = 0; i + 1 < all.first.size(); ++i) {
    if (all.first[i + 1] > all.first[i]) with_frames.push_back(static_cast<uint32_t>(i));
  }
  const auto hash = [&](uint32_t i) { return hash64(context.seed, kRangeStream, i); };
  const std::vector<uint32_t> chosen =
      learning::lowest_hashes(with_frames, kRangeImages, context.threads, hash);
  std::vector<ResidentImages> images;
  std::vector<SteerableImages> views;
  std::vector<SteerableFrame> frames;
  std::vector<uint32_t> image_of;
  for (const uint32_t i : chosen) {
    images.push_back(all.load(i));
    views.push_back(images.back().views);
    const std::vector<uint32_t> own = counted(all.first[i + 1] - all.first[i], all.first[i]);
    for (const uint32_t k : learning::lowest_hashes(own, learning::kMaximumRanged / chosen.size(),
                                                    context.threads, hash)) {
      frames.push_back(all.frames[k]);
      image_of.push_back(static_cast<uint32_t>(views.size() - 1));
    }
  }
  const FrameSource source = make_frame_source(pool, frames, views, image_of, context.device);
  return source.source->range(counted(frames.size()), context);
}

FrameCodes fill_frames(const FramesOfImages& all, const std::vector<SteerableFeature>& pool,
                       std::span<const learning::CodeMap> maps, const Context& context) {
  FrameCodes codes;
  std::vector<learning::StoredRow> rows;
  std::shared_ptr<const learning::PreparedColumns> prepared;
  for (size_t i = 0; i + 1 < all.first.size(); ++i) {
    const size_t count = all.first[i + 1] - all.first[i];
    if (count == 0) continue;
    const ResidentImages images = all.load(i);
    const FrameSource source = make_frame_source(pool, all.frames.subspan(all.first[i], count),
                                                 {&images.views, 1}, {}, context.device);
    if (!prepared) prepared = learning::prepare_all(*source.source, maps, context);
    codes.matrices.push_back(
        learning::fill_matrix(*source.source, *prepared, counted(count), context));
    const uint8_t* at = codes.matrices.back().codes.data();
    for (size_t k = 0; k < count; ++k) rows.push_back({at, count, k});
    context.throw_if_stopped("stopped; continue with --resume");
  }
  codes.rows =
      Buffer<learning::StoredRow>(context.device, std::span<const learning::StoredRow>(rows));
  codes.source = learning::make_stored_source(
      {codes.rows.data(), static_cast<uint32_t>(learning::block_width(context.device))},
      pool.size(), context.device);
  return codes;
}

}  // namespace larch::features
