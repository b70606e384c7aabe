// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/voxels/samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <map>
#include <numeric>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/data/volume.h"
#include "larch/learning/lowest_hash.h"

namespace larch::voxels {
namespace {

constexpr auto kIgnored = static_cast<uint8_t>(VoxelClass::kIgnored);
constexpr auto kPositive = static_cast<uint8_t>(VoxelClass::kPositive);

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// Returns the least or the greatest value of each voxel and its neighbours along the axes.
template <class Pick>
LabelVolume spread(const LabelVolume& values, int threads, const Pick& pick) {
  LabelVolume out = LabelVolume::unfilled(values.grid());
  const Vec3i size = values.size();
  const int64_t row = size.x, plane = row * size.y;
  parallel_for(threads, size.z, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * plane; i < end * plane; ++i) {
      const int64_t x = i % row, y = i / row % size.y, z = i / plane;
      int32_t value = values[i];
      if (x > 0) value = pick(value, values[i - 1]);
      if (x + 1 < size.x) value = pick(value, values[i + 1]);
      if (y > 0) value = pick(value, values[i - row]);
      if (y + 1 < size.y) value = pick(value, values[i + row]);
      if (z > 0) value = pick(value, values[i - plane]);
      if (z + 1 < size.z) value = pick(value, values[i + plane]);
      out[i] = value;
    }
  });
  return out;
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

VolumeLayouts layouts_of_volumes(std::span<const Vec3i> sizes,
                                 std::span<const image::ChannelSpec> channels, const Vec3i& pad) {
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

}  // namespace

std::vector<VolumeView<const int16_t>> TrainingVolume::views() const {
  std::vector<VolumeView<const int16_t>> all{voxels.view()};
  for (const Volume<int16_t>& component : further) all.push_back(component.view());
  return all;
}

std::vector<Volume<int16_t>> TrainingVolume::components() const {
  std::vector<Volume<int16_t>> all{voxels};
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

Volume<uint8_t> near_boundary(const LabelVolume& values, int border, int threads) {
  LabelVolume low = values, high = values;
  for (int32_t& value : low) {
    if (value == kUnlabelled) value = INT32_MAX;
  }
  for (int step = 0; step < border; ++step) {
    low = spread(low, threads, [](int32_t a, int32_t b) { return std::min(a, b); });
    high = spread(high, threads, [](int32_t a, int32_t b) { return std::max(a, b); });
  }
  Volume<uint8_t> near(values.grid());
  for (int64_t i = 0; i < near.voxels(); ++i) near[i] = low[i] != high[i] ? 1 : 0;
  return near;
}

VolumeSplit hold_out(const std::vector<TrainingVolume>& volumes, double fraction, uint64_t seed) {
  constexpr uint64_t kStream = 0x686f6c64;  // "hold"
  std::map<std::string, size_t> first;
  std::vector<std::vector<size_t>> members(volumes.size());
  for (size_t v = 0; v < volumes.size(); ++v) {
    const std::string& group = volumes[v].group;
    members[group.empty() ? v : first.emplace(group, v).first->second].push_back(v);
  }
  std::vector<std::pair<uint64_t, size_t>> keyed;
  for (size_t v = 0; v < members.size(); ++v) {
    if (!members[v].empty()) keyed.emplace_back(hash64(seed, kStream, v), v);
  }
  std::ranges::sort(keyed);
  const auto wanted =
      static_cast<size_t>(std::llround(fraction * static_cast<double>(volumes.size())));
  VolumeSplit split;
  for (size_t k = 0; k < keyed.size(); ++k) {
    const bool held = split.held_out.size() < wanted && k + 1 < keyed.size();
    std::vector<size_t>& part = held ? split.held_out : split.train;
    const std::vector<size_t>& group = members[keyed[k].second];
    part.insert(part.end(), group.begin(), group.end());
  }
  std::ranges::sort(split.train);
  std::ranges::sort(split.held_out);
  return split;
}

std::string digest_of(const TrainingVolume& volume) {
  Sha256 sha;
  add_to_digest(volume.voxels, sha);
  for (const Volume<int16_t>& component : volume.further) add_to_digest(component, sha);
  if (!volume.labels.empty()) add_to_digest(volume.labels, sha);
  sha.update(volume.classes.data(), static_cast<size_t>(volume.classes.voxels()));
  return hex(sha.digest());
}

Volume<uint8_t> voxel_classes(const LabelVolume& labels, const LabelConfig& config,
                              const Context& context) {
  LabelVolume inside(labels.grid());
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    const int label = labels[i];
    const bool is_used = label != kUnlabelled && !contains(config.ignore, label);
    inside[i] = !is_used                  ? kUnlabelled
                : config.positive.empty() ? label != 0
                                          : contains(config.positive, label);
  }
  auto classes = mapped<uint8_t>(
      inside, [](int32_t value) { return value == kUnlabelled ? kIgnored : value; });
  if (const int border = config.border_voxels.value_or(1); border > 0) {
    const Volume<uint8_t> near = near_boundary(inside, border, context.threads);
    for (int64_t i = 0; i < near.voxels(); ++i) {
      if (near[i] != 0) classes[i] = kIgnored;
    }
  }
  return classes;
}

TrainingVolume in_model_space(const std::string& name, std::span<const Volume<float>> images,
                              const LabelVolume& labels, const image::ModelSpace& space,
                              const Context& context) {
  require_on_grid("the image '" + name + "'", images[0].grid(), "its label map", labels.grid());
  TrainingVolume volume;
  volume.name = name;
  for (const Volume<float>& image : images) {
    volume.further.push_back(image::to_model_space(image, space, context, "'" + name + "'"));
  }
  volume.voxels = std::move(volume.further[0]);
  volume.further.erase(volume.further.begin());
  // The box around an oblique image has corners of which nothing is known.
  volume.labels = image::resample_labels(labels, volume.voxels.grid(), context, kUnlabelled);
  return volume;
}

TrainingVolume make_training_volume(const std::string& name, std::span<const Volume<float>> images,
                                    const LabelVolume& labels, const image::ModelSpace& space,
                                    const LabelConfig& config, const Context& context) {
  TrainingVolume volume = in_model_space(name, images, labels, space, context);
  const LabelVolume resampled = std::move(volume.labels);
  volume.labels = config.names.empty() ? LabelVolume{} : resampled;  // of the parts of the class
  volume.classes = voxel_classes(resampled, config, context);
  volume.digest = digest_of(volume);
  LabelConfig whole = config;
  whole.border_voxels = 0;
  volume.truth = voxel_classes(resampled, whole, context);
  return volume;
}

void sort_by_digest(std::vector<TrainingVolume>& volumes) {
  std::ranges::stable_sort(volumes, {}, &TrainingVolume::digest);
}

TrainingImages load_training_images(const std::vector<TrainingVolume>& volumes,
                                    std::span<const image::ChannelSpec> channels,
                                    image::Padding padding, const Vec3i& pad,
                                    const Context& context) {
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
    image::integrate(volumes[v].views(), channels, padding, images.layouts[v], images.data,
                     context);
  }
  return images;
}

SampleSet draw_samples(const std::vector<TrainingVolume>& volumes, std::span<const size_t> which,
                       const SampleConfig& config, uint64_t seed, int threads) {
  std::vector<Drawn> drawn(which.size());
  const std::array<size_t, 2> counts{static_cast<size_t>(config.negatives_per_volume),
                                     static_cast<size_t>(config.positives_per_volume)};
  parallel_for_each(threads, static_cast<int64_t>(which.size()), 1, [&](size_t k) {
    drawn[k] = draw(volumes[which[k]].classes, counts, seed, which[k]);
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

std::vector<uint32_t> range_samples(const SampleSet& samples, size_t count,
                                    const Context& context) {
  constexpr uint64_t kStream = 0x72616e6765;  // "range"
  std::vector<uint32_t> all(count);
  std::iota(all.begin(), all.end(), 0u);
  return learning::lowest_hashes(all, learning::kMaximumRanged, context.threads, [&](uint32_t i) {
    return hash64(context.seed, kStream, samples.id[i]);
  });
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

}  // namespace larch::voxels
