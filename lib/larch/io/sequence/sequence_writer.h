// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/data/grid.h"
#include "larch/io/xa/xa_header.h"

namespace larch {

/// Holds what is written, for all formats.
struct SequenceHeader {
  Grid grid{};  ///< of one frame, size.z is 1
  int64_t frames = 1;
  /// Of each frame, or empty: then a DICOM file, which must have some, gets those of the display
  /// rate, or of 15 frames per second, and an ImageComments that says it.
  std::vector<double> times_ms{};
  std::optional<XaHeader> xa{};  ///< needed for .dcm
};

/// Throws UsageError, naming the endings, unless a sequence of pictures (or, with `vectors`, of
/// vectors) can be written to `path`: .dcm .mha .nrrd .nii .nii.gz, vectors .mha .nrrd. For use
/// before a long computation; also for frames or sizes that the format cannot hold.
void require_sequence_path(const std::string& path, const Grid& grid, int64_t frames,
                           bool vectors = false);

/// Writes a sequence in batches, in memory for one batch. `path` is the temporary that a Writer of
/// Outputs or write_atomically gives, by whose ending the format goes:
/// - .dcm: multi-frame X-Ray Angiographic Image Storage, 16 bits, explicit little endian;
/// - .mha, .nrrd: uncompressed, because noise does not become smaller; the third axis is that of
///   the frames, with the time between frames in ms as its spacing (1 if they are not even);
/// - .nii.gz, which `threads` compress, .nii: four axes.
/// The same frames give the same bytes, however they are cut into batches.
class SequenceWriter {
 public:
  /// Throws UsageError as require_sequence_path does, and for .dcm without a header of its own;
  /// OutputError.
  SequenceWriter(const std::string& path, const SequenceHeader& header, int threads = 1);
  ~SequenceWriter();
  SequenceWriter(SequenceWriter&&) noexcept;
  SequenceWriter& operator=(SequenceWriter&&) noexcept;

  /// The next whole frames: differences. DICOM stores them as unsigned numbers, + 32768, and says
  /// so as its RescaleIntercept.
  void write(std::span<const int16_t> frames);
  /// The next whole frames: pixels as they are stored. A file has one kind of numbers.
  void write(std::span<const uint16_t> frames);
  /// The next whole frames: labels. Not in DICOM.
  void write(std::span<const uint8_t> frames);
  /// Vectors in pixels, x and y; stored as float32 in LPS mm (by spacing and direction of the
  /// grid). .mha and .nrrd alone.
  void write(std::span<const Vec3f> frames_px);
  /// Ends the file. Throws OutputError, and UsageError if frames are missing.
  void finish();

 private:
  class Sink;
  std::unique_ptr<Sink> sink_;
};

}  // namespace larch
