// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include "larch/io/image/raw_image.h"

namespace larch::io {

/// Reads a JPEG file of 8 bits and one or three components; damaged or missing data and more than
/// 500 scans are an error. Throws InputError and MemoryError. The header alone: probe_jpeg.
RawImage read_jpeg(const std::string& path);
Header probe_jpeg(const std::string& path);

/// The same for the bytes of a codestream from the file `path`, whose three components are red,
/// green and blue whatever its markers say.
RawImage decode_rgb_jpeg(const std::string& path, std::string bytes);

}  // namespace larch::io
