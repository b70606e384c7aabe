// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/sequence/sequence_writer.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <fstream>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/formats/nifti.h"
#include "larch/io/image/raw_image.h"
#include "larch/io/image/zstream.h"
#include "larch/io/xa/xa_bytes.h"

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
  return step >= io::kFinestSpacingMm && step <= io::kCoarsestSpacingMm && all <= io::kFarthestMm
             ? step
             : 0;
}

/// The middle and the width of the range that holds 99 % of the counted values.
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
  if (nifti) {
    io::nifti_header_bytes(path, {grid, Component::kInt16, nullptr, false}, frames);
  }
}

/// Where the bytes go, and what was written so far.
class SequenceWriter::Sink {
 public:
  Sink(const std::string& path, const SequenceHeader& header, int threads)
      : path_(path),
        header_(header),
        dicom_(file_extension(path) == ".dcm"),
        out_(path, file_extension(path) == ".nii.gz", threads) {
    if (dicom_) counts_.assign(65536, 0);
  }

  void write(const void* values, size_t count, Component component, int channels) {
    if (!begun_) begin(component, channels);
    if (component != component_ || channels != channels_) {
      throw UsageError("'" + path_ + "': a sequence has one kind of numbers");
    }
    const auto per_frame = static_cast<size_t>(header_.grid.voxels() * channels);
    if (count % per_frame != 0) throw UsageError("'" + path_ + "': frames are written whole");
    frames_ += static_cast<int64_t>(count / per_frame);
    if (frames_ > header_.frames) throw UsageError("'" + path_ + "': more frames than it has");
    out_.write(values, static_cast<int64_t>(count) * io::bytes_of(component));
  }

  /// Pixels without sign for DICOM; `zero`: which of them is the value 0.
  void count(std::span<const uint16_t> pixels, int zero) {
    if (!begun_) zero_ = zero;
    if (zero != zero_) throw UsageError("'" + path_ + "': a sequence has one kind of numbers");
    if (header_.xa->window) return;
    // The window of a large picture is told by every eighth pixel. Frames are whole, so that these
    // are the same however they are cut into batches.
    const auto per_frame = static_cast<size_t>(header_.grid.voxels());
    const size_t step = per_frame >= kLargePicture ? 8 : 1;
    for (size_t frame = 0; frame < pixels.size(); frame += per_frame) {
      const size_t end = std::min(frame + per_frame, pixels.size());
      for (size_t i = frame; i < end; i += step) ++counts_[pixels[i]];
    }
  }
  bool is_dicom() const { return dicom_; }
  const Grid& grid() const { return header_.grid; }
  int bits() const { return header_.xa ? header_.xa->bits : 16; }
  const std::string& path() const { return path_; }

  void finish() {
    if (frames_ != header_.frames) {
      throw UsageError("'" + path_ + "': " + std::to_string(frames_) + " of " +
                       std::to_string(header_.frames) + " frames were written");
    }
    out_.close();
    if (dicom_) put_window();
  }

 private:
  void begin(Component component, int channels) {
    begun_ = true;
    component_ = component;
    channels_ = channels;
    const std::string ending = file_extension(path_);
    std::string bytes;
    if (dicom_) {
      const io::XaBytes head =
          io::xa_bytes(path_, header_.grid, header_.frames, header_.times_ms, *header_.xa, zero_);
      centre_at_ = head.centre_at;
      width_at_ = head.width_at;
      bytes = head.bytes;
    } else if (const double step_ms = even_step_ms(header_.times_ms);
               ending == ".mha" || ending == ".nrrd") {
      Grid grid = header_.grid;
      grid.size.z = static_cast<int32_t>(header_.frames);
      grid.spacing_mm.z = step_ms > 0 ? step_ms : 1;
      const io::Pixels pixels{grid, component, nullptr, false, 1, channels};
      bytes = ending == ".mha" ? io::meta_header(pixels, 0) : io::nrrd_header(pixels, "raw");
    } else {
      const io::Pixels pixels{header_.grid, component, nullptr, false};
      const double first = header_.times_ms.empty() ? 0 : header_.times_ms.front();
      bytes = io::nifti_header_bytes(path_, pixels, header_.frames, {step_ms, first, 1});
    }
    out_.write(bytes.data(), static_cast<int64_t>(bytes.size()));
  }

  /// The window is known when all frames are: its place in the header was kept.
  void put_window() const {
    XaWindow window = header_.xa->window ? *header_.xa->window : window_of(counts_);
    if (!header_.xa->window) window.centre -= zero_;
    std::fstream file(path_, std::ios::binary | std::ios::in | std::ios::out);
    const std::string centre = io::window_text(window.centre);
    const std::string width = io::window_text(window.width);
    file.seekp(static_cast<std::streamoff>(centre_at_));
    file.write(centre.data(), static_cast<std::streamsize>(centre.size()));
    file.seekp(static_cast<std::streamoff>(width_at_));
    file.write(width.data(), static_cast<std::streamsize>(width.size()));
    file.close();
    if (file.fail()) {
      throw OutputError("cannot write '" + path_ +
                        "': the storage reported an error: check the free space and the folder's "
                        "permissions");
    }
  }

  std::string path_;
  SequenceHeader header_;
  bool dicom_ = false, begun_ = false;
  Component component_ = Component::kInt16;
  int channels_ = 1, zero_ = 0;
  int64_t frames_ = 0;
  size_t centre_at_ = 0, width_at_ = 0;
  std::vector<uint64_t> counts_;  ///< of the pixels of DICOM, by value
  io::ZWriter out_;
};

SequenceWriter::SequenceWriter(const std::string& path, const SequenceHeader& header, int threads) {
  require_sequence_path(path, header.grid, header.frames);
  if (header.frames < 1 || header.grid.size.z != 1) {
    throw UsageError("'" + path + "': a sequence has pictures, at least one");
  }
  if (file_extension(path) == ".dcm" && !header.xa) {
    throw UsageError("'" + path + "': DICOM needs a header of its own");
  }
  sink_ = std::make_unique<Sink>(path, header, threads);
}
SequenceWriter::~SequenceWriter() = default;
SequenceWriter::SequenceWriter(SequenceWriter&&) noexcept = default;
SequenceWriter& SequenceWriter::operator=(SequenceWriter&&) noexcept = default;

void SequenceWriter::write(std::span<const int16_t> frames) {
  if (!sink_->is_dicom()) return sink_->write(frames.data(), frames.size(), Component::kInt16, 1);
  if (sink_->bits() != 16) {
    throw UsageError("'" + sink_->path() + "': differences need 16 bits stored");
  }
  std::vector<uint16_t> pixels(frames.size());
  std::transform(frames.begin(), frames.end(), pixels.begin(), [](int16_t value) {
    return static_cast<uint16_t>(int32_t{value} + kDicomOffset);
  });
  sink_->count(pixels, kDicomOffset);
  sink_->write(pixels.data(), pixels.size(), Component::kUint16, 1);
}

void SequenceWriter::write(std::span<const uint16_t> frames) {
  if (sink_->is_dicom()) {
    const bool fits = std::all_of(frames.begin(), frames.end(),
                                  [&](uint16_t pixel) { return pixel >> sink_->bits() == 0; });
    if (!fits) {
      throw UsageError("'" + sink_->path() + "': a pixel has more than the " +
                       std::to_string(sink_->bits()) + " bits of its header");
    }
    sink_->count(frames, 0);
  }
  sink_->write(frames.data(), frames.size(), Component::kUint16, 1);
}

void SequenceWriter::write(std::span<const uint8_t> frames) {
  if (sink_->is_dicom()) {
    throw UsageError("cannot write '" + sink_->path() +
                     "': an angiogram holds no labels; write .mha, .nrrd or .nii.gz");
  }
  sink_->write(frames.data(), frames.size(), Component::kUint8, 1);
}

void SequenceWriter::write(std::span<const Vec3f> frames_px) {
  const Grid& grid = sink_->grid();
  require_sequence_path(sink_->path(), grid, 1, /*vectors=*/true);
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
  sink_->finish();
}

}  // namespace larch
