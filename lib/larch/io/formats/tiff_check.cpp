// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// TIFF 6.0 and BigTIFF: the chain of directories, and what each says about its size.
#include "larch/io/formats/tiff_check.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <set>
#include <vector>

#include "larch/core/error.h"
#include "larch/core/guard.h"
#include "larch/files/file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/zstream.h"

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
constexpr uint64_t kYCbCr = 6;  ///< of kPhotometric

[[noreturn]] void bad_tiff(const std::string& path, const std::string& what) {
  bad(path, what + "; it is truncated or damaged");
}

/// The picture may be sound, but ITK would read beyond the text.
[[noreturn]] void bad_text(const std::string& path, int tag, const std::string& what) {
  bad(path, what + "; remove the field, for example with 'tiffset -u " + std::to_string(tag) +
                "', or save the picture again without it");
}

/// The values of a field: where they stand, already known to be inside the file.
struct Field {
  int bytes_each = 0;  ///< 0: not a whole number
  uint64_t count = 0;
  uint64_t offset = 0;
};

using Directory = std::map<int, Field>;

/// How many times the bytes of a file its directories and their tables may come to. In a sound file
/// each byte belongs to one of them; but pages of equal strips may share the table of their sizes.
constexpr uint64_t kSharedTables = 4;

/// Reads numbers of a file, of which nothing is kept: it may be larger than the memory.
class TiffBytes {
 public:
  explicit TiffBytes(const std::string& path) : path_(path) {
    in_.rdbuf()->pubsetbuf(nullptr, 0);  // each read is of a whole table, or of one number
    in_.open(path, std::ios::binary);
    if (!in_) throw InputError("cannot read '" + path + "': check its permissions");
    size_ = static_cast<uint64_t>(file_bytes(path));
    left_ = kSharedTables * size_;
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
  Directory directory(uint64_t offset, uint64_t& next) {
    const uint64_t head = big_ ? 8 : 2, entry = big_ ? 20 : 12, link = big_ ? 8 : 4;
    require(offset, head);
    const uint64_t count = big_ ? get<uint64_t>(offset) : get<uint16_t>(offset);
    if (count == 0 || count > size() / entry) bad_tiff(path_, "a directory has a wrong length");
    require(offset + head, count * entry + link);
    spend(head + count * entry + link);
    const std::string bytes = read(offset + head, count * entry + link);
    const FieldReader in{bytes.data(), swapped_};
    Directory fields;
    for (uint64_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(i * entry);
      const Field found = field(in, at, offset + head);
      check_text(in.get<uint16_t>(at), in.get<uint16_t>(at + 2), found);
      fields.insert({in.get<uint16_t>(at), found});  // of two fields of one tag the first counts
    }
    const auto end = static_cast<int64_t>(count * entry);
    next = big_ ? in.get<uint64_t>(end) : in.get<uint32_t>(end);
    return fields;
  }

  uint64_t first(const Field& field) const {
    std::vector<uint64_t> values;
    read_values(field, 0, 1, values);
    return values[0];
  }

  /// The values from number `begin` on, `count` of them, which are in the field. Counts against
  /// what the directories may come to.
  void table(const Field& field, uint64_t begin, uint64_t count, std::vector<uint64_t>& values) {
    spend(count * static_cast<uint64_t>(field.bytes_each));
    read_values(field, begin, count, values);
  }

 private:
  [[noreturn]] void not_tiff() const {
    bad(path_,
        "its content is not what its ending says, or is damaged: it does not start as a TIFF "
        "file does");
  }

  std::string read(uint64_t offset, uint64_t count) const {
    std::string bytes(static_cast<size_t>(count), '\0');
    in_.clear();
    in_.seekg(static_cast<std::streamoff>(offset));
    in_.read(bytes.data(), static_cast<std::streamsize>(count));
    if (!in_) bad_tiff(path_, "it became shorter while it was read");
    return bytes;
  }

  template <class T>
  T get(uint64_t offset) const {
    return FieldReader{read(offset, sizeof(T)).data(), swapped_}.get<T>(0);
  }

  void read_values(const Field& field, uint64_t begin, uint64_t count,
                   std::vector<uint64_t>& values) const {
    const auto each = static_cast<uint64_t>(field.bytes_each);
    if (each == 0) bad_tiff(path_, "a number of a directory has a wrong type");
    const std::string bytes = read(field.offset + begin * each, count * each);
    const FieldReader in{bytes.data(), swapped_};
    values.resize(static_cast<size_t>(count));
    for (size_t i = 0; i < values.size(); ++i) {
      const auto at = static_cast<int64_t>(i * each);
      values[i] = each == 1   ? in.get<uint8_t>(at)
                  : each == 2 ? in.get<uint16_t>(at)
                  : each == 4 ? in.get<uint32_t>(at)
                              : in.get<uint64_t>(at);
    }
  }

  /// Pages that share tables, or directories that overlap, would take time as their product.
  void spend(uint64_t bytes) {
    if (bytes > left_) {
      bad_tiff(path_, "its directories name more tables than the file can hold");
    }
    left_ -= bytes;
  }

  void require(uint64_t offset, uint64_t count) const {
    if (offset > size() || count > size() - offset) {
      bad_tiff(path_, "a directory lies beyond the end of the file");
    }
  }

  /// libtiff ends the texts of the tags that it knows; the others ITK reads up to the next zero,
  /// wherever in the memory that is.
  void check_text(int tag, int type, const Field& field) const {
    constexpr int kText = 2, kDateTime = 306;
    constexpr uint64_t kDateTimeBytes = 20;
    if (tag == kDateTime && field.count < kDateTimeBytes) {  // ITK takes 20 bytes, there or not
      bad_text(
          path_, tag,
          "its field DateTime (306) has " + std::to_string(field.count) + " bytes instead of 20");
    }
    constexpr int kKnown[] = {269, 270, 271, 272, 285, 305, 306, 315, 316, 333, 337, 33432};
    if (type != kText || std::find(std::begin(kKnown), std::end(kKnown), tag) != std::end(kKnown)) {
      return;
    }
    if (field.count == 0 || get<char>(field.offset + field.count - 1) != '\0') {
      bad_text(path_, tag, "the text of field " + std::to_string(tag) + " does not end in a zero");
    }
  }

  /// The field at byte `at` of a directory's entries, which begin at byte `start` of the file.
  Field field(const FieldReader& in, int64_t at, uint64_t start) const {
    // Bytes of the types 1 to 18; those of whole numbers without sign can be read as such.
    constexpr int kBytes[] = {0, 1, 1, 2, 4, 8, 1, 1, 2, 4, 8, 4, 8, 4, 0, 0, 8, 8, 8};
    constexpr bool kWhole[] = {false, true,  false, true, true,  false, false, false, false, false,
                               false, false, false, true, false, false, true,  false, true};
    const auto type = in.get<uint16_t>(at + 2);
    const int bytes = type <= 18 ? kBytes[type] : 0;
    const int64_t value = at + (big_ ? 12 : 8);
    Field field;
    field.count = big_ ? in.get<uint64_t>(at + 4) : in.get<uint32_t>(at + 4);
    field.offset = start + static_cast<uint64_t>(value);
    if (bytes == 0) return field;  // of a type that libtiff passes over as well
    if (field.count > size()) bad_tiff(path_, "a field lies beyond the end of the file");
    const uint64_t all = field.count * static_cast<uint64_t>(bytes);
    if (all > (big_ ? 8U : 4U)) {
      field.offset = big_ ? in.get<uint64_t>(value) : in.get<uint32_t>(value);
      if (field.offset > size() || all > size() - field.offset) {
        bad_tiff(path_, "a field lies beyond the end of the file");
      }
    }
    if (kWhole[type]) field.bytes_each = bytes;
    return field;
  }

  std::string path_;
  mutable std::ifstream in_;
  uint64_t size_ = 0;
  uint64_t left_ = 0;  ///< bytes of directories and tables that may still be read
  bool swapped_ = false, big_ = false;
};

uint64_t number(const TiffBytes& file, const Directory& fields, int tag, uint64_t absent) {
  const auto found = fields.find(tag);
  if (found == fields.end() || found->second.count == 0) return absent;
  return file.first(found->second);
}

/// The most bytes that a stored byte becomes, each limit by what the densest code of the
/// compression says, so that a blank picture passes. `width`: pixels of a row.
uint64_t most_growth(uint64_t compression, uint64_t width) {
  constexpr uint64_t kWidestFax = 65536;
  switch (compression) {
    case 1:  // none
      return 1;
    case 2:  // CCITT without marks of rows: 12 bits for 2560 white pixels
    case 32771:
      return 256;
    case 3:  // fax codes by two dimensions: a row as the one above is one bit
    case 4:
      return std::clamp<uint64_t>(width, 256, kWidestFax);
    case 5:  // LZW: a code of 12 bits is at most 4096 - 258 bytes
      return 2560;
    case 8:  // deflate
    case 32946:
      return static_cast<uint64_t>(kMostDeflate);
    case 32773:  // PackBits: two bytes become 128
      return 64;
    case 34925:  // LZMA: 14 decisions of 0.022 bits for a match of 273 bytes
      return 8192;
    case 50000:  // Zstandard: 4 bytes repeat one over a block of 128 KiB
      return 32768;
    case 34661:  // JBIG
    case 34712:  // JPEG 2000
    case 34887:  // LERC
    case 50001:  // WebP
    case 50002:  // JPEG XL: some ten bytes are a picture of one colour, of whatever size
      return 1 << 24;
    default:  // JPEG, with few bits for 64 pixels and colours for 16; only absurd sizes are stopped
      return 8192;
  }
}

uint64_t pieces(uint64_t whole, uint64_t piece) {
  return whole / piece + (whole % piece != 0 ? 1 : 0);
}

/// The sum of the sizes of strips or tiles, which have to lie in the file.
uint64_t bytes_of_pieces(TiffBytes& file, const Field& offsets, const Field& counts,
                         uint64_t pieces) {
  constexpr uint64_t kAtOnce = 4096;
  std::vector<uint64_t> at, bytes;
  unsigned __int128 sum = 0;
  for (uint64_t begin = 0; begin < pieces; begin += kAtOnce) {
    const uint64_t count = std::min(kAtOnce, pieces - begin);
    file.table(offsets, begin, count, at);
    file.table(counts, begin, count, bytes);
    for (size_t i = 0; i < count; ++i) {
      if (at[i] > file.size() || bytes[i] > file.size() - at[i]) {
        bad_tiff(file.path(), "the voxels lie beyond the end of the file");
      }
      sum += bytes[i];
    }
  }
  // Strips that share bytes do not make more of them.
  return static_cast<uint64_t>(std::min<unsigned __int128>(sum, file.size()));
}

/// The bytes of the strips or tiles, which have to be as many as the size of the picture needs.
uint64_t stored_bytes(TiffBytes& file, const Directory& fields, uint64_t width, uint64_t length) {
  const bool tiled = fields.contains(kTileWidth) || fields.contains(kTileOffsets);
  const auto offsets = fields.find(tiled ? kTileOffsets : kStripOffsets);
  const auto counts = fields.find(tiled ? kTileByteCounts : kStripByteCounts);
  if (offsets == fields.end())
    bad_tiff(file.path(), "the header does not say where the voxels are");
  const uint64_t across = tiled ? number(file, fields, kTileWidth, 0) : width;
  const uint64_t down = tiled ? number(file, fields, kTileLength, 0)
                              : std::min(number(file, fields, kRowsPerStrip, length), length);
  if (across == 0 || down == 0)
    bad_tiff(file.path(), "the header gives strips or tiles of no size");
  const uint64_t samples = number(file, fields, kSamplesPerPixel, 1);
  const uint64_t planes = number(file, fields, kPlanar, 1) == 2 ? samples : 1;
  // The sizes are below 2^31 and the samples below 2^16, the product below 2^78.
  const auto needed =
      static_cast<unsigned __int128>(pieces(width, across)) * pieces(length, down) * planes;
  if (needed > offsets->second.count) {
    bad_tiff(file.path(), "the header has fewer strips or tiles than a picture of " +
                              std::to_string(width) + "x" + std::to_string(length) + " needs");
  }
  if (counts == fields.end()) return file.size();
  if (counts->second.count < needed) {
    bad_tiff(file.path(), "the header does not give the size of every strip or tile");
  }
  // Old writers give too many bytes for an only strip; libtiff goes by the size of the picture
  // then.
  if (!tiled && needed == 1 && number(file, fields, kCompression, 1) == 1 &&
      file.first(offsets->second) <= file.size()) {
    return file.size() - file.first(offsets->second);
  }
  const uint64_t sum =
      bytes_of_pieces(file, offsets->second, counts->second, static_cast<uint64_t>(needed));
  return sum != 0 ? sum : file.size();  // 0: not known to the writer; libtiff guesses
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
    bad_tiff(file.path(), "the header promises tiles of " + std::to_string(across) + "x" +
                              std::to_string(down) + ", more than the file can hold (at most " +
                              std::to_string(most) + " bytes)");
  }
}

uint64_t times(uint64_t a, uint64_t b) {
  return b != 0 && a > UINT64_MAX / b ? UINT64_MAX : a * b;
}

/// What pages hold: bytes in the file, and how many each of them becomes at most.
struct Held {
  uint64_t stored = 0, growth = 1;

  uint64_t most() const { return times(stored, growth); }
  /// Pages that share bytes do not make more of them.
  void add(const Held& page, uint64_t file_bytes) {
    stored += std::min(page.stored, file_bytes - stored);
    growth = std::max(growth, page.growth);
  }
};

/// What a page holds; throws if it claims more.
Held check_claims(TiffBytes& file, const Directory& fields) {
  if (!guarded(Guard::kTiffClaims)) return {file.size(), UINT64_MAX};
  const uint64_t width = number(file, fields, kWidth, 0), length = number(file, fields, kLength, 0);
  constexpr uint64_t kLongest = INT32_MAX;
  if (width == 0 || length == 0 || width > kLongest || length > kLongest) {
    bad_tiff(file.path(),
             "the header gives a size of " + std::to_string(width) + "x" + std::to_string(length));
  }
  const uint64_t bits = number(file, fields, kBitsPerSample, 1);
  const uint64_t samples = number(file, fields, kSamplesPerPixel, 1);
  if (bits == 0 || bits > 64 || samples == 0 || samples > 65535) {
    bad_tiff(file.path(), "the header gives " + std::to_string(samples) + " values of " +
                              std::to_string(bits) + " bits per pixel");
  }
  // Of the colours of YCbCr up to 16 pixels share two values.
  const uint64_t shared = number(file, fields, kPhotometric, 1) == kYCbCr ? 3 : 1;
  const Held held{stored_bytes(file, fields, width, length),
                  most_growth(number(file, fields, kCompression, 1), width) * shared};
  const uint64_t most = held.most();
  const auto claimed = static_cast<unsigned __int128>(width) * length * samples * bits / 8;
  if (claimed > most) {
    bad_tiff(file.path(), "the header promises a picture of " + std::to_string(width) + "x" +
                              std::to_string(length) + ", more than the file can hold (at most " +
                              std::to_string(most) + " bytes)");
  }
  check_tiles(file, fields, samples, bits, most);
  return held;
}

/// What is compared of the pages. ITK reads all of them into a buffer of the first one's size times
/// their number, and does not count thumbnails and masks among them.
class PageKinds {
 public:
  void add(const TiffBytes& file, const Directory& page) {
    constexpr Tag kTags[] = {kWidth,  kLength,       kBitsPerSample, kSamplesPerPixel,
                             kPlanar, kSampleFormat, kPhotometric};
    const bool aside = number(file, page, kSubfileType, 0) != 0;
    std::vector<uint64_t> kind;
    for (const Tag tag : kTags) kind.push_back(number(file, page, tag, 1));
    if (pages_++ == 0) {
      first_ = kind;
      first_aside_ = aside;
    }
    others_ = others_ || (pages_ > 1 && !aside);
    same_ = same_ && !aside && kind == first_;
  }

  /// Throws InputError if the pages are no volume and the first one is not the only picture.
  void check(const std::string& path) const {
    if (pages_ < 2) return;
    if (first_aside_) {
      bad(path,
          "its first page is a thumbnail, a mask or one of a "
          "series; write the picture itself to a file of its own");
    }
    if (!others_ || same_) return;
    bad(path,
        "its pages are of different sizes or kinds; write one "
        "of them to a file of its own");
  }

 private:
  std::vector<uint64_t> first_;
  int pages_ = 0;
  bool first_aside_ = false;
  bool others_ = false;  ///< pages after the first are pictures
  bool same_ = true;     ///< all pages are pictures as the first one is
};

}  // namespace

int64_t check_tiff(const std::string& path) {
  TiffBytes file(path);
  std::set<uint64_t> seen;
  PageKinds kinds;
  Held held;
  for (uint64_t at = file.first_directory(), next = 0; at != 0 || seen.empty(); at = next) {
    const bool again = !seen.insert(at).second || seen.size() > kMostTiffPages;
    if (again && guarded(Guard::kTiffDirectoryRing)) {
      bad_tiff(path, "its directories name each other in a ring, or are too many");
    }
    if (again) break;
    const Directory page = file.directory(at, next);
    held.add(check_claims(file, page), file.size());
    kinds.add(file, page);
  }
  kinds.check(path);
  // A file of one bit per pixel becomes one byte per pixel, and a palette three.
  return static_cast<int64_t>(std::min<uint64_t>(times(held.most(), 32), INT64_MAX));
}

}  // namespace larch::io
