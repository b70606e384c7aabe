// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/sequence/sequence_reader.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/itk/door.h"
#include "larch/io/xa/angiogram_dicom.h"

namespace larch {
namespace {

using io::bad;
using io::Component;
using io::Header;

/// Tells whether slices stand somewhere: an array that was saved as it is has whole numbers as
/// places, from 0 on, whatever the signs of its axes.
bool has_places(const Grid& grid) {
  if (grid.spacing_mm != Vec3d{1, 1, 1} || grid.origin_mm != Vec3d{}) return true;
  for (int axis = 0; axis < 3; ++axis) {
    if (std::abs(grid.direction.m[axis][axis]) != 1) return true;
  }
  return false;
}

/// Whole numbers of a component as pixels without sign, the number `least` as 0.
void to_pixels(const std::vector<std::byte>& stored, Component component, int32_t least,
               std::span<uint16_t> to) {
  io::with_type(component, [&](auto type) {
    const auto* values = reinterpret_cast<const decltype(type)*>(stored.data());
    for (size_t i = 0; i < to.size(); ++i) {
      to[i] = static_cast<uint16_t>(static_cast<int32_t>(values[i]) - least);
    }
  });
}

/// Returns what a file of another format than DICOM says of its frames, but for their bits.
Angiogram describe_frames(const std::string& path, const Header& header) {
  Angiogram about;
  about.path = path;
  about.warnings = header.warnings;
  if (header.colour || header.channels != 1) {
    bad(path,
        header.colour
            ? "its pixels are colours, and grey ones are needed here; write it as grey"
            : std::to_string(header.channels) + " components per pixel, and one is needed here");
  }
  Grid grid = header.grid;
  // Frames have an axis of their own in NIfTI, the fourth.
  const std::string ending = file_extension(path);
  const bool is_nifti =
      ending.starts_with(".nii") || ending.starts_with(".hdr") || ending.starts_with(".img");
  if (is_nifti && grid.size.z > 1 && header.frames == 1 && has_places(grid)) {
    bad(path,
        "its slices stand at places of their own, so that they are a volume and no sequence; "
        "frames are along the fourth axis. Two volumes: give the other one with --mask-volume");
  }
  if (grid.size.z > 1 && header.frames > 1) {
    bad(path, "its frames are volumes of " + std::to_string(grid.size.z) +
                  " slices, and pictures are needed here; write the slices of one place to a file "
                  "of their own");
  }
  about.frames = int64_t{grid.size.z} * header.frames;
  const FrameTimes& times = header.times;
  double step_ms = times.step * times.unit_ms;
  // ITK writes the time between the frames of a multi-frame DICOM file as their distance.
  if (step_ms <= 0 && grid.size.z > 1 && grid.spacing_mm.z != 1) step_ms = grid.spacing_mm.z;
  if (const size_t bytes = static_cast<size_t>(about.frames) * sizeof(double);
      step_ms > 0 && !host_memory_allows(bytes)) {
    throw MemoryError("'" + path + "': " + out_of_memory_text(bytes));
  }
  for (int64_t i = 0; step_ms > 0 && i < about.frames; ++i) {
    about.times_ms.push_back(times.first * times.unit_ms + static_cast<double>(i) * step_ms);
  }
  if (!about.times_ms.empty() && !std::isfinite(about.times_ms.back())) {
    bad(path, "the times of its frames are not finite; repair the header");
  }
  grid.size.z = 1;
  grid.spacing_mm.z = 1;
  about.grid = grid;
  about.has_spacing = true;
  return about;
}

}  // namespace

struct SequenceReader::Source {
  /// The least and the largest of all values, which must be whole.
  struct Range {
    double least = 0, most = 0;
    bool is_whole = true;

    template <class S>
    void widen(const std::vector<std::byte>& bytes) {
      const auto* values = reinterpret_cast<const S*>(bytes.data());
      S lowest = values[0], highest = values[0];
      for (size_t i = 0; i < bytes.size() / sizeof(S); ++i) {
        if constexpr (std::is_floating_point_v<S>) is_whole &= values[i] == std::floor(values[i]);
        lowest = std::min(lowest, values[i]);
        highest = std::max(highest, values[i]);
      }
      least = std::min(least, static_cast<double>(lowest));
      most = std::max(most, static_cast<double>(highest));
    }
  };

  Source(const std::string& path, const ReadOptions& options)
      : image(path, {options, io::Palette::kExpand, /*is_sequence=*/true}) {}

  std::vector<std::byte> stored(int64_t first, int64_t count) {
    const int64_t frame_bytes = about.grid.voxels() * io::bytes_of(image.header().component);
    std::vector<std::byte> bytes = io::allocate_voxels(count * frame_bytes, about.path);
    image.read({first, count}, bytes.data());
    return bytes;
  }

  /// The header says how many bits are stored only where there are no more than 8.
  void find_bits() {
    constexpr int64_t kAtOnce = int64_t{1} << 24;
    const Component component = image.header().component;
    Range range;
    if (component == Component::kUint8 || component == Component::kInt8) {
      about.bits = 8;
      about.least_stored = component == Component::kInt8 ? -128 : 0;
      return;
    }
    if (component == Component::kUint64 || component == Component::kInt64) {
      bad(about.path,
          "its pixels are " + io::name_of(component) + "; write whole numbers of 16 bits");
    }
    const int64_t batch = std::max<int64_t>(1, kAtOnce / about.grid.voxels());
    for (int64_t first = 0; first < about.frames; first += batch) {
      const auto bytes = stored(first, std::min(batch, about.frames - first));
      io::with_type(component, [&](auto type) { range.widen<decltype(type)>(bytes); });
    }
    for (const int bits : {8, 10, 12, 14, 16}) {
      const double all = std::ldexp(1.0, bits), half = all / 2;
      const bool is_signed = range.least < 0;
      if (range.least < -half || range.most >= (is_signed ? half : all)) continue;
      about.bits = bits;
      about.least_stored = is_signed ? static_cast<int32_t>(-half) : 0;
      if (range.is_whole) return;
    }
    bad(about.path, std::string("its pixels are ") +
                        (range.is_whole ? "beyond 16 bits" : "not whole numbers") +
                        ", and whole numbers of 16 bits are needed here; rescale it");
  }

  /// What the scaling of the header makes of each pixel.
  void rescale_pixels() {
    const Header& header = image.header();
    if (!header.is_rescaled()) return;
    for (int32_t pixel = 0; pixel < 1 << about.bits; ++pixel) {
      about.modality.push_back(
          static_cast<float>((pixel + about.least_stored) * header.slope + header.intercept));
    }
    if (!std::isfinite(about.modality.front()) || !std::isfinite(about.modality.back())) {
      bad(about.path, "its scaling leads to values that are not finite; repair the header");
    }
  }

  io::OpenImage image;
  Angiogram about{};
};

SequenceReader::SequenceReader(const std::string& path, const ReadOptions& options) {
  if (is_folder(path)) {
    bad(path, std::string("a folder; give the file that holds the sequence. ") + kJoinFrames);
  }
  source_ = std::make_unique<Source>(path, options);
  if (auto angiogram = io::describe_angiogram(source_->image.file())) {
    source_->about = std::move(*angiogram);
    return;
  }
  source_->about = describe_frames(path, source_->image.header());
  source_->find_bits();
  source_->rescale_pixels();
}
SequenceReader::~SequenceReader() = default;
SequenceReader::SequenceReader(SequenceReader&&) noexcept = default;
SequenceReader& SequenceReader::operator=(SequenceReader&&) noexcept = default;

const Angiogram& SequenceReader::about() const {
  return source_->about;
}

void SequenceReader::tell_contrast(bool raises) {
  if (about().is_dicom) {
    throw UsageError("'" + about().path +
                     "': a DICOM file says by itself what contrast agent does to its values; leave "
                     "--contrast out");
  }
  source_->about.intensity_sign = raises ? -1 : 1;
}

void SequenceReader::read(int64_t first, int64_t count, std::span<uint16_t> to) {
  if (first < 0 || count < 0 || count > about().frames - first) {
    throw UsageError("'" + about().path + "': frames " + std::to_string(first + 1) + " to " +
                     std::to_string(first + count) + " are not all there: it has " +
                     std::to_string(about().frames));
  }
  if (to.size() != static_cast<size_t>(count * frame_pixels())) {
    throw UsageError("'" + about().path + "': no room for the frames that are asked for");
  }
  if (count == 0) return;
  const Component component = source_->image.header().component;
  if (component == Component::kUint16 && about().least_stored == 0) {  // as they are wanted
    source_->image.read({first, count}, to.data());
    return;
  }
  to_pixels(source_->stored(first, count), component, about().least_stored, to);
}

}  // namespace larch
