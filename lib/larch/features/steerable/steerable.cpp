// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/steerable/steerable.h"

#include <iterator>
#include <numeric>

#include "larch/core/dispatch.h"
#include "larch/core/random_math.h"
#include "larch/learning/lowest_hash.h"
#include "larch/learning/response_source.h"

namespace larch::features {
namespace {

std::vector<SteerableType> types_of(SteerableSet set) {
  std::vector<SteerableType> types;
  const auto add = [&](SteerableType first, SteerableType last) {
    for (int t = static_cast<int>(first); t <= static_cast<int>(last); ++t) {
      types.push_back(static_cast<SteerableType>(t));
    }
  };
  if (set == SteerableSet::kBase9) {
    add(SteerableType::kIntensity, SteerableType::kAlongZ);
  } else {
    add(SteerableType::kIntensity, SteerableType::kIntensity);
    add(SteerableType::kGradientX, SteerableType::kGradientZ);
    add(SteerableType::kRootI, SteerableType::kLogAngleD);
  }
  return types;
}

}  // namespace

namespace cpu {

std::unique_ptr<learning::FeatureSource> steerable_source(const SteerableResponse& response,
                                                          size_t columns, const Device&) {
  return std::make_unique<learning::ResponseSource<SteerableResponse>>(response, columns,
                                                                       "steerable feature");
}

}  // namespace cpu

namespace {

constexpr Dispatch<std::unique_ptr<learning::FeatureSource>(const SteerableResponse&, size_t,
                                                            const Device&)>
    kSource{"features::steerable_source", cpu::steerable_source,
            LARCH_CUDA_FN(cuda::steerable_source)};

}  // namespace

const char* to_string(SteerableType type) {
  constexpr const char* kNames[] = {
      "intensity",   "magnitude", "cosine",  "gradient-x",     "gradient-y",
      "gradient-z",  "along-x",   "along-y", "along-z",        "root-i",
      "cube-root-i", "square-i",  "cube-i",  "log-i",          "square-magnitude",
      "along-d",     "abs-d",     "root-d",  "square-d",       "cube-d",
      "log-d",       "across-d",  "angle-d", "square-angle-d", "cube-angle-d",
      "log-angle-d"};
  const auto i = static_cast<size_t>(type);
  return i < std::size(kNames) ? kNames[i] : "unknown";
}

std::vector<SteerableFeature> steerable_pool(SteerableSet set, int points) {
  std::vector<SteerableFeature> pool;
  const std::vector<SteerableType> types = types_of(set);
  for (uint8_t level = 0; level < kSteerableLevels; ++level)
    for (const SteerableType type : types)
      for (int point = 0; point < points; ++point)
        pool.push_back({type, level, static_cast<uint8_t>(point)});
  return pool;
}

SteerableImages steerable_images(const std::vector<image::LevelImage>& levels, int level,
                                 int unit) {
  SteerableImages images;
  for (int k = 0; k < kSteerableLevels; ++k) {
    const image::LevelImage& image = levels.at(static_cast<size_t>(level) + static_cast<size_t>(k));
    images.texels[k] = image.texels.data();
    images.sizes[k] = image.size;
  }
  images.unit = static_cast<float>(unit);
  return images;
}

std::unique_ptr<learning::FeatureSource> make_steerable_source(const SteerableResponse& response,
                                                               size_t columns,
                                                               const Device& device) {
  return kSource(device, response, columns, device);
}

namespace {

constexpr uint64_t kRangeStream = 0x72616e67;
/// Images that the ranges of features are taken from.
constexpr size_t kRangeImages = 16;

/// A source of the columns at frames of an image.
struct FrameSource {
  Buffer<SteerableFeature> pool;
  Buffer<SteerableFrame> frames;
  std::unique_ptr<learning::FeatureSource> source;
};
FrameSource make_frame_source(const std::vector<SteerableFeature>& pool,
                              std::span<const SteerableFrame> frames, const SteerableImages& image,
                              const Device& device) {
  FrameSource s{{device, pool}, {device, frames}, {}};
  s.source = make_steerable_source({s.pool.data(), s.frames.data(), image}, pool.size(), device);
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
  std::vector<std::vector<uint32_t>> drawn;
  size_t count = 0;
  for (const uint32_t i : chosen) {
    const std::vector<uint32_t> own = counted(all.first[i + 1] - all.first[i], all.first[i]);
    drawn.push_back(learning::lowest_hashes(own, learning::kMaximumRanged / chosen.size(),
                                            context.threads, hash));
    count += drawn.back().size();
  }
  learning::ColumnEnds ends(pool.size(), count);
  for (size_t k = 0; k < chosen.size(); ++k) {
    const ResidentImages images = all.load(chosen[k]);
    std::vector<SteerableFrame> frames;
    for (const uint32_t f : drawn[k]) frames.push_back(all.frames[f]);
    const FrameSource source = make_frame_source(pool, frames, images.views, context.device);
    source.source->add_ends(counted(frames.size()), ends, context);
  }
  return ends.maps();
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
                                                 images.views, context.device);
    if (!prepared) prepared = learning::prepare_all(*source.source, maps, context);
    codes.matrices.push_back(
        learning::fill_matrix(*source.source, *prepared, counted(count), context));
    const uint8_t* at = codes.matrices.back().codes.data();
    for (size_t k = 0; k < count; ++k) rows.push_back({at, count, k});
    context.throw_if_stopped("stopped; continue with --resume");
  }
  codes.rows = {context.device, rows};
  codes.source = learning::make_stored_source(
      {codes.rows.data(), static_cast<uint32_t>(learning::block_width(context.device))},
      pool.size(), context.device);
  return codes;
}

}  // namespace larch::features
