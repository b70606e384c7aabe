// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// TIFF 6.0 and BigTIFF: the chain of directories, and what each says about its size.
#include "larch/io/tiff_check.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/io/byte_order.h"
#include "larch/io/file.h"
#include "larch/io/zstream.h"

namespace larch::io {
namespace {

enum Tag {
  kSubfileType = 254,
  kWidth = 256,
  kLength = 257,
  kBitsPerSample = 258,
  kCompression = 259,
  kPhotometric = 262,
  kStripOffsets = 273,
  kSamplesPerPixel = 277,
  kRowsPerStrip = 278,
  kStripByteCounts = 279,
  kPlanar = 284,
  kTileWidth = 322,
  kTileLength = 323,
  kTileOffsets = 324,
  kTileByteCounts = 325,
  kSampleFormat = 339,
};

[[noreturn]] void bad(const std::string& path, const std::string& what) {
  throw InputError("'" + path + "': " + what + "; it is truncated or damaged");
}

/// The values of a field: where they stand, already known to be inside the file.
struct Field {
  int bytes_each = 0;  ///< 0: not a whole number
  uint64_t count = 0;
  uint64_t offset = 0;
};

using Directory = std::map<int, Field>;

/// Reads numbers of a file, a window at a time: it may be larger than the memory.
class TiffBytes {
 public:
  explicit TiffBytes(const std::string& path) : path_(path), in_(path, std::ios::binary) {
    if (!in_) throw InputError("cannot read '" + path + "': check its permissions");
    size_ = static_cast<uint64_t>(file_bytes(path));
    if (size_ < 8) not_tiff();
    const auto order = get<uint16_t>(0);
    if (order != 0x4949 && order != 0x4d4d) not_tiff();
    swapped_ = order == 0x4d4d;
    const auto version = get<uint16_t>(2);
    big_ = version == 43;
    if ((version != 42 && !big_) || (big_ && (size_ < 16 || get<uint16_t>(4) != 8))) not_tiff();
  }
  uint64_t size() const { return size_; }
  const std::string& path() const { return path_; }
  uint64_t first_directory() const { return big_ ? get<uint64_t>(8) : get<uint32_t>(4); }

  /// The directory at `offset`; `next` gets the place of the one after it, 0 if there is none.
  Directory directory(uint64_t offset, uint64_t& next) const {
    const uint64_t head = big_ ? 8 : 2, entry = big_ ? 20 : 12, link = big_ ? 8 : 4;
    require(offset, head);
    const uint64_t count = big_ ? get<uint64_t>(offset) : get<uint16_t>(offset);
    if (count == 0 || count > size() / entry) bad(path_, "a directory has a wrong length");
    require(offset + head, count * entry + link);
    Directory fields;
    for (uint64_t i = 0; i < count; ++i) {
      const uint64_t at = offset + head + i * entry;
      const Field found = field(at);
      check_text(get<uint16_t>(at), get<uint16_t>(at + 2), found);
      fields.insert({get<uint16_t>(at), found});  // of two fields of one tag the first counts
    }
    const uint64_t end = offset + head + count * entry;
    next = big_ ? get<uint64_t>(end) : get<uint32_t>(end);
    return fields;
  }

  uint64_t value(const Field& field, uint64_t i) const {
    const uint64_t at = field.offset + i * static_cast<uint64_t>(field.bytes_each);
    switch (field.bytes_each) {
      case 1:
        return get<uint8_t>(at);
      case 2:
        return get<uint16_t>(at);
      case 4:
        return get<uint32_t>(at);
      case 8:
        return get<uint64_t>(at);
      default:
        bad(path_, "a number of a directory has a wrong type");
    }
  }

 private:
  [[noreturn]] void not_tiff() const {
    throw InputError("'" + path_ + "': its content is not what its ending says, or is damaged: " +
                     "it does not start as a TIFF file does");
  }

  template <class T>
  T get(uint64_t offset) const {
    if (offset < window_start_ || offset + sizeof(T) > window_start_ + window_.size()) {
      window_start_ = offset;
      window_.resize(static_cast<size_t>(std::min<uint64_t>(size_ - offset, 1 << 16)));
      in_.clear();
      in_.seekg(static_cast<std::streamoff>(offset));
      in_.read(window_.data(), static_cast<std::streamsize>(window_.size()));
      if (!in_ || window_.size() < sizeof(T)) bad(path_, "it became shorter while it was read");
    }
    const auto at = static_cast<int64_t>(offset - window_start_);
    return FieldReader{window_.data(), swapped_}.get<T>(at);
  }

  void require(uint64_t offset, uint64_t count) const {
    if (offset > size() || count > size() - offset) {
      bad(path_, "a directory lies beyond the end of the file");
    }
  }

  /// libtiff ends the texts of the tags that it knows; the others ITK reads up to the next zero,
  /// wherever in the memory that is.
  void check_text(int tag, int type, const Field& field) const {
    constexpr int kText = 2, kDateTime = 306;
    constexpr uint64_t kDateTimeBytes = 20;
    if (tag == kDateTime && field.count < kDateTimeBytes) {  // ITK takes 20 bytes, there or not
      bad(path_, "its field DateTime has " + std::to_string(field.count) + " bytes instead of 20");
    }
    constexpr int kKnown[] = {269, 270, 271, 272, 285, 305, 306, 315, 316, 333, 337, 33432};
    if (type != kText || std::find(std::begin(kKnown), std::end(kKnown), tag) != std::end(kKnown)) {
      return;
    }
    if (field.count == 0 || get<char>(field.offset + field.count - 1) != '\0') {
      bad(path_, "the text of field " + std::to_string(tag) + " does not end in a zero");
    }
  }

  Field field(uint64_t at) const {
    // Bytes of the types 1 to 18; those of whole numbers without sign can be read as such.
    constexpr int kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    constexpr bool kWhole[] = {false, true,  false, true, true,  false, false, false, false, false,
                               false, false, false, true, false, false, true,  false, true};
    const auto type = get<uint16_t>(at + 2);
    const int bytes = type <= 18 ? kBytes[type] : 0;
    Field field;
    field.count = big_ ? get<uint64_t>(at + 4) : get<uint32_t>(at + 4);
    field.offset = at + (big_ ? 12 : 8);
    if (bytes == 0) return field;  // of a type that libtiff passes over as well
    if (field.count > size()) bad(path_, "a field lies beyond the end of the file");
    const uint64_t all = field.count * static_cast<uint64_t>(bytes);
    if (all > (big_ ? 8U : 4U)) {
      field.offset = big_ ? get<uint64_t>(field.offset) : get<uint32_t>(field.offset);
      if (field.offset > size() || all > size() - field.offset) {
        bad(path_, "a field lies beyond the end of the file");
      }
    }
    if (kWhole[type]) field.bytes_each = bytes;
    return field;
  }

  std::string path_;
  mutable std::ifstream in_;
  mutable std::string window_;
  mutable uint64_t window_start_ = 0;
  uint64_t size_ = 0;
  bool swapped_ = false, big_ = false;
};

uint64_t number(const TiffBytes& file, const Directory& fields, int tag, uint64_t absent) {
  const auto found = fields.find(tag);
  if (found == fields.end() || found->second.count == 0) return absent;
  return file.value(found->second, 0);
}

/// The most bytes that one byte of this compression becomes.
uint64_t most_growth(uint64_t compression) {
  switch (compression) {
    case 1:  // none
      return 1;
    case 5:  // LZW: a code of 12 bits is at most 4096 - 258 bytes
      return 2560;
    case 8:  // deflate
    case 32946:
      return static_cast<uint64_t>(kMostDeflate);
    case 32773:  // PackBits: two bytes become 128
      return 64;
    default:  // fax codes and JPEG; only absurd sizes are to be stopped
      return 8192;
  }
}

uint64_t pieces(uint64_t whole, uint64_t piece) {
  return whole / piece + (whole % piece != 0 ? 1 : 0);
}

/// The bytes of the strips or tiles, which have to lie in the file and to be as many as the size
/// of the picture needs.
uint64_t stored_bytes(const TiffBytes& file, const Directory& fields, uint64_t width,
                      uint64_t length) {
  const bool tiled = fields.contains(kTileWidth) || fields.contains(kTileOffsets);
  const auto offsets = fields.find(tiled ? kTileOffsets : kStripOffsets);
  const auto counts = fields.find(tiled ? kTileByteCounts : kStripByteCounts);
  if (offsets == fields.end()) bad(file.path(), "the header does not say where the voxels are");
  const uint64_t across = tiled ? number(file, fields, kTileWidth, 0) : width;
  const uint64_t down = tiled ? number(file, fields, kTileLength, 0)
                              : std::min(number(file, fields, kRowsPerStrip, length), length);
  if (across == 0 || down == 0) bad(file.path(), "the header gives strips or tiles of no size");
  const uint64_t samples = number(file, fields, kSamplesPerPixel, 1);
  const uint64_t planes = number(file, fields, kPlanar, 1) == 2 ? samples : 1;
  // The sizes are below 2^31 and the samples below 2^16, the product below 2^78.
  const auto needed =
      static_cast<unsigned __int128>(pieces(width, across)) * pieces(length, down) * planes;
  if (needed > offsets->second.count) {
    bad(file.path(), "the header has fewer strips or tiles than a picture of " +
                         std::to_string(width) + "x" + std::to_string(length) + " needs");
  }
  if (counts == fields.end()) return file.size();
  if (counts->second.count < needed) {
    bad(file.path(), "the header does not give the size of every strip or tile");
  }
  uint64_t sum = 0;
  for (uint64_t i = 0; i < static_cast<uint64_t>(needed); ++i) {
    const uint64_t at = file.value(offsets->second, i), bytes = file.value(counts->second, i);
    if (at > file.size() || bytes > file.size() - at) {
      bad(file.path(), "the voxels lie beyond the end of the file");
    }
    sum += bytes;
  }
  if (sum == 0) return file.size();   // not known to the writer; libtiff guesses
  return std::min(sum, file.size());  // strips that share bytes do not make more of them
}

/// A tile is stored whole, also where it reaches beyond the picture, and libtiff allocates it
/// whole.
void check_tiles(const TiffBytes& file, const Directory& fields, uint64_t samples, uint64_t bits,
                 uint64_t most) {
  const uint64_t across = number(file, fields, kTileWidth, 0);
  const uint64_t down = number(file, fields, kTileLength, 0);
  const uint64_t together = number(file, fields, kPlanar, 1) == 2 ? 1 : samples;
  constexpr uint64_t kLongest = INT32_MAX;
  if (across > kLongest || down > kLongest ||
      static_cast<unsigned __int128>(across) * down * together * bits / 8 > most) {
    bad(file.path(), "the header promises tiles of " + std::to_string(across) + "x" +
                         std::to_string(down) + ", more than the file can hold (at most " +
                         std::to_string(most) + " bytes)");
  }
}

/// The most bytes of voxels of a directory; throws if it claims more.
int64_t check_claims(const TiffBytes& file, const Directory& fields) {
  if (!guarded(Guard::kTiffClaims)) return INT64_MAX;
  const uint64_t width = number(file, fields, kWidth, 0), length = number(file, fields, kLength, 0);
  constexpr uint64_t kLongest = INT32_MAX;
  if (width == 0 || length == 0 || width > kLongest || length > kLongest) {
    bad(file.path(),
        "the header gives a size of " + std::to_string(width) + "x" + std::to_string(length));
  }
  const uint64_t bits = number(file, fields, kBitsPerSample, 1);
  const uint64_t samples = number(file, fields, kSamplesPerPixel, 1);
  if (bits == 0 || bits > 64 || samples == 0 || samples > 65535) {
    bad(file.path(), "the header gives " + std::to_string(samples) + " values of " +
                         std::to_string(bits) + " bits a pixel");
  }
  const uint64_t stored = stored_bytes(file, fields, width, length);
  const uint64_t most = stored * most_growth(number(file, fields, kCompression, 1));
  const auto claimed = static_cast<unsigned __int128>(width) * length * samples * bits / 8;
  if (claimed > most) {
    bad(file.path(), "the header promises a picture of " + std::to_string(width) + "x" +
                         std::to_string(length) + ", more than the file can hold (at most " +
                         std::to_string(most) + " bytes)");
  }
  check_tiles(file, fields, samples, bits, most);
  // A file of one bit a pixel becomes one byte a pixel, and a palette three.
  return static_cast<int64_t>(std::min<uint64_t>(most, INT64_MAX / 32) * 32);
}

/// ITK reads all pages into a buffer of the first one's size times their number, and does not count
/// thumbnails and masks among them.
void check_pages(const TiffBytes& file, const std::vector<Directory>& pages) {
  if (pages.size() < 2) return;
  const auto aside = [&](const Directory& page) {
    return number(file, page, kSubfileType, 0) != 0;
  };
  if (aside(pages[0])) {
    throw InputError("'" + file.path() +
                     "': its first page is a thumbnail, a mask or one of a "
                     "series; write the picture itself to a file of its own");
  }
  if (std::all_of(pages.begin() + 1, pages.end(), aside)) return;
  for (const Directory& page : pages) {
    bool same = !aside(page);
    for (const Tag tag : {kWidth, kLength, kBitsPerSample, kSamplesPerPixel, kPlanar, kSampleFormat,
                          kPhotometric}) {
      same = same && number(file, page, tag, 1) == number(file, pages[0], tag, 1);
    }
    if (same) continue;
    throw InputError("'" + file.path() +
                     "': its pages are of different sizes or kinds; write one "
                     "of them to a file of its own");
  }
}

}  // namespace

int64_t check_tiff(const std::string& path) {
  const TiffBytes file(path);
  std::set<uint64_t> seen;
  std::vector<Directory> pages;
  int64_t most_bytes = 0;
  for (uint64_t at = file.first_directory(), next = 0; at != 0 || seen.empty(); at = next) {
    const bool again = !seen.insert(at).second || seen.size() > kMostTiffPages;
    if (again && guarded(Guard::kTiffDirectoryRing)) {
      bad(path, "its directories name each other in a ring, or are too many");
    }
    if (again) return most_bytes;
    pages.push_back(file.directory(at, next));
    most_bytes += std::min(check_claims(file, pages.back()), INT64_MAX - most_bytes);
  }
  check_pages(file, pages);
  return most_bytes;
}

}  // namespace larch::io
