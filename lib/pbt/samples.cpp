// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pbt/samples.h"

#include <algorithm>
#include <cmath>
#include <cstdlib>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"

namespace larch::pbt {
namespace {

constexpr auto kIgnored = static_cast<uint8_t>(VoxelClass::kIgnored);
constexpr auto kPositive = static_cast<uint8_t>(VoxelClass::kPositive);

bool contains(const std::vector<int>& values, int value) {
  return std::find(values.begin(), values.end(), value) != values.end();
}

/// True when a voxel of the other class lies within `border` steps along the axes of `at`.
bool near_boundary(const Volume<uint8_t>& inside, const Vec3i& at, int border) {
  const uint8_t here = inside(at);
  for (int dz = -border; dz <= border; ++dz) {
    for (int dy = -border + std::abs(dz); dy <= border - std::abs(dz); ++dy) {
      const int left = border - std::abs(dz) - std::abs(dy);
      for (int dx = -left; dx <= left; ++dx) {
        const Vec3i other = at + Vec3i{dx, dy, dz};
        if (inside.grid().contains(other) && inside(other) != here) return true;
      }
    }
  }
  return false;
}

std::string digest_of(const Volume<int16_t>& voxels, const Volume<uint8_t>& classes) {
  Sha256 sha;
  const Grid& g = voxels.grid();
  sha.update(&g.size, sizeof g.size);
  sha.update(&g.spacing_mm, sizeof g.spacing_mm);
  sha.update(&g.origin_mm, sizeof g.origin_mm);
  sha.update(&g.direction, sizeof g.direction);
  sha.update(voxels.data(), static_cast<size_t>(voxels.voxels()) * sizeof(int16_t));
  sha.update(classes.data(), static_cast<size_t>(classes.voxels()));
  return hex(sha.digest());
}

/// The voxels of one class with the lowest hash, ascending by index, and their common mass. Of a
/// large class only those below a hash that surely suffices are sorted.
std::vector<int64_t> draw(const Volume<uint8_t>& classes, uint8_t wanted, size_t count,
                          uint64_t seed, uint64_t volume_rank, uint64_t* mass) {
  const auto all = static_cast<size_t>(std::count(classes.begin(), classes.end(), wanted));
  const auto keyed_below = [&](uint64_t limit) {
    std::vector<std::pair<uint64_t, int64_t>> keyed;
    for (int64_t i = 0; i < classes.voxels(); ++i) {
      if (classes[i] != wanted) continue;
      const uint64_t key = hash64(seed, volume_rank, static_cast<uint64_t>(i));
      if (key <= limit) keyed.emplace_back(key, i);
    }
    return keyed;
  };
  const double expected = static_cast<double>(count);
  const double share = (expected + 8 * std::sqrt(expected) + 32) / static_cast<double>(all + 1);
  auto keyed = keyed_below(share < 1 ? static_cast<uint64_t>(share * 0x1p64) : UINT64_MAX);
  if (keyed.size() < std::min(count, all)) keyed = keyed_below(UINT64_MAX);
  if (all > count) {
    std::nth_element(keyed.begin(), keyed.begin() + static_cast<std::ptrdiff_t>(count),
                     keyed.end());
    keyed.resize(count);
  }
  std::vector<int64_t> drawn;
  drawn.reserve(keyed.size());
  for (const auto& [key, voxel] : keyed) drawn.push_back(voxel);
  std::sort(drawn.begin(), drawn.end());
  const double ratio =
      drawn.empty() ? 0 : static_cast<double>(all) / static_cast<double>(drawn.size());
  *mass = static_cast<uint64_t>(std::round(ratio * 4294967296.0));
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
  Volume<uint8_t> classes(labels.grid());
  parallel_for(context.threads, labels.size().z, 1, [&](int64_t begin, int64_t end) {
    for (int z = static_cast<int>(begin); z < end; ++z) {
      for (int y = 0; y < labels.size().y; ++y) {
        for (int x = 0; x < labels.size().x; ++x) {
          const Vec3i at{x, y, z};
          const bool ignored =
              contains(config.ignore, labels(at)) ||
              (config.border_voxels > 0 && near_boundary(inside, at, config.border_voxels));
          classes(at) = ignored ? kIgnored : inside(at);
        }
      }
    }
  });
  return classes;
}

TrainingVolume make_training_volume(const std::string& name, const Volume<float>& image,
                                    const LabelVolume& labels, const image::ModelSpace& space,
                                    const LabelConfig& config, const Context& context) {
  const std::string difference = describe_difference(image.grid(), labels.grid(), 1e-2);
  if (!difference.empty()) {
    throw InputError("image and label of '" + name + "' are not on the same grid: " + difference +
                     "; resample one of them");
  }
  TrainingVolume volume;
  volume.name = name;
  volume.voxels = image::to_model_space(image, space, context);
  const LabelVolume resampled = image::resample_labels(labels, volume.voxels.grid(), context);
  volume.classes = voxel_classes(resampled, config, context);
  volume.digest = digest_of(volume.voxels, volume.classes);
  return volume;
}

void sort_by_digest(std::vector<TrainingVolume>& volumes) {
  std::stable_sort(volumes.begin(), volumes.end(),
                   [](const auto& a, const auto& b) { return a.digest < b.digest; });
}

TrainingImages load_training_images(const std::vector<TrainingVolume>& volumes,
                                    std::span<const image::ChannelSpec> channels,
                                    image::Padding padding, int pad, const Context& context) {
  TrainingImages images;
  images.channels.assign(channels.begin(), channels.end());
  for (const TrainingVolume& volume : volumes) {
    images.layouts.push_back(image::layouts_for(volume.voxels.size(), channels, pad));
  }
  int64_t elements = 0;
  for (size_t c = 0; c < channels.size(); ++c) {
    Vec3i largest{0, 0, 0};
    for (const auto& layout : images.layouts) {
      largest.x = std::max(largest.x, layout[c].stride_size.x);
      largest.y = std::max(largest.y, layout[c].stride_size.y);
    }
    for (auto& layout : images.layouts) {
      layout[c].stride_size.x = largest.x;
      layout[c].stride_size.y = largest.y;
      layout[c].offset = elements;
      elements += layout[c].elements();
    }
  }
  images.data = Buffer<uint32_t>(context.device, static_cast<size_t>(elements));
  images.data.set_zero();  // common strides leave gaps that the sums along z run over
  for (size_t v = 0; v < volumes.size(); ++v) {
    image::integrate(volumes[v].voxels.view(), channels, padding, images.layouts[v], images.data,
                     context);
  }
  return images;
}

SampleSet draw_samples(const std::vector<TrainingVolume>& volumes, std::span<const size_t> which,
                       const SampleConfig& config, uint64_t seed, int threads) {
  struct Drawn {
    std::vector<int64_t> voxels;
    uint64_t mass[2];
  };
  std::vector<Drawn> drawn(which.size());
  parallel_for(threads, static_cast<int64_t>(which.size()), 1, [&](int64_t begin, int64_t end) {
    for (auto k = static_cast<size_t>(begin); k < static_cast<size_t>(end); ++k) {
      const size_t v = which[k];
      const auto draw_class = [&](uint8_t wanted, int count, uint64_t* mass) {
        return draw(volumes[v].classes, wanted, static_cast<size_t>(count), seed, v, mass);
      };
      const auto positive = draw_class(kPositive, config.positives_per_volume, &drawn[k].mass[1]);
      const auto negative = draw_class(0, config.negatives_per_volume, &drawn[k].mass[0]);
      drawn[k].voxels.resize(positive.size() + negative.size());
      std::merge(positive.begin(), positive.end(), negative.begin(), negative.end(),
                 drawn[k].voxels.begin());
    }
  });
  SampleSet set;
  for (size_t k = 0; k < which.size(); ++k) {
    const size_t v = which[k];
    for (const int64_t voxel : drawn[k].voxels) {
      const bool is_positive = volumes[v].classes[voxel] == kPositive;
      set.volume.push_back(static_cast<uint32_t>(v));
      set.voxel.push_back(voxel);
      set.positive.push_back(is_positive ? 1 : 0);
      set.mass.push_back(drawn[k].mass[is_positive ? 1 : 0]);
    }
  }
  return set;
}

void place_samples(SampleSet& samples, const std::vector<TrainingVolume>& volumes,
                   const TrainingImages& images) {
  std::vector<int64_t> bases(samples.size() * images.channels.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t v = samples.volume[i];
    const Vec3i at = volumes[v].voxels.grid().voxel(samples.voxel[i]);
    for (size_t c = 0; c < images.channels.size(); ++c) {
      bases[c * samples.size() + i] = images.layouts[v][c].base(at);
    }
  }
  samples.bases = Buffer<int64_t>(images.data.device(), std::span<const int64_t>(bases));
}

}  // namespace larch::pbt
