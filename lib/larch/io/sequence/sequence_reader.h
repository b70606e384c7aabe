// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "larch/io/formats/read_options.h"
#include "larch/io/xa/angiogram.h"

namespace larch {

/// Tells the user how to go on with a run of which each frame is a file.
inline constexpr const char* kJoinFrames =
    "If each file is one frame of a run, export the run as one multi-frame file, or join the files "
    "in their order, for example with SimpleITK: WriteImage(ReadImage(names), 'run.nrrd')";

/// Reads the frames of a sequence in batches, with memory for one batch whatever the length of the
/// sequence:
/// - DICOM of several frames: uncompressed from their places in the file, compressed ones each
///   from its fragments. Deflated files, which are small, are kept inflated.
/// - MetaImage (.mha, .mhd), NRRD (.nrrd, .nhdr) and NIfTI (.nii, .nii.gz), whose last axis longer
///   than 1 is that of the frames, whatever it is called. Compressed ones are inflated from the
///   start again when an earlier batch is asked for.
/// Values must be whole and fit 16 bits, of one kind for all (from -32768 or from 0); grey alone.
class SequenceReader {
 public:
  /// Reads the header, whose warnings are in about().warnings; of formats other than DICOM that
  /// have more than 8 bits also all values once, for Angiogram::bits. Throws InputError: not an
  /// image, damaged, truncated, colours, a volume (DICOM frames at places of their own; four axes
  /// with several slices), more than 16 bits.
  explicit SequenceReader(const std::string& path, const ReadOptions& options = {});
  ~SequenceReader();
  SequenceReader(SequenceReader&&) noexcept;
  SequenceReader& operator=(SequenceReader&&) noexcept;

  const Angiogram& about() const;
  /// Tells what files other than DICOM do not: Angiogram::intensity_sign. Throws UsageError for
  /// DICOM.
  void tell_contrast(bool raises);
  /// Pixels of a frame.
  int64_t frame_pixels() const { return about().grid.voxels(); }

  /// The pixels (stored value - least_stored) of frames `first` to `first + count - 1`, counted
  /// from 0, frame after frame, x fastest, into `to` of count * frame_pixels() numbers. Not to be
  /// called from two threads at a time. Throws InputError for damaged data and numbers beyond the
  /// bits of the header, UsageError for frames that are not there, MemoryError.
  void read(int64_t first, int64_t count, std::span<uint16_t> to);

 private:
  struct Source;
  std::unique_ptr<Source> source_;
};

}  // namespace larch
