// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <memory>
#include <string>

#include "larch/io/formats/image_file.h"

/// The one way of Larch's programs to image files, which leads through itk::ImageIOFactory.
namespace larch::io {

/// An image that was opened.
class OpenImage {
 public:
  /// Reads the header. Throws InputError: no such file, not an image, an ending of a format that is
  /// not read, or what the reader of the format refuses; MemoryError.
  OpenImage(const std::string& path, const OpenOptions& options);
  ~OpenImage();
  OpenImage(OpenImage&&) noexcept;
  OpenImage& operator=(OpenImage&&) noexcept;

  ImageFile& file() const;
  const Header& header() const { return file().header(); }
  /// Stored voxels of some frames, or of some slices of an image of one frame, to `to`.
  void read(const FrameRange& range, void* to);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Writes an image whole, atomically, by the ending of `path`. Throws UsageError, OutputError.
void write_image(const std::string& path, const Pixels& pixels);

/// Writes the raw voxels of `pixels` piece by piece to a file that has a temporary name. What is
/// written is whole when all slices of the last axis are there.
class ImageStream {
 public:
  /// Throws UsageError for an ending that cannot be written so.
  ImageStream(const std::string& path, const Pixels& pixels);
  ~ImageStream();
  /// The next `count` frames. Throws UsageError, OutputError.
  void write(const void* voxels, int64_t count);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// Throws UsageError with the list of known endings unless an image can be written to `path`, and
/// if that is of a format for 2-D pictures and `size` is none.
void require_writable(const std::string& path);
void require_holds(const std::string& path, const Vec3i& size);

}  // namespace larch::io
