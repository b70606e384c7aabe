// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_checkpoint.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <limits>
#include <type_traits>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/config/config.h"
#include "larch/core/digest.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/files/temporaries.h"
#include "larch/levelset/arithmetic_version.h"
#include "larch/levelset/brick_layout.h"
#include "larch/models/bytes.h"
#include "larch/models/file.h"
#include "larch/pipeline/levelset/input/segmentation_seeds.h"

namespace larch::pipeline {
namespace {

using levelset::FieldSnapshot;
using levelset::kBrickVoxels;

constexpr uint32_t kKindVersion = 1;
/// Between the version of the arithmetic and the fingerprint.
constexpr char kAfterVersion = ':';
/// Seconds between two checkpoints.
constexpr double kCheckpointSeconds = 60;
static_assert(std::endian::native == std::endian::little,
              "values are stored as they lie in memory");

/// How the voxels of a brick are stored.
enum class Stored : uint8_t {
  kAll,    ///< one after the other
  kOne,    ///< one value stands for all
  kFirst,  ///< as in the first buffer
};

template <class T>
void update(Sha256& sha, const T& value) {
  static_assert(std::is_arithmetic_v<T>);
  sha.update(&value, sizeof value);
}

template <class T>
void update(Sha256& sha, const Volume<T>& volume) {
  const Grid& grid = volume.grid();
  update(sha, volume.voxels());
  if (volume.empty()) return;
  for (int axis = 0; axis < 3; ++axis) {
    update(sha, grid.size[axis]);
    update(sha, grid.spacing_mm[axis]);
    update(sha, grid.origin_mm[axis]);
    for (int row = 0; row < 3; ++row) update(sha, grid.direction.m[row][axis]);
  }
  sha.update(volume.data(), static_cast<size_t>(volume.voxels()) * sizeof(T));
}

bool same_bits(const float* a, const float* b, size_t count) {
  return std::equal(a, a + count, b, [](float x, float y) {
    return std::bit_cast<uint32_t>(x) == std::bit_cast<uint32_t>(y);
  });
}

bool is_one_value(const float* brick) {
  // Every value is the one before it.
  return same_bits(brick, brick + 1, kBrickVoxels - 1);
}

std::string_view bytes_of(const float* values, size_t count) {
  return {reinterpret_cast<const char*>(values), count * sizeof(float)};
}

void put_phi(const FieldSnapshot& field, models::ByteWriter& out) {
  const std::vector<float>&first = field.phi[0], &second = field.phi[1];
  const size_t bricks = first.size() / kBrickVoxels;
  out.u64(bricks);
  for (const auto* phi : {&first, &second}) {
    for (size_t b = 0; b < bricks; ++b) {
      const float* brick = phi->data() + b * kBrickVoxels;
      if (phi == &second && same_bits(brick, first.data() + b * kBrickVoxels, kBrickVoxels)) {
        out.integer(static_cast<uint8_t>(Stored::kFirst));
      } else if (is_one_value(brick)) {
        out.integer(static_cast<uint8_t>(Stored::kOne));
        out.raw(bytes_of(brick, 1));
      } else {
        out.integer(static_cast<uint8_t>(Stored::kAll));
        out.raw(bytes_of(brick, kBrickVoxels));
      }
    }
  }
}

void take_brick(models::ByteReader& in, const float* first, float* brick) {
  switch (static_cast<Stored>(in.integer<uint8_t>())) {
    case Stored::kAll:
      std::memcpy(brick, in.raw(kBrickVoxels * sizeof(float)).data(), kBrickVoxels * sizeof(float));
      return;
    case Stored::kOne: {
      float value = 0;
      std::memcpy(&value, in.raw(sizeof value).data(), sizeof value);
      std::fill_n(brick, kBrickVoxels, value);
      return;
    }
    case Stored::kFirst:
      if (first == nullptr) break;
      std::memcpy(brick, first, kBrickVoxels * sizeof(float));
      return;
  }
  in.fail("a brick is stored in a way that is not known");
}

void take_phi(models::ByteReader& in, size_t bricks, FieldSnapshot& field) {
  // A brick of one value takes a few bytes of the file and two thousand of memory, so that their
  // number is not taken on the word of the file.
  if (in.u64() != bricks) {
    throw InputError("it is of an image of another size; delete it and segment from the seeds");
  }
  for (auto& phi : field.phi) {
    const float* first = &phi == &field.phi[0] ? nullptr : field.phi[0].data();
    phi.resize(bricks * kBrickVoxels);
    for (size_t b = 0; b < bricks; ++b) {
      take_brick(in, first == nullptr ? nullptr : first + b * kBrickVoxels,
                 phi.data() + b * kBrickVoxels);
    }
  }
}

std::string encoded(const FieldSnapshot& field) {
  models::ByteWriter out;
  put_phi(field, out);
  out.integer(field.progress.iterations);
  out.integer(field.progress.quiet);
  out.integer(field.progress.inside);
  out.integer(static_cast<uint8_t>(field.progress.stop));
  out.integer(static_cast<uint8_t>(field.active.is_known));
  out.u64(field.active.items.size());
  for (const uint32_t item : field.active.items) out.u32(item);
  out.u64(field.history.size());
  for (const levelset::StepCount& step : field.history) {
    out.u32(step.active);
    out.u32(step.changed);
    out.u32(step.flipped);
    out.integer(step.grown);
    out.u64(step.squares);
  }
  out.f64(field.means.inside);
  out.f64(field.means.outside);
  out.integer(field.means_at);
  return std::move(out).take();
}

FieldSnapshot decoded(const std::string& bytes, size_t bricks) {
  models::ByteReader in(bytes, "a field");
  FieldSnapshot field;
  take_phi(in, bricks, field);
  field.progress.iterations = in.integer<int64_t>();
  field.progress.quiet = in.integer<int64_t>();
  field.progress.inside = in.integer<int64_t>();
  const auto stop = in.integer<uint8_t>();
  if (stop > static_cast<uint8_t>(levelset::Stop::kInterrupted)) in.fail("it has no known end");
  field.progress.stop = static_cast<levelset::Stop>(stop);
  field.active.is_known = in.integer<uint8_t>() != 0;
  field.active.items.resize(in.count(sizeof(uint32_t)));
  for (uint32_t& item : field.active.items) {
    item = in.u32();
    if (item >= field.phi[0].size()) in.fail("its active set is beyond the image");
  }
  field.history.resize(in.count(24));
  for (levelset::StepCount& step : field.history) {
    step.active = in.u32();
    step.changed = in.u32();
    step.flipped = in.u32();
    step.grown = in.integer<int32_t>();
    step.squares = in.u64();
  }
  field.means.inside = in.f64();
  field.means.outside = in.f64();
  field.means_at = in.integer<int64_t>();
  in.finish();
  return field;
}

/// The configuration without what may be another one when a run goes on: levelset::restore.
levelset::LevelsetConfig without_ends(levelset::LevelsetConfig config) {
  const levelset::LevelsetConfig usual;
  config.max_iterations = usual.max_iterations;
  if (config.region_weight > 0) return config;
  config.unchanged_labels = usual.unchanged_labels;
  config.most_changed = usual.most_changed;
  config.rms = usual.rms;
  config.max_volume_ml = usual.max_volume_ml;
  return config;
}

std::string section_name(size_t number) {
  return "fields/" + std::to_string(number);
}

}  // namespace

bool CheckpointClock::is_due(const Context& context) const {
  const std::chrono::duration<double> since = std::chrono::steady_clock::now() - last_;
  return context.stop_requested() || since.count() >= kCheckpointSeconds;
}

void save_checkpoint(const std::string& path, const Context& context,
                     const std::function<void(const std::string&)>& write) {
  remove_leftovers_once(folder_of(path), context);
  write_atomically(path, write);
}

std::string stopped_text(const std::string& checkpoint) {
  return "stopped; '" + checkpoint + "' is written, and --resume goes on from it";
}

std::string digest_of(const std::string& bytes) {
  Sha256 sha;
  sha.update(bytes.data(), bytes.size());
  return hex(sha.digest());
}

std::string digest_of(const Volume<float>& image) {
  Sha256 sha;
  update(sha, image);
  return hex(sha.digest());
}

std::string fingerprint_of(const levelset::SegmentRequest& request) {
  Sha256 sha;
  const std::string config = config::to_json(without_ends(request.config)).dump();
  sha.update(config.data(), config.size());
  update(sha, request.image);
  for (const levelset::Sphere& sphere : request.spheres) {
    for (int axis = 0; axis < 3; ++axis) update(sha, sphere.centre[axis]);
    update(sha, sphere.radius);
    update(sha, sphere.is_index);
    update(sha, sphere.label);
  }
  update(sha, request.initial_labels);
  for (const levelset::InitialPhi& phi : request.initial_phi) {
    update(sha, phi.label);
    update(sha, phi.phi_mm);
  }
  update(sha, request.initial_level_mm);
  update(sha, request.arrival_mm);
  for (const levelset::LabelWindow& window : request.windows) {
    update(sha, window.label);
    update(sha, window.lower);
    update(sha, window.upper);
  }
  update(sha, request.speed);
  update(sha, request.mask);
  update(sha, request.frozen);
  return hex(sha.digest());
}

void put_fingerprint(const std::string& fingerprint, models::Container& container) {
  container.sections["fingerprint"].bytes =
      std::to_string(levelset::kArithmeticVersion) + kAfterVersion + fingerprint;
}

std::string take_fingerprint(const models::Container& container) {
  const std::string& bytes = container.at("fingerprint").bytes;
  const std::string start = std::to_string(levelset::kArithmeticVersion) + kAfterVersion;
  if (!bytes.starts_with(start)) {
    throw InputError(
        "it was written by a version of the program that computes other bits; go on with that "
        "version, or delete it and start anew");
  }
  return bytes.substr(start.size());
}

void require_fingerprint(const std::string& found, const std::string& expected) {
  if (found == expected) return;
  throw InputError(
      "it was written with other settings or other images; give the same ones, or delete it and "
      "start anew");
}

void put_fields(const std::vector<FieldSnapshot>& fields, models::Container& container) {
  for (size_t f = 0; f < fields.size(); ++f) {
    container.sections[section_name(f)].bytes = encoded(fields[f]);
  }
}

CheckpointShape shape_of(const levelset::SegmentRequest& request) {
  return {static_cast<size_t>(levelset::make_brick_layout(request.image.grid().size).bricks()),
          static_cast<size_t>(labels_of(request).size())};
}

std::vector<FieldSnapshot> take_fields(const models::Container& container,
                                       const CheckpointShape& shape) {
  if (container.sections.contains(section_name(shape.labels))) {
    throw InputError("it has more than " + std::to_string(shape.labels) +
                     " labels; delete it and segment from the seeds");
  }
  std::vector<FieldSnapshot> fields;
  for (size_t f = 0; container.sections.contains(section_name(f)); ++f) {
    fields.push_back(decoded(container.at(section_name(f)).bytes, shape.bricks));
  }
  return fields;
}

void go_on_from(const std::string& path, levelset::SegmentRun& run,
                std::vector<FieldSnapshot> fields, const Context& context) {
  try {
    levelset::restore(run, std::move(fields), context);
  } catch (const InputError& error) {  // others, such as of the device, are not of the file
    throw InputError("cannot go on from '" + path + "': " + error.what());
  }
}

void write_checkpoint(const std::string& path, const std::string& fingerprint,
                      const std::vector<FieldSnapshot>& fields) {
  models::Container container;
  container.kind = kCheckpointKind;
  container.kind_version = kKindVersion;
  put_fingerprint(fingerprint, container);
  put_fields(fields, container);
  models::write_container(path, container);
}

std::vector<FieldSnapshot> read_checkpoint(const std::string& path, const std::string& fingerprint,
                                           const CheckpointShape& shape) {
  return models::naming_file("checkpoint", path, [&] {
    const models::Container container = models::read_container(path);
    if (container.kind != kCheckpointKind || container.kind_version != kKindVersion) {
      throw InputError(
          "it is no checkpoint of a segmentation; delete it, or segment without "
          "--resume");
    }
    require_fingerprint(take_fingerprint(container), fingerprint);
    return take_fields(container, shape);
  });
}

}  // namespace larch::pipeline
