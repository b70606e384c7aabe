// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/features/steerable/steerable.h"

#include <iterator>

#include "larch/core/dispatch.h"
#include "larch/learning/response_source.h"

namespace larch::features {
namespace {

constexpr Dispatch<std::unique_ptr<learning::FeatureSource>(const SteerableResponse&, size_t,
                                                            const Device&)>
    kSource{"features::steerable_source", cpu::steerable_source,
            LARCH_CUDA_FN(cuda::steerable_source)};

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

namespace cpu {

std::unique_ptr<learning::FeatureSource> steerable_source(const SteerableResponse& response,
                                                          size_t columns, const Device&) {
  return std::make_unique<learning::ResponseSource<SteerableResponse>>(response, columns,
                                                                       "steerable feature");
}

}  // namespace cpu
}  // namespace larch::features
