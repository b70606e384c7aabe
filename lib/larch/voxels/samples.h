// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <cstdio>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"
#include "larch/features/linear/linear_source.h"
#include "larch/image/integral.h"
#include "larch/tree/train/samples.h"
#include "larch/voxels/model.h"
#include "larch/voxels/train_config.h"

namespace larch::voxels {

/// Says what a voxel is for training.
enum class VoxelClass : uint8_t { kNegative = 0, kPositive = 1, kIgnored = 2 };

/// A file without a name, in which volumes wait that do not fit in memory. Throws OutputError.
std::shared_ptr<std::FILE> make_scratch(const std::string& folder);

/// One volume with its truth, in model space.
struct TrainingVolume {
  std::string name;    ///< for messages only; not part of the digest
  size_t of_case = 0;  ///< its number among the cases, the same
  Volume<int16_t> voxels;
  Volume<uint8_t> classes;  ///< VoxelClass
  std::string digest;       ///< SHA-256 of voxels, grid and classes
  /// The same classes without the border band, to compare whole volumes with; empty: `classes`.
  Volume<uint8_t> truth{};
  std::vector<Volume<int16_t>> further{};  ///< components of the input behind the first
  LabelVolume labels{};  ///< for many classes, in place of `classes`; kUnlabelled: not used
  /// The same labels without the border band; empty: `labels`.
  LabelVolume true_labels{};
  std::string group{};  ///< volumes with the same word are held out together; empty: by itself
  std::shared_ptr<std::FILE> scratch{};  ///< where the voxels of all of these are; null: here
  long place = 0;
  Grid stowed_grid{};

  const Grid& grid() const { return scratch ? stowed_grid : voxels.grid(); }
  /// Moves the voxels to a file.
  void stow(std::shared_ptr<std::FILE> to);
  /// Returns the volume with its voxels, which may be this one.
  std::shared_ptr<const TrainingVolume> fetch() const;

  std::vector<VolumeView<const int16_t>> views() const;
  int64_t bytes() const;  ///< of all voxels on the host
  /// Returns the volumes of all components, one after the other.
  std::vector<Volume<int16_t>> components() const;
};
constexpr int32_t kUnlabelled = INT32_MIN;

/// 1 where a voxel of another value lies within `border` steps along the axes; kUnlabelled is no
/// other value, since nobody knows what is there.
Volume<uint8_t> near_boundary(const LabelVolume& values, int border, int threads);

/// Returns a volume with the labels that it has in model space, without classes. `images`: one for
/// each component. Throws InputError when the grids differ, naming `name`.
TrainingVolume in_model_space(const std::string& name, std::span<const Volume<float>> images,
                              const LabelVolume& labels, const image::ModelSpace& space,
                              const Context& context);
/// Returns the SHA-256 of voxels, grid and classes or labels.
std::string digest_of(const TrainingVolume& volume);

/// Splits the volumes into those to train on and those held out, group by group, by the hash of
/// the rank of a group's first, until the held-out ones are the fraction or one group is left.
struct VolumeSplit {
  std::vector<size_t> train, held_out;
};
VolumeSplit hold_out(const std::vector<TrainingVolume>& volumes, double fraction, uint64_t seed);

/// Maps labels to classes: positive and ignored values, and the border band (voxels with a voxel of
/// the other class within `border_voxels` steps along the axes).
Volume<uint8_t> voxel_classes(const LabelVolume& labels, const LabelConfig& config,
                              const Context& context);

/// Brings an image and its labels to model space and computes the digest. Throws InputError when
/// the grids differ, naming `name`.
TrainingVolume make_training_volume(const std::string& name, std::span<const Volume<float>> images,
                                    const LabelVolume& labels, const image::ModelSpace& space,
                                    const LabelConfig& config, const Context& context);

/// Sorts by digest, so that the order of a list does not matter.
void sort_by_digest(std::vector<TrainingVolume>& volumes);

/// Says how the integral channels of volumes lie on a device: all of them together where they fit,
/// or else a portion at a time, which is some volumes in a row.
struct PortionPlan {
  /// [volume][channel], in the buffer of its portion. The strides of a channel are common to all
  /// volumes, so that one table of tap offsets serves them.
  std::vector<std::vector<image::IntegralLayout>> layouts{};
  std::vector<uint32_t> portion{};  ///< of each volume
  int64_t elements = 0;             ///< of the buffer
  int64_t bytes_left = 0;           ///< for matrix or evaluation

  size_t portions() const { return portion.back() + size_t{1}; }
};

/// Throws the MemoryError of a training that needs so many bytes by plan.
[[noreturn]] void throw_lack_of_memory(int64_t needed_bytes, const Context& context);

/// Holds what a training takes beside the channels of its volumes, in bytes.
struct MemoryNeeds {
  int64_t allowed = 0;  ///< TrainConfig::memory_bytes
  int64_t samples = 0;
  int64_t work = 0;     ///< for matrix or evaluation, at least
  int64_t volumes = 0;  ///< on the host: counts on the CPU
};
/// Returns those of boosting trees, which need the matrix of a node, or of a forest, which needs
/// that of a round; without volumes.
MemoryNeeds needs_of(const TrainConfig& config, size_t samples, size_t channels);
/// Returns GrowTask::samples_at_once for so many bytes (0: what suits the device), at least 1.
size_t samples_at_once(size_t columns, int64_t bytes, const Device& device);
/// Returns what is left of the memory that is allowed (0: what is free) when the codes of so many
/// samples are kept. Throws MemoryError if that is less than they take.
int64_t bytes_beside_codes(size_t samples, size_t columns, int64_t allowed, const Context& context);

/// Returns the plan for volumes of these sizes within the memory that is allowed. Throws
/// MemoryError that says what is needed.
PortionPlan plan_portions(std::span<const Vec3i> sizes,
                          std::span<const image::ChannelSpec> channels, const Vec3i& pad,
                          const MemoryNeeds& needs, const Context& context);

/// The integral channels of volumes, which must outlive them, on one device, by plan.
struct TrainingImages : PortionPlan {
  std::span<const TrainingVolume> volumes;
  std::vector<image::ChannelSpec> channels{};
  image::Padding padding{};
  Buffer<uint32_t> data{};
  uint32_t loaded = UINT32_MAX;  ///< the portion that is there

  /// Returns a layout per channel whose strides hold for every volume.
  std::span<const image::IntegralLayout> common_layouts() const { return layouts.at(0); }
  /// Puts a portion in the place of the one that is there.
  void load(uint32_t which, const Context& context);
};
/// Counts the bytes of the volumes itself.
TrainingImages load_training_images(const std::vector<TrainingVolume>& volumes,
                                    std::span<const image::ChannelSpec> channels,
                                    image::Padding padding, const Vec3i& pad,
                                    const Context& context, MemoryNeeds needs = {});

/// Training samples, sorted by (volume, voxel) except for mined ones, which follow. The id in
/// hashes is volume << 40 | voxel; the mass is voxels of the class in its volume / voxels drawn.
struct SampleSet : tree::Samples {
  Buffer<int64_t> bases;            ///< [channel][sample]: element of TrainingImages::data
  std::vector<uint32_t> portion{};  ///< of each

  uint32_t volume(size_t sample) const { return static_cast<uint32_t>(id[sample] >> 40); }
  /// Returns the linear index in its volume.
  int64_t voxel(size_t sample) const {
    return static_cast<int64_t>(id[sample] & ((uint64_t{1} << 40) - 1));
  }
  using Samples::add;
  void add(size_t in_volume, int64_t at_voxel, bool is_positive, uint64_t its_mass) {
    add(static_cast<uint64_t>(in_volume) << 40 | static_cast<uint64_t>(at_voxel), is_positive,
        its_mass);
  }
  /// Keeps the first `count`.
  void truncate(size_t count) {
    id.resize(count);
    positive.resize(count);
    mass.resize(count);
  }
};

/// Draws from each of `which` volumes the voxels of lowest hash, class by class. Does not fill
/// bases.
SampleSet draw_samples(const std::vector<TrainingVolume>& volumes, std::span<const size_t> which,
                       const SampleConfig& config, uint64_t seed, int threads = 1);

/// The samples, of the first `count`, of lowest hash from which the ranges of features are taken.
std::vector<uint32_t> range_samples(const SampleSet& samples, size_t count, const Context& context);

/// (Re)computes the bases of all samples on the device of `images`, and gives them to a source,
/// which both must outlive.
features::SamplePlaces place_samples(SampleSet& samples, TrainingImages& images);

}  // namespace larch::voxels
