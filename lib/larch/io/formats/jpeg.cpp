// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <csetjmp>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <optional>
#include <vector>

#include <jerror.h>
#include <jpeglib.h>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/files/file.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/formats/formats.h"

// libjpeg itself, because ITK's reader crashes on damaged files and passes over missing data.

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

namespace {

constexpr std::string_view kZero("\0", 1);  // after a byte ff that is none of a marker
constexpr int kLongest = 16;                // bits of a code

// A table of codes (T.81, annex C), by their lengths: those of one length follow one another, and
// come after all that begin with a shorter code.
struct HuffmanTable {
  std::array<int32_t, kLongest + 1> end{};     // behind the last code, with zeros up to 16 bits
  std::array<int32_t, kLongest + 1> offset{};  // from the place of a symbol to its code
  std::array<uint8_t, 256> start{};  // by the next 8 bits: no code of fewer bits begins with them
  std::vector<uint8_t> symbols;
};

// The bits of entropy-coded data, up to the next marker.
class BitReader {
 public:
  BitReader(std::string_view data, size_t at) : data_(data), at_(at) {}

  // The next bits, zeros where there are none any more.
  uint32_t peek(int bits) {
    if (count_ < bits) fill();
    const uint64_t aligned = count_ >= bits ? bits_ >> (count_ - bits) : bits_ << (bits - count_);
    return static_cast<uint32_t>(aligned & ((uint64_t{1} << bits) - 1));
  }

  bool skip(int bits) {
    if (count_ < bits) fill();
    if (count_ < bits) return false;
    count_ -= bits;
    return true;
  }

  // Where the marker stands, if nothing but the rest of a byte is left before it.
  std::optional<size_t> marker() {
    fill();
    if (!ended_ || count_ >= 8) return std::nullopt;
    return at_;
  }

 private:
  void fill() {
    while (count_ <= 48 && !ended_) {
      const bool is_ff = at_ < data_.size() && data_[at_] == '\xff';
      ended_ = at_ >= data_.size() || (is_ff && data_.substr(at_ + 1, 1) != kZero);
      if (ended_) return;
      bits_ = bits_ << 8 | static_cast<uint8_t>(data_[at_]);
      count_ += 8;
      at_ += is_ff ? 2 : 1;
    }
  }

  std::string_view data_;
  size_t at_;
  uint64_t bits_ = 0;
  int count_ = 0;
  bool ended_ = false;
};

std::optional<int> next_symbol(const HuffmanTable& table, BitReader& in) {
  const auto bits = static_cast<int32_t>(in.peek(kLongest));
  for (size_t length = table.start[static_cast<size_t>(bits >> 8)]; length <= kLongest; ++length) {
    if (bits >= table.end[length]) continue;
    if (!in.skip(static_cast<int>(length))) return std::nullopt;
    const int32_t code = bits >> (kLongest - length);
    return table.symbols[static_cast<size_t>(code - table.offset[length])];
  }
  return std::nullopt;
}

class Walker {
 public:
  // Samples are decoded to `lossless`, and of lossy codestreams, without it, read over.
  explicit Walker(std::string_view data, std::span<uint16_t> lossless = {})
      : data_(data), samples_(lossless) {}

  bool walk() {
    while (true) {
      const std::optional<uint8_t> marker = next_marker();
      if (!marker) return false;
      if (*marker == 0xd9) return !parts_.empty() && std::ranges::all_of(parts_, &Part::is_read);
      if (data_.size() - at_ < 2) return false;
      const size_t length =
          FieldReader{data_.data(), true}.get<uint16_t>(static_cast<int64_t>(at_));
      if (length < 2 || length > data_.size() - at_) return false;
      const std::string_view body = data_.substr(at_ + 2, length - 2);
      at_ += length;
      if (!take(*marker, body)) return false;
    }
  }

 private:
  struct Part {  // a component
    uint8_t id = 0;
    int64_t across = 1, down = 1;  // sampling factors
    bool is_read = false;
    const HuffmanTable *dc = nullptr, *ac = nullptr;
  };

  // Any number of bytes ff may stand before one (T.81, B.1.1.2).
  std::optional<uint8_t> next_marker() {
    if (at_ >= data_.size() || data_[at_] != '\xff') return std::nullopt;
    while (at_ < data_.size() && data_[at_] == '\xff') ++at_;
    if (at_ >= data_.size()) return std::nullopt;
    return static_cast<uint8_t>(data_[at_++]);
  }

  bool take(uint8_t marker, std::string_view body) {
    if (marker == 0xc4) return take_tables(body);
    if (samples_.empty() ? marker == 0xc0 || marker == 0xc1 : marker == 0xc3) {
      return take_frame(body);
    }
    if (marker == 0xda) return take_scan(body);
    if (marker == 0xdd) {
      if (body.size() != 2) return false;
      interval_ = FieldReader{body.data(), true}.get<uint16_t>(0);
      return true;
    }
    // Tables of quantization, comments and application data have no part in the codes.
    return marker == 0xdb || marker == 0xfe || (marker >= 0xe0 && marker <= 0xef);
  }

  bool take_tables(std::string_view body) {
    while (!body.empty()) {
      if (body.size() < 1 + kLongest) return false;
      const auto place = static_cast<uint8_t>(body[0]);
      if ((place & 15) > 3 || place >> 4 > 1) return false;
      HuffmanTable& table = tables_[place >> 4][place & 15];
      table = {};
      int32_t code = 0, total = 0;
      for (size_t length = 1; length <= kLongest; ++length) {
        const auto count = static_cast<uint8_t>(body[length]);
        table.offset[length] = code - total;
        code += count;
        total += count;
        if (code > 1 << length) return false;
        table.end[length] = code << (kLongest - length);
        code <<= 1;
      }
      size_t shortest = 1;
      for (int32_t i = 0; i < 256; ++i) {
        while (shortest <= 8 && i << 8 >= table.end[shortest]) ++shortest;
        table.start[static_cast<size_t>(i)] = static_cast<uint8_t>(shortest);
      }
      body.remove_prefix(1 + kLongest);
      const auto symbols = body.substr(0, static_cast<size_t>(total));
      if (total > 256 || symbols.size() < static_cast<size_t>(total)) return false;
      table.symbols.assign(symbols.begin(), symbols.end());
      body.remove_prefix(symbols.size());
    }
    return true;
  }

  bool take_frame(std::string_view body) {
    if (!parts_.empty() || body.size() < 6) return false;
    const FieldReader in{body.data(), true};
    precision_ = in.get<uint8_t>(0);
    rows_ = in.get<uint16_t>(1);
    columns_ = in.get<uint16_t>(3);
    const size_t count = in.get<uint8_t>(5);
    if (count < 1 || count > 4 || body.size() != 6 + 3 * count) return false;
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(6 + 3 * i);
      const auto factors = in.get<uint8_t>(at + 1);
      Part part{in.get<uint8_t>(at), factors >> 4, factors & 15, false, nullptr, nullptr};
      if (part.across < 1 || part.across > 4 || part.down < 1 || part.down > 4) return false;
      across_ = std::max(across_, part.across);
      down_ = std::max(down_, part.down);
      parts_.push_back(part);
    }
    if (samples_.empty()) return true;
    const bool alike = count == 1 || (across_ == 1 && down_ == 1);
    return alike && precision_ >= 2 && precision_ <= 16 &&
           static_cast<size_t>(rows_ * columns_) * count == samples_.size();
  }

  // Each component in one scan, so that no file makes work beyond its size.
  bool take_scan(std::string_view body) {
    const size_t count = body.empty() ? 0 : static_cast<uint8_t>(body[0]);
    if (count < 1 || count > 4 || body.size() != 4 + 2 * count) return false;
    std::vector<Part*> parts;
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint8_t>(body[1 + 2 * i]);
      const auto tables = static_cast<uint8_t>(body[2 + 2 * i]);
      const auto part = std::ranges::find(parts_, id, &Part::id);
      if (part == parts_.end() || part->is_read || (tables & 15) > 3 || tables >> 4 > 3) {
        return false;
      }
      part->is_read = true;
      part->dc = &tables_[0][tables >> 4];
      part->ac = &tables_[1][tables & 15];
      parts.push_back(&*part);
    }
    if (samples_.empty()) return walk_scan(parts);
    predictor_ = static_cast<uint8_t>(body[1 + 2 * count]);
    shift_ = body[3 + 2 * count] & 15;
    return predictor_ >= 1 && predictor_ <= 7 && shift_ < precision_ && interval_ % columns_ == 0 &&
           walk_scan(parts);
  }

  bool walk_scan(const std::vector<Part*>& parts) {
    const int64_t unit = samples_.empty() ? 8 : 1;  // samples across and down of what is coded
    const bool alone = parts.size() == 1;
    const auto units = [&](int64_t samples, int64_t of_part, int64_t of_all) {
      if (!alone) return (samples + unit * of_all - 1) / (unit * of_all);
      return ((samples * of_part + of_all - 1) / of_all + unit - 1) / unit;
    };
    const int64_t groups =
        units(columns_, parts[0]->across, across_) * units(rows_, parts[0]->down, down_);
    BitReader in(data_, at_);
    for (int64_t group = 0; group < groups; ++group) {
      if (interval_ > 0 && group > 0 && group % interval_ == 0) {
        const std::optional<size_t> marker = in.marker();
        if (!marker) return false;
        at_ = *marker;
        if (next_marker() != 0xd0 + (group / interval_ - 1) % 8) return false;
        in = BitReader(data_, at_);
      }
      for (const Part* part : parts) {
        for (int64_t i = 0; i < (alone ? 1 : part->across * part->down); ++i) {
          if (!(samples_.empty() ? skip_block(*part, in) : take_sample(*part, in, group))) {
            return false;
          }
        }
      }
    }
    shift_back(parts);
    const std::optional<size_t> marker = in.marker();
    if (marker) at_ = *marker;
    return marker.has_value();
  }

  // A difference of 32768 is told without further bits (T.81, H.1.2.2). Sums are modulo 65536.
  bool take_sample(const Part& part, BitReader& in, int64_t place) {
    const std::optional<int> bits = next_symbol(*part.dc, in);
    if (!bits || *bits > 16) return false;
    int difference = 32768;
    if (*bits < 16) {
      difference = static_cast<int>(in.peek(*bits));
      if (!in.skip(*bits)) return false;
      if (*bits > 0 && difference >> (*bits - 1) == 0) difference -= (1 << *bits) - 1;
    }
    const auto channels = static_cast<int64_t>(parts_.size());
    uint16_t* sample = samples_.data() + place * channels + (&part - parts_.data());
    *sample = static_cast<uint16_t>(predicted(sample, channels, place) + difference);
    return true;
  }

  // T.81, H.1.2.1: from the samples to the left, above, and above to the left. The first row of a
  // scan and of a restart interval has none above.
  int predicted(const uint16_t* sample, int64_t channels, int64_t place) const {
    const bool in_first_row = (interval_ > 0 ? place % interval_ : place) < columns_;
    const int64_t row = columns_ * channels;
    if (place % columns_ == 0) return in_first_row ? 1 << (precision_ - shift_ - 1) : sample[-row];
    const int left = sample[-channels];
    if (in_first_row || predictor_ == 1) return left;
    const int above = sample[-row], corner = sample[-row - channels];
    if (predictor_ == 2) return above;
    if (predictor_ == 3) return corner;
    if (predictor_ == 4) return left + above - corner;
    if (predictor_ == 5) return left + ((above - corner) >> 1);
    if (predictor_ == 6) return above + ((left - corner) >> 1);
    return (left + above) >> 1;
  }

  // What the encoder shifted the samples of a scan down by (the point transform).
  void shift_back(const std::vector<Part*>& parts) {
    const int most = precision_ <= 8 ? 0xff : 0xffff;
    for (const Part* part : parts) {
      const auto first = static_cast<size_t>(part - parts_.data());
      for (size_t i = first; i < samples_.size(); i += parts_.size()) {
        samples_[i] = static_cast<uint16_t>(samples_[i] << shift_ & most);
      }
    }
  }

  static bool skip_block(const Part& part, BitReader& in) {
    const std::optional<int> bits = next_symbol(*part.dc, in);
    if (!bits || *bits > 15 || !in.skip(*bits)) return false;
    for (int k = 1; k < 64; ++k) {
      const std::optional<int> code = next_symbol(*part.ac, in);
      if (!code) return false;
      const int zeros = *code >> 4, size = *code & 15;
      if (size == 0 && zeros != 15) break;  // the end of the block
      k += zeros;
      if (k > 63 || !in.skip(size)) return false;
    }
    return true;
  }

  std::string_view data_;
  size_t at_ = 2;  // after the start of the image
  std::array<std::array<HuffmanTable, 4>, 2> tables_{};
  std::vector<Part> parts_;
  int64_t rows_ = 0, columns_ = 0, across_ = 1, down_ = 1, interval_ = 0;
  int precision_ = 0, predictor_ = 1, shift_ = 0;
  std::span<uint16_t> samples_;  // of a lossless codestream
};

}  // namespace

bool is_whole_jpeg(std::string_view data) {
  return data.substr(0, 2) == "\xff\xd8" && Walker(data).walk();
}

bool decode_lossless_jpeg(std::string_view data, std::span<uint16_t> samples) {
  return data.substr(0, 2) == "\xff\xd8" && !samples.empty() && Walker(data, samples).walk();
}

}  // namespace larch::io
