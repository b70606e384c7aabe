// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/sequence/sequence_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/itk/door.h"

namespace larch {

static_assert(std::endian::native == std::endian::little);

namespace {

using io::Component;

constexpr const char* kScalars = ".dcm .mha .nrrd .nii .nii.gz";
constexpr const char* kVectors = ".mha .nrrd";
/// Of a file of differences in DICOM, whose pixels have no sign.
constexpr int32_t kDicomOffset = 32768;
constexpr size_t kLargePicture = 1 << 16;  ///< pixels

/// The time between frames if it is the same for all and a reader would believe it, else 0.
double even_step_ms(const std::vector<double>& times) {
  if (times.size() < 2) return 0;
  const double step = (times.back() - times.front()) / static_cast<double>(times.size() - 1);
  constexpr double kSame = 1e-3;
  for (size_t i = 1; i < times.size(); ++i) {
    if (std::abs(times[i] - times[i - 1] - step) > kSame * step) return 0;
  }
  const double all = step * static_cast<double>(times.size());
  return step >= io::kFinestSpacingMm && step <= io::kCoarsestSpacingMm && all <= kFarthestMm ? step
                                                                                              : 0;
}

/// Returns the middle and the width of the range that holds 99 % of the counted values.
XaWindow window_of(const std::vector<uint64_t>& counts) {
  uint64_t all = 0;
  for (const uint64_t count : counts) all += count;
  const uint64_t beyond = all / 200;
  size_t low = 0, high = counts.size() - 1;
  for (uint64_t below = counts[low]; below <= beyond && low < high;) below += counts[++low];
  for (uint64_t above = counts[high]; above <= beyond && high > low;) above += counts[--high];
  const auto a = static_cast<double>(low), b = static_cast<double>(high);
  return {(a + b) / 2, std::max(b - a, 1.0)};
}

}  // namespace

void require_sequence_path(const std::string& path, const Grid& grid, int64_t frames,
                           bool vectors) {
  const std::string ending = file_extension(path);
  const bool text_headers = ending == ".mha" || ending == ".nrrd";
  const bool nifti = ending == ".nii" || ending == ".nii.gz";
  if (!text_headers && (vectors || (!nifti && ending != ".dcm"))) {
    throw UsageError("cannot write '" + path + "': the ending is none of those that can hold a " +
                     (vectors ? "sequence of vectors: " : "sequence of pictures: ") +
                     (vectors ? kVectors : kScalars));
  }
  if (ending == ".dcm") io::require_xa_holds(path, grid, frames);
  if (nifti && std::max<int64_t>({grid.size.x, grid.size.y, frames}) > INT16_MAX) {
    throw UsageError("cannot write '" + path +
                     "': NIfTI holds at most 32767 pixels or frames along an axis; write .nrrd or "
                     ".mha instead");
  }
}

/// Where the bytes go, and what was written so far.
struct SequenceWriter::Sink {
  [[noreturn]] void refuse(const std::string& what) const {
    throw UsageError("'" + path + "': " + what);
  }

  void write(const void* values, size_t count, Component type, int values_per_pixel) {
    if (!out) begin(type, values_per_pixel);
    if (type != component || values_per_pixel != channels) {
      refuse("a sequence has one kind of numbers");
    }
    const auto per_frame = static_cast<size_t>(header.grid.voxels() * channels);
    if (per_frame == 0 || count % per_frame != 0) refuse("frames are written whole");
    const auto whole = static_cast<int64_t>(count / per_frame);
    frames += whole;
    if (frames > header.frames) refuse("more frames than it has");
    if (whole > 0) out->write(values, whole);
  }

  /// Pixels without sign for DICOM; `zero_pixel`: which of them is the value 0.
  void write_dicom(std::span<const uint16_t> pixels, int zero_pixel) {
    if (!out) zero = zero_pixel;
    if (zero_pixel != zero) refuse("a sequence has one kind of numbers");
    // The window of a large picture is told by every eighth pixel. Frames are whole, so that these
    // are the same however they are cut into batches.
    const auto per_frame = static_cast<size_t>(header.grid.voxels());
    const size_t step = per_frame >= kLargePicture ? 8 : 1;
    for (size_t frame = 0; !header.xa->window && frame < pixels.size(); frame += per_frame) {
      const size_t end = std::min(frame + per_frame, pixels.size());
      for (size_t i = frame; i < end; i += step) ++counts[pixels[i]];
    }
    write(pixels.data(), pixels.size(), Component::kUint16, 1);
  }

  void begin(Component type, int values_per_pixel) {
    component = type;
    channels = values_per_pixel;
    io::Pixels pixels{header.grid, component, nullptr, false, threads, channels};
    pixels.frames = header.frames;
    pixels.compressed = false;  // noise does not become smaller
    if (is_dicom) {
      pixels.head = xa_bytes();
    } else {
      const double first_ms = header.times_ms.empty() ? 0 : header.times_ms.front();
      pixels.times = {even_step_ms(header.times_ms), first_ms, 1};
    }
    out = std::make_unique<io::ImageStream>(path, pixels);
  }

  std::string xa_bytes() const {
    return io::xa_header_bytes(path, header.grid, header.frames, header.times_ms, *header.xa, zero);
  }

  /// The window is known when all frames are: the header is written again over its own place.
  void put_window() {
    header.xa->window = window_of(counts);
    header.xa->window->centre -= zero;
    const std::string bytes = xa_bytes();
    std::fstream file(path, std::ios::binary | std::ios::in | std::ios::out);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    file.close();
    if (file.fail()) {
      throw OutputError("cannot write '" + path +
                        "': the storage reported an error: check the free space and the folder's "
                        "permissions");
    }
  }

  std::string path;
  SequenceHeader header;
  int threads = 1;
  bool is_dicom = file_extension(path) == ".dcm";
  std::vector<uint64_t> counts = std::vector<uint64_t>(is_dicom ? 65536 : 0);  ///< by pixel
  Component component = Component::kInt16;
  int channels = 1, zero = 0;
  int64_t frames = 0;
  std::unique_ptr<io::ImageStream> out{};
};

SequenceWriter::SequenceWriter(const std::string& path, const SequenceHeader& header, int threads) {
  require_sequence_path(path, header.grid, header.frames);
  sink_ = std::make_unique<Sink>(Sink{path, header, threads});
  if (header.frames < 1 || header.grid.size.z != 1) {
    sink_->refuse("a sequence has pictures, at least one");
  }
  if (sink_->is_dicom && !header.xa) sink_->refuse("DICOM needs a header of its own");
}
SequenceWriter::~SequenceWriter() = default;
SequenceWriter::SequenceWriter(SequenceWriter&&) noexcept = default;
SequenceWriter& SequenceWriter::operator=(SequenceWriter&&) noexcept = default;

void SequenceWriter::write(std::span<const int16_t> frames) {
  if (!sink_->is_dicom) return sink_->write(frames.data(), frames.size(), Component::kInt16, 1);
  if (sink_->header.xa->bits != 16) sink_->refuse("differences need 16 bits stored");
  std::vector<uint16_t> pixels(frames.size());
  std::ranges::transform(frames, pixels.begin(), [](int16_t value) {
    return static_cast<uint16_t>(int32_t{value} + kDicomOffset);
  });
  sink_->write_dicom(pixels, kDicomOffset);
}

void SequenceWriter::write(std::span<const uint16_t> frames) {
  if (!sink_->is_dicom) return sink_->write(frames.data(), frames.size(), Component::kUint16, 1);
  const int bits = sink_->header.xa->bits;
  if (std::ranges::any_of(frames, [&](uint16_t pixel) { return pixel >> bits != 0; })) {
    sink_->refuse("a pixel has more than the " + std::to_string(bits) + " bits of its header");
  }
  sink_->write_dicom(frames, 0);
}

void SequenceWriter::write(std::span<const uint8_t> frames) {
  if (sink_->is_dicom) {
    throw UsageError("cannot write '" + sink_->path +
                     "': an angiogram holds no labels; write .mha, .nrrd or .nii.gz");
  }
  sink_->write(frames.data(), frames.size(), Component::kUint8, 1);
}

void SequenceWriter::write(std::span<const Vec3f> frames_px) {
  const Grid& grid = sink_->header.grid;
  require_sequence_path(sink_->path, grid, 1, /*vectors=*/true);
  const Vec3d x_mm = grid.direction.column(0) * grid.spacing_mm.x;
  const Vec3d y_mm = grid.direction.column(1) * grid.spacing_mm.y;
  const int channels = x_mm.z == 0 && y_mm.z == 0 ? 2 : 3;
  std::vector<float> values;
  values.reserve(frames_px.size() * static_cast<size_t>(channels));
  for (const Vec3f& v : frames_px) {
    const Vec3d mm = x_mm * static_cast<double>(v.x) + y_mm * static_cast<double>(v.y);
    for (int c = 0; c < channels; ++c) values.push_back(static_cast<float>(mm[c]));
  }
  sink_->write(values.data(), values.size(), Component::kFloat32, channels);
}

void SequenceWriter::finish() {
  const SequenceHeader& header = sink_->header;
  if (sink_->frames != header.frames) {
    sink_->refuse(std::to_string(sink_->frames) + " of " + std::to_string(header.frames) +
                  " frames were written");
  }
  if (sink_->is_dicom && !header.xa->window) sink_->put_window();
}

}  // namespace larch
