// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>

#include "larch/io/image/raw_image.h"
#include "larch/io/xa/angiogram.h"

namespace larch::io {

/// Where SequenceReader gets its frames.
class FrameSource {
 public:
  FrameSource() = default;
  virtual ~FrameSource() = default;
  FrameSource(const FrameSource&) = delete;
  FrameSource& operator=(const FrameSource&) = delete;

  /// As SequenceReader::read; the frames are there and `to` has room for them.
  virtual void read(int64_t first, int64_t count, std::span<uint16_t> to) = 0;

  Angiogram about{};
};

/// Throw as the constructor of SequenceReader does.
std::unique_ptr<FrameSource> open_dicom_frames(const std::string& path, const ReadOptions& options);
std::unique_ptr<FrameSource> open_file_frames(const std::string& path, const ReadOptions& options);

/// Whole numbers of a component as pixels without sign, the number `least` as 0.
void to_pixels(const std::vector<std::byte>& stored, Component component, int32_t least,
               std::span<uint16_t> to);

}  // namespace larch::io
