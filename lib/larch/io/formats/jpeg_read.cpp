// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// libjpeg itself, because ITK's reader crashes on damaged files and passes over missing data.
#include <csetjmp>
#include <cstdio>
#include <cstring>

#include <jerror.h>
#include <jpeglib.h>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/files/file.h"
#include "larch/io/bytes/message.h"
#include "larch/io/formats/pictures.h"

namespace larch::io {
namespace {

// libjpeg reports errors by a callback that must not return: the functions that call it keep no
// objects of their own, and longjmp leads out.
class JpegFile {
 public:
  // Three components are what the markers and names in the file say, or red, green and blue.
  JpegFile(const std::string& path, std::string bytes, bool is_rgb)
      : path_(path), bytes_(std::move(bytes)), is_rgb_(is_rgb) {
    jpeg_.err = jpeg_std_error(&errors_);
    errors_.error_exit = on_error;
    errors_.emit_message = on_message;
    jpeg_.client_data = this;
  }
  ~JpegFile() { jpeg_destroy_decompress(&jpeg_); }
  JpegFile(const JpegFile&) = delete;
  JpegFile& operator=(const JpegFile&) = delete;

  Header header() {
    if (bytes_.empty() || !read_header()) fail();
    if (jpeg_.num_components != 1 && jpeg_.num_components != 3) {
      bad(path_, std::to_string(jpeg_.num_components) +
                     " components (CMYK?) are not supported; convert to RGB or grey");
    }
    Header header;
    header.grid.size = {static_cast<int32_t>(jpeg_.image_width),
                        static_cast<int32_t>(jpeg_.image_height), 1};
    header.component = Component::kUint8;
    header.channels = jpeg_.num_components;
    header.colour = header.channels == 3;
    header.is_lossy = true;
    // A block of 8 x 8 samples takes two bits at least.
    header.most_bytes = static_cast<int64_t>(bytes_.size()) * 2048;
    return header;
  }

  std::vector<std::byte> voxels(const Header& header) {
    std::vector<std::byte> voxels = allocate_voxels(checked_bytes(header, path_), path_);
    // All coefficients of a picture in several scans are held until the last scan is read.
    if (jpeg_has_multiple_scans(&jpeg_) != 0) {
      decoder_bytes_ = voxels.size() * sizeof(JCOEF);
      if (!host_memory_allows(decoder_bytes_)) fail_for_memory();
    }
    const size_t stride = voxels.size() / static_cast<size_t>(header.grid.size.y);
    if (!read_rows(reinterpret_cast<JSAMPLE*>(voxels.data()), stride)) fail();
    return voxels;
  }

 private:
  static JpegFile& self(j_common_ptr jpeg) { return *static_cast<JpegFile*>(jpeg->client_data); }
  static void on_error(j_common_ptr jpeg) {
    jpeg->err->format_message(jpeg, self(jpeg).message_);
    std::longjmp(self(jpeg).out_, 1);
  }
  // Level -1 is a warning about damaged data, which libjpeg would fill up with grey.
  static void on_message(j_common_ptr jpeg, int level) {
    if (level < 0) on_error(jpeg);
  }

  // A scan of some bytes goes through all coefficients: a small file of many would take hours.
  static void on_progress(j_common_ptr jpeg) {
    constexpr int kMaximumScans = 500;
    JpegFile& file = self(jpeg);
    if (file.jpeg_.input_scan_number <= kMaximumScans) return;
    std::snprintf(file.message_, sizeof file.message_, "more than %d scans", kMaximumScans);
    std::longjmp(file.out_, 1);
  }

  bool read_header() {
    if (setjmp(out_) != 0) return false;
    jpeg_create_decompress(&jpeg_);
    jpeg_.client_data = this;  // the call above clears it
    progress_.progress_monitor = on_progress;
    jpeg_.progress = &progress_;
    jpeg_mem_src(&jpeg_, reinterpret_cast<const unsigned char*>(bytes_.data()), bytes_.size());
    jpeg_read_header(&jpeg_, TRUE);
    if (jpeg_.num_components == 1) jpeg_.out_color_space = JCS_GRAYSCALE;
    if (jpeg_.num_components == 3) jpeg_.out_color_space = JCS_RGB;
    if (jpeg_.num_components == 3 && is_rgb_) jpeg_.jpeg_color_space = JCS_RGB;
    return true;
  }

  bool read_rows(JSAMPLE* voxels, size_t stride) {
    if (setjmp(out_) != 0) return false;
    jpeg_start_decompress(&jpeg_);
    while (jpeg_.output_scanline < jpeg_.output_height) {
      JSAMPROW row = voxels + jpeg_.output_scanline * stride;
      jpeg_read_scanlines(&jpeg_, &row, 1);
    }
    jpeg_finish_decompress(&jpeg_);
    return true;
  }

  [[noreturn]] void fail_for_memory() const {
    throw MemoryError("'" + path_ + "': " + out_of_memory_text(decoder_bytes_));
  }

  [[noreturn]] void fail() const {
    if (errors_.msg_code == JERR_OUT_OF_MEMORY) fail_for_memory();
    bad(path_, std::string("the picture is damaged or truncated (") + message_ +
                   "); copy or export it again");
  }

  std::string path_, bytes_;
  bool is_rgb_;
  size_t decoder_bytes_ = 0;  // that libjpeg needs, where it is much
  jpeg_error_mgr errors_{};
  jpeg_progress_mgr progress_{};
  jpeg_decompress_struct jpeg_{};
  std::jmp_buf out_{};
  char message_[JMSG_LENGTH_MAX] = "the file is empty";
};

}  // namespace

std::unique_ptr<ImageFile> open_jpeg(const std::string& path, const OpenOptions&) {
  return std::make_unique<DecodedImage>(path, JpegFile(path, read_file(path), false).header(), [=] {
    JpegFile file(path, read_file(path), false);
    return file.voxels(file.header());
  });
}

std::vector<std::byte> decode_colour_jpeg(const std::string& path, std::string bytes, bool is_rgb) {
  JpegFile file(path, std::move(bytes), is_rgb);
  return file.voxels(file.header());
}

}  // namespace larch::io
