// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// libtiff takes the directories apart and decodes; what they claim is compared with the file first.
#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <type_traits>
#include <vector>

#include <tiffio.h>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/files/file.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"
#include "larch/io/formats/formats.h"

namespace larch::io {
namespace {

using Wide = unsigned __int128;

/// How many times the bytes of a file its directories and their tables may come to. In a sound file
/// each byte belongs to one of them; but pages of equal strips may share the table of their sizes.
constexpr uint64_t kSharedTables = 4;
/// A file of one bit per pixel becomes four bytes per pixel.
constexpr uint64_t kMaximumExpansion = 32;

/// Returns the most bytes that a stored byte becomes, each limit by what the densest code of the
/// compression says, so that a blank picture passes. `width`: pixels of a row.
uint64_t most_growth(uint16_t compression, uint64_t width) {
  constexpr std::pair<uint16_t, uint64_t> kGrowths[] = {
      {COMPRESSION_NONE, 1},
      {COMPRESSION_CCITTRLE, 256},  // 12 bits for 2560 white pixels
      {COMPRESSION_CCITTRLEW, 256},
      {COMPRESSION_LZW, 2560},  // a code of 12 bits is at most 4096 - 258 bytes
      {COMPRESSION_DEFLATE, kMaximumDeflate},
      {COMPRESSION_ADOBE_DEFLATE, kMaximumDeflate},
      {COMPRESSION_PACKBITS, 64},   // two bytes become 128
      {COMPRESSION_ZSTD, 32768},    // 4 bytes repeat one over a block of 128 KiB
      {COMPRESSION_JBIG, 1 << 24},  // some ten bytes are a picture of one colour, of whatever size
      {COMPRESSION_JP2000, 1 << 24},
      {COMPRESSION_LERC, 1 << 24},
      {COMPRESSION_WEBP, 1 << 24},
      {COMPRESSION_JXL, 1 << 24}};
  // By two dimensions, a row as the one above is one bit.
  if (compression == COMPRESSION_CCITTFAX3 || compression == COMPRESSION_CCITTFAX4) {
    return std::clamp<uint64_t>(width, 256, 65536);
  }
  for (const auto& [name, growth] : kGrowths)
    if (name == compression) return growth;
  return 8192;  // JPEG, with few bits for 64 pixels; LZMA, with 0.3 bits for 273 bytes
}

/// The contents of pages: bytes in the file, and how many each of them becomes at most.
struct Held {
  uint64_t stored = 0, growth = 1;

  Wide most() const { return static_cast<Wide>(stored) * growth; }
};

/// Properties that all pages of a volume share.
struct Kind {
  uint32_t width = 0, length = 0;
  uint16_t bits = 0, samples = 0, planar = 0, format = 0, photometric = 0;
  bool by_rows = false;  ///< the stored numbers are read, not colours that libtiff makes of them
  Component component = Component::kUint8;
  int channels = 4;

  bool operator==(const Kind&) const = default;
  bool palette() const { return by_rows && photometric == PHOTOMETRIC_PALETTE; }
  bool colours() const { return !by_rows || photometric > PHOTOMETRIC_MINISBLACK; }
  size_t row_bytes() const {
    return size_t{width} * static_cast<size_t>(channels) * static_cast<size_t>(bytes_of(component));
  }
};

/// Returns the handlers of messages that a handle of libtiff has: of errors the first is kept.
int keep_message(TIFF* /*tif*/, void* text, const char* /*module*/, const char* format,
                 va_list values) {
  auto* kept = static_cast<std::array<char, 200>*>(text);
  if (kept != nullptr && kept->front() == '\0') {
    std::vsnprintf(kept->data(), kept->size(), format, values);
  }
  return 1;  // so that libtiff does not print it
}

class TiffFile {
 public:
  /// As fopen, with the letters of libtiff. A file that cannot be opened has no handle.
  TiffFile(const std::string& path, const char* mode) : path_(path) {
    TIFFOpenOptions* options = TIFFOpenOptionsAlloc();
    TIFFOpenOptionsSetErrorHandlerExtR(options, keep_message, &message_);
    TIFFOpenOptionsSetWarningHandlerExtR(options, keep_message, nullptr);
    tif_ = TIFFOpenExt(path.c_str(), mode, options);
    TIFFOpenOptionsFree(options);
  }
  ~TiffFile() {
    if (tif_ != nullptr) TIFFClose(tif_);
  }
  TiffFile(const TiffFile&) = delete;
  TiffFile& operator=(const TiffFile&) = delete;

  TIFF* handle() const { return tif_; }

  /// Reads all directories and checks what they claim. Throws InputError.
  Header header() {
    if (tif_ == nullptr) fail("it is no TIFF file, is damaged or must not be read");
    size_ = static_cast<uint64_t>(file_bytes(path_));
    Held held;
    int pages = 0;
    bool same = true, others = false, first_aside = false;
    do {
      next_directory();
      const Held page = check_claims();
      held.stored = std::min(held.stored + page.stored, size_);  // pages may share bytes
      held.growth = std::max(held.growth, page.growth);
      const bool aside =
          (field<uint32_t>(TIFFTAG_SUBFILETYPE) & (FILETYPE_REDUCEDIMAGE | FILETYPE_MASK)) != 0;
      if (++pages == 1) {
        kind_ = kind();
        if (const auto text = field<const char*>(TIFFTAG_IMAGEDESCRIPTION)) description_ = text;
        first_aside = aside;
        continue;
      }
      others = others || !aside;
      same = same && !aside && !first_aside && kind() == kind_;
    } while (TIFFLastDirectory(tif_) == 0);
    if (first_aside && pages > 1) {
      bad(path_,
          "its first page is a thumbnail or a mask; write the picture itself to a file of its own");
    }
    if (others && !same) {
      bad(path_,
          "its pages are of different sizes or kinds; write one of them to a file of its own");
    }
    check_description(others ? pages : 1);
    Header header;
    const auto compression = field<uint16_t>(TIFFTAG_COMPRESSION);
    header.is_lossy = compression == COMPRESSION_JPEG || compression == COMPRESSION_OJPEG;
    header.grid.size = {static_cast<int32_t>(kind_.width), static_cast<int32_t>(kind_.length),
                        others ? pages : 1};
    header.component = kind_.component;
    header.channels = kind_.channels;
    header.colour = (kind_.channels == 3 || kind_.channels == 4) && kind_.colours();
    header.most_bytes =
        static_cast<int64_t>(std::min<Wide>(held.most() * kMaximumExpansion, INT64_MAX));
    check_geometry(header.grid, path_);
    return header;
  }

  /// The voxels of the file whose header was read. Throws InputError.
  void read(const Header& header, std::byte* out) {
    if (TIFFSetDirectory(tif_, 0) == 0) fail();
    const size_t page_bytes = kind_.row_bytes() * kind_.length;
    for (int page = 0; page < header.grid.size.z; ++page) {
      if (page > 0) next_directory();
      if (!(kind() == kind_)) bad(path_, "it was changed while it was read");
      read_page(out + page_bytes * static_cast<size_t>(page));
      if (message_[0] != '\0') fail();  // fax codes go on behind a damaged row
    }
  }

 private:
  [[noreturn]] void fail(
      const std::string& what =
          "the picture is damaged, truncated or of a kind that is not supported") const {
    bad(path_, what + (message_[0] != '\0' ? std::string(" (") + message_.data() + ")" : "") +
                   "; copy or export it again");
  }

  /// Throws InputError if the pages are no slices by the text of the first one, in which ImageJ and
  /// the programs of OME describe all of them.
  void check_description(int pages) const {
    const bool is_ome = description_.find("openmicroscopy.org") != std::string::npos;
    if (!is_ome && !description_.starts_with("ImageJ=")) return;
    const auto count_of = [&](const std::string& key, int64_t missing) {
      const size_t at = description_.find(key);
      if (at == std::string::npos) return missing;
      return int64_t{std::strtol(description_.c_str() + at + key.size(), nullptr, 10)};
    };
    const int64_t samples = is_ome ? kind_.samples : 1;  // which OME counts as channels
    const int64_t channels = count_of(is_ome ? "SizeC=\"" : "\nchannels=", samples);
    const int64_t times = count_of(is_ome ? "SizeT=\"" : "\nframes=", 1);
    const int64_t images = count_of(is_ome ? "SizeZ=\"" : "\nimages=", is_ome ? 0 : pages);
    if (channels == samples && times == 1 && images == pages) return;
    bad(path_, std::string("what ") + (is_ome ? "OME" : "ImageJ") +
                   " says of its pages (channels " + std::to_string(channels) + ", times " +
                   std::to_string(times) + ", images " + std::to_string(images) +
                   ") makes no plain stack of the " + std::to_string(pages) +
                   " that there are; write one channel and time, with " +
                   "ImageJ (Duplicate, Save As Tiff) or bfconvert of Bio-Formats (-channel 0 " +
                   "-timepoint 0)");
  }

  template <class T>
  T field(uint32_t tag) const {
    T value{};
    TIFFGetFieldDefaulted(tif_, tag, &value);
    return value;
  }

  void next_directory() {
    message_[0] = '\0';
    if (TIFFReadDirectory(tif_) != 0) return;
    if (TIFFCurrentDirOffset(tif_) > size_) fail("a directory lies beyond the end of the file");
    // libtiff has no message for this alone.
    if (message_[0] == '\0') fail("its directories name each other in a ring, or are too many");
    fail();
  }

  /// Returns bytes of the current directory in the file.
  uint64_t directory_bytes() const {
    const bool big = TIFFIsBigTIFF(tif_) != 0;
    const tmsize_t bytes = big ? 8 : 2;
    char count[8] = {};
    TIFFGetSeekProc(tif_)(TIFFClientdata(tif_), TIFFCurrentDirOffset(tif_), SEEK_SET);
    if (TIFFGetReadProc(tif_)(TIFFClientdata(tif_), count, bytes) != bytes) fail();
    const FieldReader in{count, TIFFIsByteSwapped(tif_) != 0};
    const uint64_t fields = big ? in.get<uint64_t>(0) * 20 : uint64_t{in.get<uint16_t>(0)} * 12;
    // libtiff takes a link to the next page that is cut off for the end of the pages.
    const uint64_t rest = size_ - std::min<uint64_t>(TIFFCurrentDirOffset(tif_), size_);
    if (rest < static_cast<uint64_t>(bytes) + fields + (big ? 8 : 4)) {
      fail("a directory lies beyond the end of the file");
    }
    return fields;
  }

  /// Compares what the current page claims with the file. Its tables of strips are not read yet;
  /// libtiff allocates them as the size of the picture claims.
  Held check_claims() {
    if (!guarded(Guard::kTiffClaims)) return {size_, UINT64_MAX / kMaximumExpansion};
    const auto width = field<uint32_t>(TIFFTAG_IMAGEWIDTH);
    const auto length = field<uint32_t>(TIFFTAG_IMAGELENGTH);
    const std::string size = std::to_string(width) + "x" + std::to_string(length);
    if (std::max(width, length) > INT32_MAX) fail("the header gives a size of " + size);
    const bool tiled = TIFFIsTiled(tif_) != 0;
    const uint32_t pieces = tiled ? TIFFNumberOfTiles(tif_) : TIFFNumberOfStrips(tif_);
    const uint64_t least_table = uint64_t{pieces} * 4;  // of an offset and a size of two bytes each
    const std::string few =
        "the header has fewer strips or tiles than a picture of " + size + " needs";
    if (pieces == 0 || least_table > size_) fail(few);
    // Pages that share tables, or directories that overlap, would take time as their product.
    spent_ += directory_bytes() + least_table;
    if (spent_ > kSharedTables * size_) {
      fail("its directories name more tables than the file can hold");
    }
    // Of the colours of YCbCr up to 16 pixels share two values.
    const bool shared = field<uint16_t>(TIFFTAG_PHOTOMETRIC) == PHOTOMETRIC_YCBCR;
    const uint64_t growth = most_growth(field<uint16_t>(TIFFTAG_COMPRESSION), width);
    bool beyond = false;
    const Held held{stored_bytes(pieces, few, beyond), growth * (shared ? 3 : 1)};
    const Wide claimed = static_cast<Wide>(width) * length *
                         field<uint16_t>(TIFFTAG_SAMPLESPERPIXEL) *
                         field<uint16_t>(TIFFTAG_BITSPERSAMPLE) / 8;
    const auto refuse = [&](const std::string& what) {
      bad(path_, "the header promises " + what + ", more than the file can hold (at most " +
                     std::to_string(static_cast<uint64_t>(held.most())) +
                     " bytes); it is truncated or damaged");
    };
    if (claimed > held.most()) refuse("a picture of " + size);
    // A tile is stored whole, also where it reaches beyond the picture.
    const uint64_t tile = tiled ? TIFFTileSize64(tif_) : 1;
    if (tile == 0 || tile > held.most()) {
      refuse("tiles of " + std::to_string(field<uint32_t>(TIFFTAG_TILEWIDTH)) + "x" +
             std::to_string(field<uint32_t>(TIFFTAG_TILELENGTH)));
    }
    if (beyond) fail("the voxels lie beyond the end of the file");
    return held;
  }

  /// Returns the bytes of the strips or tiles that are in the file; `beyond`: they should be more.
  uint64_t stored_bytes(uint32_t pieces, const std::string& few, bool& beyond) const {
    uint64_t sum = 0;
    for (uint32_t i = 0; i < pieces; ++i) {
      int failed = 0, failed_too = 0;
      const uint64_t offset = TIFFGetStrileOffsetWithErr(tif_, i, &failed);
      const uint64_t bytes = TIFFGetStrileByteCountWithErr(tif_, i, &failed_too);
      if (failed != 0 || failed_too != 0) {
        fail("a field of the directory is damaged, or beyond the end of the file");
      }
      if (offset == 0) fail(few);  // libtiff fills up a short table with zeros
      if (offset > size_) fail("the voxels lie beyond the end of the file");
      beyond = beyond || bytes > size_ - offset;
      // Strips that share bytes do not make more of them.
      sum = std::min(sum + std::min(bytes, size_ - offset), size_);
    }
    return sum;
  }

  /// Tells how the current page is read.
  Kind kind() const {
    Kind found{field<uint32_t>(TIFFTAG_IMAGEWIDTH),    field<uint32_t>(TIFFTAG_IMAGELENGTH),
               field<uint16_t>(TIFFTAG_BITSPERSAMPLE), field<uint16_t>(TIFFTAG_SAMPLESPERPIXEL),
               field<uint16_t>(TIFFTAG_PLANARCONFIG),  field<uint16_t>(TIFFTAG_SAMPLEFORMAT),
               field<uint16_t>(TIFFTAG_PHOTOMETRIC)};
    uint16_t photometric = 0;
    const bool known = TIFFGetField(tif_, TIFFTAG_PHOTOMETRIC, &photometric) != 0;
    if (!known && found.samples != 1) {
      bad(path_, "it does not say what its values are; write it with a PhotometricInterpretation");
    }
    const auto orientation = field<uint16_t>(TIFFTAG_ORIENTATION);
    const bool palette = photometric == PHOTOMETRIC_PALETTE;
    found.by_rows = known && photometric <= PHOTOMETRIC_PALETTE && TIFFIsTiled(tif_) == 0 &&
                    TIFFIsCODECConfigured(field<uint16_t>(TIFFTAG_COMPRESSION)) != 0 &&
                    (found.planar == PLANARCONFIG_CONTIG || found.samples == 1) &&
                    (orientation == ORIENTATION_TOPLEFT || orientation == ORIENTATION_BOTLEFT) &&
                    (found.bits == 8 || found.bits == 16 || (found.bits == 32 && !palette)) &&
                    (found.samples == 1 || !palette);
    if (!found.by_rows && found.bits == 16 && known && photometric <= PHOTOMETRIC_RGB) {
      bad(path_,
          "its 16 bits stand in tiles, planes or turned, of which libtiff would give 8; write it "
          "in "
          "rows");
    }
    char why[1024] = "";
    if (found.palette()) {
      set_palette_type(found);
    } else if (found.by_rows) {
      found.component = stored_type(found);
      found.channels = found.samples;
    } else if (TIFFRGBAImageOK(tif_, why) == 0) {
      bad(path_, std::string("it cannot be read (") + why + "); save it again in another way");
    }
    return found;
  }

  Component stored_type(const Kind& kind) const {
    const bool real = kind.format == SAMPLEFORMAT_IEEEFP;
    if (real && kind.bits == 32) return Component::kFloat32;
    if (real || kind.format > SAMPLEFORMAT_VOID) {
      bad(path_, "its component type is not supported; convert to float32 or an integer type");
    }
    const bool is_signed = kind.format == SAMPLEFORMAT_INT;
    if (kind.bits == 8) return is_signed ? Component::kInt8 : Component::kUint8;
    if (kind.bits == 16) return is_signed ? Component::kInt16 : Component::kUint16;
    return is_signed ? Component::kInt32 : Component::kUint32;
  }

  using Palette = std::array<uint16_t*, 3>;
  Palette palette() const {
    Palette found{};
    if (TIFFGetField(tif_, TIFFTAG_COLORMAP, found.data(), &found[1], &found[2]) == 0) fail();
    return found;
  }

  /// Some writers store colours of 8 bits as they are, where the format means 16.
  void set_palette_type(Kind& kind) const {
    const auto [red, green, blue] = palette();
    kind.channels = 1;
    for (size_t i = 0; i < size_t{1} << kind.bits; ++i) {
      if (std::max({red[i], green[i], blue[i]}) > 255) kind.component = Component::kUint16;
      if (red[i] != green[i] || red[i] != blue[i]) kind.channels = 3;
    }
  }

  void read_page(std::byte* out) {
    message_[0] = '\0';
    if (!kind_.by_rows) {
      // Red is the lowest byte of each of these numbers, which comes first in memory.
      auto* pixels = reinterpret_cast<uint32_t*>(out);
      if (TIFFReadRGBAImageOriented(tif_, kind_.width, kind_.length, pixels, ORIENTATION_TOPLEFT,
                                    1) == 0) {
        fail();
      }
      return;
    }
    const size_t stored = size_t{kind_.width} * kind_.samples * kind_.bits / 8;
    if (TIFFScanlineSize64(tif_) != stored) fail();
    const bool upwards = field<uint16_t>(TIFFTAG_ORIENTATION) == ORIENTATION_BOTLEFT;
    std::vector<std::byte> indices(kind_.palette() ? stored : 0);
    for (uint32_t row = 0; row < kind_.length; ++row) {
      std::byte* to = out + kind_.row_bytes() * (upwards ? kind_.length - 1 - row : row);
      if (TIFFReadScanline(tif_, indices.empty() ? to : indices.data(), row, 0) <= 0) fail();
      if (!indices.empty()) expand(indices.data(), to);
    }
  }

  /// Looks a row of indices up in the palette.
  void expand(const std::byte* indices, std::byte* to) const {
    const Palette colours = palette();
    for (uint32_t x = 0; x < kind_.width; ++x) {
      uint16_t index = static_cast<uint16_t>(indices[x]);
      if (kind_.bits == 16) std::memcpy(&index, indices + size_t{x} * 2, 2);
      for (size_t channel = 0; channel < static_cast<size_t>(kind_.channels); ++channel) {
        const uint16_t value = colours[channel][index];
        const auto bytes = static_cast<size_t>(bytes_of(kind_.component));
        std::memcpy(to, &value, bytes);  // the lower byte comes first
        to += bytes;
      }
    }
  }

  std::string path_;
  TIFF* tif_ = nullptr;
  std::array<char, 200> message_{};
  std::string description_;  ///< of the first page
  uint64_t size_ = 0;        ///< of the file
  uint64_t spent_ = 0;       ///< bytes of directories and tables
  Kind kind_{};              ///< of the first page
};

/// The letters: directories and tables of strips are read when they are asked for, and strips are
/// as the file has them. The file is mapped, since libtiff 4.5 without a map refuses tiles whose
/// bytes are not a multiple of 1024.
constexpr const char* kReading = "rhDc";

/// A piece that is not written shows when the file is read back.
void write_strips(TIFF* tif, const Pixels& pixels) {
  constexpr uint64_t kStripBytes = 1 << 20;
  uint16_t format = SAMPLEFORMAT_UINT;
  if (pixels.component == Component::kInt16) format = SAMPLEFORMAT_INT;
  if (pixels.component == Component::kFloat32) format = SAMPLEFORMAT_IEEEFP;
  const auto width = static_cast<uint32_t>(pixels.grid.size.x);
  const auto length = static_cast<uint32_t>(pixels.grid.size.y);
  const auto bits = static_cast<uint16_t>(8 * bytes_of(pixels.component));
  const uint64_t row = uint64_t{width} * bits / 8;
  const auto rows = static_cast<uint32_t>(std::clamp<uint64_t>(kStripBytes / row, 1, length));
  TIFFSetField(tif, TIFFTAG_IMAGEWIDTH, width);
  TIFFSetField(tif, TIFFTAG_IMAGELENGTH, length);
  TIFFSetField(tif, TIFFTAG_BITSPERSAMPLE, bits);
  TIFFSetField(tif, TIFFTAG_SAMPLEFORMAT, format);
  TIFFSetField(tif, TIFFTAG_PHOTOMETRIC, PHOTOMETRIC_MINISBLACK);
  TIFFSetField(tif, TIFFTAG_PLANARCONFIG, PLANARCONFIG_CONTIG);
  TIFFSetField(tif, TIFFTAG_COMPRESSION, COMPRESSION_ADOBE_DEFLATE);
  TIFFSetField(tif, TIFFTAG_ROWSPERSTRIP, rows);
  auto* from = static_cast<std::byte*>(const_cast<void*>(pixels.voxels));  // only read
  for (uint32_t first = 0; first < length; first += rows) {
    const uint64_t strip = row * std::min(rows, length - first);
    if (TIFFWriteEncodedStrip(tif, first / rows, from, static_cast<tmsize_t>(strip)) < 0) return;
    from += strip;
  }
}

std::vector<std::byte> read_tiff(const std::string& path) {
  TiffFile file(path, kReading);
  const Header header = file.header();
  require_components(path, header);
  std::vector<std::byte> voxels = allocate_voxels(checked_bytes(header, path), path);
  file.read(header, voxels.data());
  return voxels;
}

}  // namespace

std::unique_ptr<ImageFile> open_tiff(const std::string& path, const OpenOptions&) {
  return std::make_unique<DecodedImage>(path, TiffFile(path, kReading).header(),
                                        [=] { return read_tiff(path); });
}

void write_tiff(const std::string& path, const Pixels& pixels) {
  require_picture(path, pixels,
                  {Component::kUint8, Component::kUint16, Component::kInt16, Component::kFloat32});
  const int64_t bytes = pixels.bytes();
  {
    // Offsets of 32 bits end at 4 GiB, and deflated noise is a little larger than its voxels.
    const TiffFile file(path, bytes > INT32_MAX ? "w8" : "w");
    if (file.handle() != nullptr) write_strips(file.handle(), pixels);
  }
  bool sound = false;
  try {
    const std::vector<std::byte> back = read_tiff(path);
    sound = static_cast<int64_t>(back.size()) == bytes &&
            std::memcmp(back.data(), pixels.voxels, back.size()) == 0;
  } catch (const InputError&) {
  }
  if (!sound) {
    throw OutputError("cannot write '" + path +
                      "': what was written does not read back: check the free space");
  }
}

}  // namespace larch::io
