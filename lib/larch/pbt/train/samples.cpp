// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/train/samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/data/volume_digest.h"
#include "larch/learning/lowest_hash.h"

namespace larch::pbt {
namespace {

constexpr auto kIgnored = static_cast<uint8_t>(VoxelClass::kIgnored);
constexpr auto kPositive = static_cast<uint8_t>(VoxelClass::kPositive);

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Steps along the axes to the nearest voxel of `inside` that is `value`, at most `most`: two
/// sweeps along each axis.
Volume<uint16_t> city_block_distance(const Volume<uint8_t>& inside, uint8_t value, int most,
                                     int threads) {
  Volume<uint16_t> distance(inside.grid());
  for (int64_t i = 0; i < inside.voxels(); ++i) {
    distance[i] = inside[i] == value ? uint16_t{0} : static_cast<uint16_t>(most);
  }
  const Vec3i size = inside.size();
  const int64_t plane = static_cast<int64_t>(size.x) * size.y;
  // Rows of `row` neighbours that are `stride` apart from the next row of their line.
  const auto relax = [&](int64_t first, int64_t stride, int64_t row, int steps) {
    for (const bool forward : {true, false}) {
      for (int step = 1; step < steps; ++step) {
        const int64_t to = first + (forward ? step : steps - 1 - step) * stride;
        const int64_t from = forward ? to - stride : to + stride;
        for (int64_t i = 0; i < row; ++i) {
          distance[to + i] =
              static_cast<uint16_t>(std::min<int>(distance[to + i], distance[from + i] + 1));
        }
      }
    }
  };
  parallel_for(threads, size.z, 1, [&](int64_t begin, int64_t end) {
    for (int64_t z = begin; z < end; ++z) {
      for (int y = 0; y < size.y; ++y) relax(z * plane + y * size.x, 1, 1, size.x);
      relax(z * plane, size.x, size.x, size.y);
    }
  });
  parallel_for(threads, size.y, 1, [&](int64_t begin, int64_t end) {
    for (int64_t y = begin; y < end; ++y) relax(y * size.x, plane, size.x, size.z);
  });
  return distance;
}

/// 1 where a voxel of the other class lies within `border` steps along the axes.
Volume<uint8_t> near_boundary(const Volume<uint8_t>& inside, int border, int threads) {
  Volume<uint8_t> near(inside.grid());
  for (const uint8_t value : {0, 1}) {
    const Volume<uint16_t> distance = city_block_distance(inside, value, border + 1, threads);
    for (int64_t i = 0; i < inside.voxels(); ++i) {
      if (inside[i] != value && distance[i] <= border) near[i] = 1;
    }
  }
  return near;
}

std::string digest_of(const Volume<int16_t>& voxels, const Volume<uint8_t>& classes) {
  Sha256 sha;
  add_to_digest(voxels, sha);
  sha.update(classes.data(), static_cast<size_t>(classes.voxels()));
  return hex(sha.digest());
}

/// Drawn voxels of a volume, ascending, and the mass of those of each class.
struct Drawn {
  std::vector<int64_t> voxels;
  uint64_t mass[2];
};

/// The `counts` voxels of lowest hash of either class (negative, positive). Only those below a hash
/// that surely suffices are kept and sorted.
Drawn draw(const Volume<uint8_t>& classes, const std::array<size_t, 2>& counts, uint64_t seed,
           uint64_t volume_rank) {
  std::array<size_t, 2> all;
  for (uint8_t c = 0; c < 2; ++c) {
    all[c] = static_cast<size_t>(std::count(classes.begin(), classes.end(), c));
  }
  std::vector<std::pair<uint64_t, int64_t>> keyed[2];
  const auto search = [&](const std::array<uint64_t, 2>& bounds) {
    for (auto& of_class : keyed) of_class.clear();
    for (int64_t i = 0; i < classes.voxels(); ++i) {
      if (classes[i] >= kIgnored) continue;
      const uint64_t key = hash64(seed, volume_rank, static_cast<uint64_t>(i));
      if (key <= bounds[classes[i]]) keyed[classes[i]].emplace_back(key, i);
    }
  };
  search({learning::likely_bound(counts[0], all[0]), learning::likely_bound(counts[1], all[1])});
  const auto too_few = [&](size_t c) { return keyed[c].size() < std::min(counts[c], all[c]); };
  if (too_few(0) || too_few(1)) search({UINT64_MAX, UINT64_MAX});
  Drawn drawn;
  std::vector<int64_t> of_class[2];
  for (size_t c = 0; c < 2; ++c) {
    of_class[c] = learning::lowest_of(std::move(keyed[c]), counts[c]);
    const auto taken = static_cast<double>(of_class[c].size());
    const double ratio = of_class[c].empty() ? 0 : static_cast<double>(all[c]) / taken;
    drawn.mass[c] = static_cast<uint64_t>(std::round(ratio * 4294967296.0));
  }
  drawn.voxels.resize(of_class[0].size() + of_class[1].size());
  std::merge(of_class[0].begin(), of_class[0].end(), of_class[1].begin(), of_class[1].end(),
             drawn.voxels.begin());
  return drawn;
}

}  // namespace

Volume<uint8_t> voxel_classes(const LabelVolume& labels, const LabelConfig& config,
                              const Context& context) {
  Volume<uint8_t> inside(labels.grid());
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    const int label = labels[i];
    inside[i] = config.positive.empty() ? label != 0 : contains(config.positive, label);
  }
  Volume<uint8_t> classes = inside;
  if (config.border_voxels > 0) {
    const Volume<uint8_t> near = near_boundary(inside, config.border_voxels, context.threads);
    for (int64_t i = 0; i < near.voxels(); ++i) {
      if (near[i] != 0) classes[i] = kIgnored;
    }
  }
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    if (contains(config.ignore, labels[i])) classes[i] = kIgnored;
  }
  return classes;
}

TrainingVolume make_training_volume(const std::string& name, const Volume<float>& image,
                                    const LabelVolume& labels, const image::ModelSpace& space,
                                    const LabelConfig& config, const Context& context) {
  require_on_grid("the image '" + name + "'", image.grid(), "its label map", labels.grid(), 1e-2);
  TrainingVolume volume;
  volume.name = name;
  volume.voxels = image::to_model_space(image, space, context, "'" + name + "'");
  const LabelVolume resampled = image::resample_labels(labels, volume.voxels.grid(), context);
  volume.classes = voxel_classes(resampled, config, context);
  volume.digest = digest_of(volume.voxels, volume.classes);
  LabelConfig whole = config;
  whole.border_voxels = 0;
  volume.truth = voxel_classes(resampled, whole, context);
  return volume;
}

void sort_by_digest(std::vector<TrainingVolume>& volumes) {
  std::stable_sort(volumes.begin(), volumes.end(),
                   [](const auto& a, const auto& b) { return a.digest < b.digest; });
}

VolumeLayouts layouts_of_volumes(std::span<const Vec3i> sizes,
                                 std::span<const image::ChannelSpec> channels, int pad) {
  VolumeLayouts all;
  for (const Vec3i& size : sizes) all.layouts.push_back(image::layouts_for(size, channels, pad));
  for (size_t c = 0; c < channels.size(); ++c) {
    Vec3i largest{0, 0, 0};
    for (const auto& layout : all.layouts) {
      largest.x = std::max(largest.x, layout[c].stride_size.x);
      largest.y = std::max(largest.y, layout[c].stride_size.y);
    }
    for (auto& layout : all.layouts) {
      layout[c].stride_size.x = largest.x;
      layout[c].stride_size.y = largest.y;
      layout[c].offset = all.elements;
      all.elements += layout[c].elements();
    }
  }
  return all;
}

TrainingImages load_training_images(const std::vector<TrainingVolume>& volumes,
                                    std::span<const image::ChannelSpec> channels,
                                    image::Padding padding, int pad, const Context& context) {
  TrainingImages images;
  images.channels.assign(channels.begin(), channels.end());
  std::vector<Vec3i> sizes;
  sizes.reserve(volumes.size());
  for (const TrainingVolume& volume : volumes) sizes.push_back(volume.voxels.size());
  VolumeLayouts all = layouts_of_volumes(sizes, channels, pad);
  images.layouts = std::move(all.layouts);
  images.data = Buffer<uint32_t>(context.device, static_cast<size_t>(all.elements));
  images.data.set_zero();  // common strides leave gaps that the sums along z run over
  for (size_t v = 0; v < volumes.size(); ++v) {
    image::integrate(volumes[v].voxels.view(), channels, padding, images.layouts[v], images.data,
                     context);
  }
  return images;
}

SampleSet draw_samples(const std::vector<TrainingVolume>& volumes, std::span<const size_t> which,
                       const SampleConfig& config, uint64_t seed, int threads) {
  std::vector<Drawn> drawn(which.size());
  const std::array<size_t, 2> counts{static_cast<size_t>(config.negatives_per_volume),
                                     static_cast<size_t>(config.positives_per_volume)};
  parallel_for(threads, static_cast<int64_t>(which.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
      drawn[k] = draw(volumes[which[k]].classes, counts, seed, which[k]);
    }
  });
  SampleSet set;
  for (size_t k = 0; k < which.size(); ++k) {
    const size_t v = which[k];
    for (const int64_t voxel : drawn[k].voxels) {
      const bool is_positive = volumes[v].classes[voxel] == kPositive;
      set.add(v, voxel, is_positive, drawn[k].mass[is_positive ? 1 : 0]);
    }
  }
  return set;
}

features::SamplePlaces place_samples(SampleSet& samples, const std::vector<TrainingVolume>& volumes,
                                     const TrainingImages& images) {
  std::vector<int64_t> bases(samples.size() * images.channels.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t v = samples.volume(i);
    const Vec3i at = volumes[v].voxels.grid().voxel(samples.voxel(i));
    for (size_t c = 0; c < images.channels.size(); ++c) {
      bases[c * samples.size() + i] = images.layouts[v][c].base(at);
    }
  }
  samples.bases = Buffer<int64_t>(images.data.device(), std::span<const int64_t>(bases));
  return {images.data.data(), samples.bases.data(), samples.size()};
}

}  // namespace larch::pbt
