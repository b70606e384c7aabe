// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// libpng itself, because ITK's reader aborts the process on some damaged headers.
#include <algorithm>
#include <cstdio>
#include <cstring>

#include <png.h>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/formats/formats.h"

namespace larch::io {
namespace {

// libpng reports errors by longjmp: the functions that call it keep no objects of their own.
class PngFile {
 public:
  PngFile(const std::string& path, std::string bytes) : path_(path), bytes_(std::move(bytes)) {
    if (bytes_.size() < 8 ||
        png_sig_cmp(reinterpret_cast<png_const_bytep>(bytes_.data()), 0, 8) != 0) {
      bad(path_, "not a PNG picture, or truncated; copy or export it again");
    }
    png_ = png_create_read_struct(PNG_LIBPNG_VER_STRING, this, on_error, on_warning);
    info_ = png_ != nullptr ? png_create_info_struct(png_) : nullptr;
    if (info_ == nullptr) {
      png_destroy_read_struct(&png_, nullptr, nullptr);
      throw MemoryError("'" + path_ + "': not enough host memory to read it");
    }
  }
  ~PngFile() { png_destroy_read_struct(&png_, &info_, nullptr); }
  PngFile(const PngFile&) = delete;
  PngFile& operator=(const PngFile&) = delete;

  Header header(Palette palette) {
    if (!read_header(palette)) fail();
    Header header;
    header.grid.size = {static_cast<int32_t>(png_get_image_width(png_, info_)),
                        static_cast<int32_t>(png_get_image_height(png_, info_)), 1};
    header.component =
        png_get_bit_depth(png_, info_) == 16 ? Component::kUint16 : Component::kUint8;
    header.channels = png_get_channels(png_, info_);
    header.colour = header.channels == 3;
    header.most_bytes = static_cast<int64_t>(bytes_.size()) * kMaximumDeflate;
    return header;
  }

  std::vector<std::byte> voxels(const Header& header) {
    std::vector<std::byte> voxels = allocate_voxels(checked_bytes(header, path_), path_);
    std::vector<png_bytep> rows(static_cast<size_t>(header.grid.size.y));
    const size_t stride = voxels.size() / rows.size();
    for (size_t y = 0; y < rows.size(); ++y) {
      rows[y] = reinterpret_cast<png_bytep>(voxels.data() + y * stride);
    }
    if (png_get_rowbytes(png_, info_) != stride || !read_rows(rows.data())) fail();
    return voxels;
  }

 private:
  static void on_error(png_structp png, png_const_charp message) {
    auto* self = static_cast<PngFile*>(png_get_error_ptr(png));
    std::snprintf(self->message_, sizeof self->message_, "%s", message);
    png_longjmp(png, 1);
  }
  static void on_warning(png_structp /*png*/, png_const_charp /*message*/) {}
  static void on_read(png_structp png, png_bytep to, png_size_t count) {
    auto* self = static_cast<PngFile*>(png_get_io_ptr(png));
    if (count > self->bytes_.size() - self->at_) png_error(png, "the file ends early");
    std::memcpy(to, self->bytes_.data() + self->at_, count);
    self->at_ += count;
  }

  bool read_header(Palette palette) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    // Texts, profiles and palettes that are suggested: libpng allocates what their lengths claim.
    png_set_keep_unknown_chunks(png_, PNG_HANDLE_CHUNK_NEVER, nullptr, -1);
    png_set_read_fn(png_, this, on_read);
    png_read_info(png_, info_);
    const int type = png_get_color_type(png_, info_);
    const int bits = png_get_bit_depth(png_, info_);
    if (type == PNG_COLOR_TYPE_PALETTE && palette == Palette::kExpand) {
      png_set_palette_to_rgb(png_);
    } else if (type == PNG_COLOR_TYPE_GRAY && bits < 8 && palette == Palette::kExpand) {
      png_set_expand_gray_1_2_4_to_8(png_);
    } else if (bits < 8) {
      png_set_packing(png_);
    }
    if (bits == 16) png_set_swap(png_);  // PNG is big-endian
    png_set_strip_alpha(png_);
    png_set_interlace_handling(png_);
    png_read_update_info(png_, info_);
    return true;
  }

  bool read_rows(png_bytepp rows) {
    if (setjmp(png_jmpbuf(png_)) != 0) return false;
    png_read_image(png_, rows);
    png_read_end(png_, nullptr);
    return true;
  }

  [[noreturn]] void fail() const {
    bad(path_, std::string("the picture is damaged or truncated (") + message_ +
                   "); copy or export it again");
  }

  std::string path_, bytes_;
  size_t at_ = 0;
  char message_[128] = "its size contradicts itself";
  png_structp png_ = nullptr;
  png_infop info_ = nullptr;
};

}  // namespace

std::unique_ptr<ImageFile> open_png(const std::string& path, const OpenOptions& options) {
  const Palette palette = options.palette;
  return std::make_unique<DecodedImage>(path, PngFile(path, read_file(path)).header(palette), [=] {
    PngFile file(path, read_file(path));
    return file.voxels(file.header(palette));
  });
}

void write_png(const std::string& path, const Pixels& pixels) {
  require_one_slice(path, pixels.grid.size);
  if (!pixels.colour || pixels.channels != 3 || pixels.component != Component::kUint8) {
    require_picture(path, pixels, {Component::kUint8});
  }
  png_image image{};
  image.version = PNG_IMAGE_VERSION;
  image.width = static_cast<png_uint_32>(pixels.grid.size.x);
  image.height = static_cast<png_uint_32>(pixels.grid.size.y);
  image.format = pixels.colour ? PNG_FORMAT_RGB : PNG_FORMAT_GRAY;
  // libpng would deflate all of it to say how many bytes that are; the macro states a bound.
  png_alloc_size_t size = PNG_IMAGE_PNG_SIZE_MAX(image);
  std::string bytes(size, '\0');
  if (png_image_write_to_memory(&image, bytes.data(), &size, 0, pixels.voxels, 0, nullptr) != 0) {
    write_file(path, std::string_view(bytes).substr(0, size));
    return;
  }
  throw OutputError("cannot write '" + path + "': " + image.message);
}

}  // namespace larch::io
