// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/voxels/samples.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdlib>
#include <functional>
#include <map>
#include <mutex>
#include <numeric>
#include <utility>

#include <unistd.h>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/random_math.h"
#include "larch/core/text.h"
#include "larch/data/volume.h"
#include "larch/learning/feature_matrix.h"
#include "larch/learning/lowest_hash.h"
#include "larch/voxels/slabs.h"

namespace larch::voxels {
namespace {

constexpr auto kIgnored = static_cast<uint8_t>(VoxelClass::kIgnored);

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
  std::vector<uint8_t> positive;
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
  for (const int64_t voxel : drawn.voxels) drawn.positive.push_back(classes[voxel]);
  return drawn;
}

/// Layouts with common strides, without offsets.
std::vector<std::vector<image::IntegralLayout>> common_layouts(
    std::span<const Vec3i> sizes, std::span<const image::ChannelSpec> channels, const Vec3i& pad) {
  std::vector<std::vector<image::IntegralLayout>> all;
  for (const Vec3i& size : sizes) all.push_back(image::layouts_for(size, channels, pad));
  for (size_t c = 0; c < channels.size(); ++c) {
    for (const int axis : {0, 1}) {
      int32_t largest = 0;
      for (const auto& layouts : all) largest = std::max(largest, layouts[c].stride_size[axis]);
      for (auto& layouts : all) layouts[c].stride_size[axis] = largest;
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

std::shared_ptr<std::FILE> make_scratch(const std::string& folder) {
  std::string name = folder + "/.larch-volumes-XXXXXX";
  const int file = ::mkstemp(name.data());
  std::FILE* const opened = file < 0 ? nullptr : ::fdopen(file, "w+");
  if (file >= 0) ::unlink(name.c_str());
  if (opened == nullptr) {
    if (file >= 0) ::close(file);
    throw OutputError("cannot keep volumes in '" + name + "': may files be written there?");
  }
  std::setvbuf(opened, nullptr, _IONBF, 0);  // a disk that is full is found by the call
  return {opened, std::fclose};
}

namespace {

void check_moved(bool is_moved) {
  if (!is_moved) throw OutputError("cannot keep volumes on the disk: is it full or gone?");
}

/// Calls `use` with each of the arrays of a volume.
template <class V, class Use>
void for_arrays(V& volume, const Use& use) {
  use(volume.voxels);
  for (auto& component : volume.further) use(component);
  use(volume.classes);
  use(volume.truth);
  use(volume.labels);
  use(volume.true_labels);
}

}  // namespace

void TrainingVolume::stow(std::shared_ptr<std::FILE> to) {
  stowed_grid = voxels.grid();
  check_moved(std::fseek(to.get(), 0, SEEK_END) == 0 && (place = std::ftell(to.get())) >= 0);
  for_arrays(*this, [&](auto& volume) {
    const auto count = static_cast<size_t>(volume.voxels());
    check_moved(std::fwrite(&count, sizeof count, 1, to.get()) == 1);
    if (count == 0) return;
    check_moved(std::fwrite(volume.data(), sizeof volume[0], count, to.get()) == count);
    volume = {};
  });
  scratch = std::move(to);
}

std::shared_ptr<const TrainingVolume> TrainingVolume::fetch() const {
  if (!scratch) return {std::shared_ptr<void>(), this};
  static std::mutex mutex;  // the file has one position
  const std::lock_guard lock(mutex);
  auto whole = std::make_shared<TrainingVolume>(*this);
  check_moved(std::fseek(scratch.get(), place, SEEK_SET) == 0);
  for_arrays(*whole, [&]<class T>(Volume<T>& volume) {
    size_t count = 0;
    check_moved(std::fread(&count, sizeof count, 1, scratch.get()) == 1);
    if (count == 0) return;
    volume = Volume<T>::unfilled(stowed_grid);
    check_moved(std::fread(volume.data(), sizeof(T), count, scratch.get()) == count);
  });
  return whole;
}

int64_t TrainingVolume::bytes() const {
  size_t bytes = 0;
  for_arrays(*this, [&](const auto& v) { bytes += v.voxels() * sizeof v[0]; });
  return static_cast<int64_t>(bytes);
}

std::vector<Volume<int16_t>> TrainingVolume::components() const {
  std::vector<Volume<int16_t>> all{voxels};
  all.insert(all.end(), further.begin(), further.end());
  return all;
}

Volume<uint8_t> near_boundary(const LabelVolume& values, int border, int threads) {
  LabelVolume high = values;
  auto low = mapped<int32_t>(values, [](int32_t v) { return v == kUnlabelled ? INT32_MAX : v; });
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
  const auto class_of = [&](int label) {
    if (label == kUnlabelled || std::ranges::count(config.ignore, label) > 0) return kUnlabelled;
    if (config.positive.empty()) return label != 0 ? 1 : 0;
    return std::ranges::count(config.positive, label) > 0 ? 1 : 0;
  };
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    inside[i] = i > 0 && labels[i] == labels[i - 1] ? inside[i - 1] : class_of(labels[i]);
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

void throw_lack_of_memory(int64_t needed_bytes, const Context& context) {
  throw MemoryError("the training needs at least " + bytes_text(needed_bytes / 3 * 4) + " on " +
                    to_string(context.device) +
                    ": allow so much (--memory), or use fewer or coarser volumes, features or "
                    "samples");
}

PortionPlan plan_portions(std::span<const Vec3i> sizes,
                          std::span<const image::ChannelSpec> channels, const Vec3i& pad,
                          const MemoryNeeds& needs, const Context& context) {
  PortionPlan plan{common_layouts(sizes, channels, pad)};
  int64_t all = 0, largest = 0, made = 0;  // `made`: with a volume before it is integrated
  int64_t thinnest = 0;                    // slab of an evaluation, with what trees take
  const int32_t level = std::ranges::max(channels, {}, &image::ChannelSpec::level).level;
  for (size_t v = 0; v < sizes.size(); ++v) {
    const int64_t own = 4 * image::total_elements(plan.layouts[v]);
    all += own;
    largest = std::max(largest, own);
    made = std::max(made, image::channel_image_bytes(sizes[v], channels) + own / 2);
    const int64_t slices = std::min<int64_t>(sizes[v].z, int64_t{3 * (pad.z + 8)} << level);
    thinnest = std::max(thinnest, (int64_t{64} << 20) + own * slices / sizes[v].z);
  }
  const bool is_bound = needs.allowed > 0;
  const int64_t given = is_bound ? needs.allowed : default_memory_bytes(context.device);
  int64_t room = given - needs.samples - std::max(needs.work, made);
  if (is_bound && !context.device.is_cuda()) room -= needs.volumes;
  if (room < largest) throw_lack_of_memory(given + largest - room, context);
  const int64_t limit = all <= room ? all : std::max(largest, room / 4);
  int64_t elements = 0;
  for (auto& layouts : plan.layouts) {
    const bool is_first = plan.portion.empty();
    const bool fits = 4 * (elements + image::total_elements(layouts)) <= limit;
    plan.portion.push_back(is_first ? 0 : plan.portion.back() + (fits ? 0 : 1));
    if (!fits) elements = 0;
    for (image::IntegralLayout& layout : layouts) {
      layout.offset = elements;
      elements += layout.elements();
    }
    plan.elements = std::max(plan.elements, elements);
  }
  // No evaluation shall fail for want of memory when all trees are grown.
  plan.bytes_left = std::max(room - 4 * plan.elements + std::max(needs.work, made), thinnest);
  return plan;
}

namespace {

/// Returns the bytes of a sample in a matrix of so many columns, and of what else boosting has.
size_t bytes_of_sample(size_t columns) {
  constexpr size_t kWidth = learning::kCudaWidth;
  return (columns + kWidth - 1) / kWidth * kWidth + 32;
}

}  // namespace

size_t samples_at_once(size_t columns, int64_t bytes, const Device& device) {
  if (bytes == 0 || !device.is_cuda()) return 0;
  return std::max<size_t>(1, static_cast<size_t>(bytes) / bytes_of_sample(columns));
}

int64_t bytes_beside_codes(size_t samples, size_t columns, int64_t allowed,
                           const Context& context) {
  const auto codes = static_cast<int64_t>(samples * bytes_of_sample(columns));
  if (allowed > 0 && allowed < 2 * codes) throw_lack_of_memory(2 * codes, context);
  return allowed > 0 ? allowed - codes : 0;
}

MemoryNeeds needs_of(const TrainConfig& config, size_t samples, size_t channels) {
  const bool is_forest = config.classifier == ClassifierKind::kForest;
  const int columns = is_forest ? config.forest.round_features : config.features.count;
  const size_t of_node = static_cast<size_t>(config.tree.selected_positives) +
                         static_cast<size_t>(config.tree.selected_negatives);
  // Codes of a round, and as much for histograms.
  const size_t rows = !is_forest                ? std::min(samples, of_node)
                      : config.memory_bytes > 0 ? 2 * samples
                                                : samples;
  return {config.memory_bytes, static_cast<int64_t>(samples * (8 * channels + 32)),
          static_cast<int64_t>(rows * bytes_of_sample(static_cast<size_t>(columns)))};
}

void TrainingImages::load(uint32_t which, const Context& context) {
  if (loaded == which) return;
  loaded = UINT32_MAX;
  for (size_t v = 0; v < volumes.size(); ++v) {
    if (portion[v] != which) continue;
    image::integrate(volumes[v].fetch()->views(), channels, padding, layouts[v], data, context);
  }
  loaded = which;
}

TrainingImages load_training_images(const std::vector<TrainingVolume>& volumes,
                                    std::span<const image::ChannelSpec> channels,
                                    image::Padding padding, const Vec3i& pad,
                                    const Context& context, MemoryNeeds needs) {
  std::vector<Vec3i> sizes;
  for (const TrainingVolume& volume : volumes) {
    sizes.push_back(volume.grid().size);
    needs.volumes += volume.bytes();
  }
  TrainingImages images{plan_portions(sizes, channels, pad, needs, context), volumes};
  images.channels.assign(channels.begin(), channels.end());
  images.padding = padding;
  images.data = Buffer<uint32_t>(context.device, static_cast<size_t>(images.elements));
  images.data.set_zero();  // common strides leave gaps that the sums along z run over
  if (images.portions() > 1) {
    context.info("the volumes are trained on in " + std::to_string(images.portions()) +
                 " portions");
  }
  images.load(0, context);
  return images;
}

SampleSet draw_samples(const std::vector<TrainingVolume>& volumes, std::span<const size_t> which,
                       const SampleConfig& config, uint64_t seed, int threads) {
  std::vector<Drawn> drawn(which.size());
  const std::array<size_t, 2> counts{static_cast<size_t>(config.negatives_per_volume),
                                     static_cast<size_t>(config.positives_per_volume)};
  // Volumes that wait on the disk are held one at a time.
  if (std::ranges::any_of(volumes, [](const auto& v) { return v.scratch != nullptr; })) threads = 1;
  parallel_for_each(threads, static_cast<int64_t>(which.size()), 1, [&](size_t k) {
    drawn[k] = draw(volumes[which[k]].fetch()->classes, counts, seed, which[k]);
  });
  SampleSet set;
  for (size_t k = 0; k < which.size(); ++k) {
    const size_t v = which[k];
    for (size_t i = 0; i < drawn[k].voxels.size(); ++i) {
      const uint8_t positive = drawn[k].positive[i];
      set.add(v, drawn[k].voxels[i], positive == 1, drawn[k].mass[positive]);
    }
  }
  tree::fit_sum(set.mass);
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

features::SamplePlaces place_samples(SampleSet& samples, TrainingImages& images) {
  std::vector<int64_t> bases(samples.size() * images.channels.size());
  samples.portion.resize(samples.size());
  for (size_t i = 0; i < samples.size(); ++i) {
    const size_t v = samples.volume(i);
    samples.portion[i] = images.portion[v];
    const Vec3i at = images.volumes[v].grid().voxel(samples.voxel(i));
    for (size_t c = 0; c < images.channels.size(); ++c) {
      bases[c * samples.size() + i] = images.layouts[v][c].base(at);
    }
  }
  samples.bases = Buffer<int64_t>(images.data.device(), std::span<const int64_t>(bases));
  features::SamplePlaces places{images.data.data(), samples.bases.data(), samples.size()};
  if (images.portions() == 1) return places;
  places.portion = samples.portion;
  places.load = std::bind_front(&TrainingImages::load, &images);
  return places;
}

}  // namespace larch::voxels
