// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Writers whose formats are a few lines; ITK's own do not notice a full disk.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include <png.h>
#include <zlib.h>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/formats/formats.h"
#include "larch/io/image/image.h"

namespace larch {
namespace io {
namespace {

std::string number(double value) {
  char text[40];
  std::snprintf(text, sizeof text, "%.17g", value + 0.0);
  return text;
}

std::string vector_text(const Vec3d& v, const char* open, const char* between, const char* close) {
  return open + number(v.x) + between + number(v.y) + between + number(v.z) + close;
}

// window_bits 15 gives a zlib stream, 31 a gzip stream without name and time.
std::string deflated(const void* data, size_t bytes, int window_bits, const std::string& path) {
  z_stream stream{};
  if (deflateInit2(&stream, 6, Z_DEFLATED, window_bits, 8, Z_DEFAULT_STRATEGY) != Z_OK) {
    throw MemoryError("'" + path + "': not enough host memory to compress it");
  }
  std::string out;
  std::string block(1 << 18, '\0');
  const auto* next = static_cast<const Bytef*>(data);
  size_t left = bytes;
  int status = Z_OK;
  while (status == Z_OK) {
    if (stream.avail_in == 0 && left > 0) {
      stream.next_in = const_cast<Bytef*>(next);
      stream.avail_in = static_cast<uInt>(std::min<size_t>(left, 1 << 30));
      next += stream.avail_in;
      left -= stream.avail_in;
    }
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = deflate(&stream, left == 0 ? Z_FINISH : Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return out;
}

size_t byte_count(const Pixels& pixels) {
  return static_cast<size_t>(pixels.grid.voxels()) * static_cast<size_t>(pixels.channels) *
         static_cast<size_t>(bytes_of(pixels.component));
}

void write_png_bytes(const std::string& path, png_image& image, const void* pixels) {
  png_alloc_size_t size = 0;
  std::string bytes;
  if (png_image_write_get_memory_size(image, size, 0, pixels, 0, nullptr) != 0) {
    bytes.resize(size);
    if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels, 0, nullptr) != 0) {
      bytes.resize(size);
      write_file(path, bytes);
      return;
    }
  }
  throw OutputError("cannot write '" + path + "': " + image.message);
}

}  // namespace

void require_one_slice(const std::string& path, const Vec3i& size) {
  if (size.z == 1) return;
  throw UsageError("cannot write '" + path +
                   "': this format holds 2-D pictures, and the volume has " +
                   std::to_string(size.z) + " slices; write .nii.gz instead");
}

void require_picture(const std::string& path, const Pixels& pixels,
                     std::initializer_list<Component> allowed) {
  require_one_slice(path, pixels.grid.size);
  if (pixels.channels > 1) {
    throw UsageError("cannot write '" + path +
                     "': this format does not hold vectors; write .nii.gz instead");
  }
  if (std::find(allowed.begin(), allowed.end(), pixels.component) == allowed.end()) {
    throw UsageError("cannot write '" + path + "': this format does not hold " +
                     name_of(pixels.component) + " values; write .nii.gz instead");
  }
}

std::string nrrd_header(const Pixels& pixels, const char* encoding) {
  const Grid& grid = pixels.grid;
  const bool vectors = pixels.channels > 1;
  std::string text =
      "NRRD0004\n" + (pixels.description.empty() ? "" : "content: " + pixels.description + "\n") +
      "type: " + (pixels.component == Component::kFloat32 ? "float" : name_of(pixels.component)) +
      "\ndimension: " + (vectors ? "4" : "3") + "\nspace: left-posterior-superior\nsizes: " +
      (vectors ? std::to_string(pixels.channels) + " " : "") + std::to_string(grid.size.x) + " " +
      std::to_string(grid.size.y) + " " + std::to_string(grid.size.z) +
      "\nspace directions:" + (vectors ? " none" : "");
  for (int axis = 0; axis < 3; ++axis) {
    text += vector_text(grid.direction.column(axis) * grid.spacing_mm[axis], " (", ",", ")");
  }
  text += std::string("\nkinds:") + (vectors ? " vector" : "") +
          " domain domain domain\nendian: little\nencoding: " + encoding +
          "\nspace origin: " + vector_text(grid.origin_mm, "(", ",", ")") + "\n\n";
  return text;
}

void write_nrrd(const std::string& path, const Pixels& pixels) {
  write_file(path,
             nrrd_header(pixels, "gzip") + deflated(pixels.voxels, byte_count(pixels), 31, path));
}

std::string meta_header(const Pixels& pixels, size_t deflated_bytes) {
  const Grid& grid = pixels.grid;
  constexpr const char* kTypes[] = {"MET_UCHAR", "MET_CHAR",  "MET_USHORT",     "MET_SHORT",
                                    "MET_UINT",  "MET_INT",   "MET_ULONG_LONG", "MET_LONG_LONG",
                                    "MET_FLOAT", "MET_DOUBLE"};
  std::string text =
      "ObjectType = Image\nNDims = 3\n" +
      (pixels.description.empty() ? "" : "Comment = " + pixels.description + "\n") +
      "BinaryData = True\nBinaryDataByteOrderMSB = "
      "False\nCompressedData = " +
      (deflated_bytes == 0 ? "False"
                           : "True\nCompressedDataSize = " + std::to_string(deflated_bytes)) +
      "\nTransformMatrix =";
  for (int axis = 0; axis < 3; ++axis) {
    text += vector_text(grid.direction.column(axis), " ", " ", "");
  }
  text +=
      "\nOffset = " + vector_text(grid.origin_mm, "", " ", "") +
      "\nCenterOfRotation = 0 0 0\nElementSpacing = " + vector_text(grid.spacing_mm, "", " ", "") +
      "\nDimSize = " + std::to_string(grid.size.x) + " " + std::to_string(grid.size.y) + " " +
      std::to_string(grid.size.z) +
      (pixels.channels > 1 ? "\nElementNumberOfChannels = " + std::to_string(pixels.channels)
                           : "") +
      "\nElementType = " + kTypes[static_cast<int>(pixels.component)] +
      "\nElementDataFile = LOCAL\n";
  return text;
}

void write_meta(const std::string& path, const Pixels& pixels) {
  const std::string voxels = deflated(pixels.voxels, byte_count(pixels), 15, path);
  write_file(path, meta_header(pixels, voxels.size()) + voxels);
}

void write_grey_png(const std::string& path, const Pixels& pixels) {
  require_picture(path, pixels, {Component::kUint8});
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.grid.size.x);
  image.height = static_cast<png_uint_32>(pixels.grid.size.y);
  image.format = PNG_FORMAT_GRAY;
  write_png_bytes(path, image, pixels.voxels);
}

}  // namespace io

void write_png(const std::string& path, const RgbImage& rgb) {
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(rgb.width);
  image.height = static_cast<png_uint_32>(rgb.height);
  image.format = PNG_FORMAT_RGB;
  io::write_png_bytes(path, image, rgb.rgb.data());
}

}  // namespace larch
