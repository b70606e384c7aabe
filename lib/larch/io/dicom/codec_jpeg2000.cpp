// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// JPEG 2000 through OpenJPEG.
#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <vector>

#include <openjpeg.h>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/dicom/dicom_codec.h"

namespace larch::io {
namespace {

constexpr uint16_t kCod = 0xff52, kCoc = 0xff53, kTilePart = 0xff90, kData = 0xff93, kEoc = 0xffd9;

// How a component is cut into packets and code blocks (T.800, A.6.1 and A.6.2).
struct Coding {
  int64_t layers = 0;
  int levels = 0, block_bits = 12;  // a code block has 2^block_bits coefficients
  // Of the precincts of each resolution, the binary logarithms of width and height.
  std::array<uint8_t, 33> precincts{};
};

// The image and its tiles along one axis.
struct Axis {
  int64_t end = 0, start = 0, tile = 0, first_tile = 0, tiles = 0;
};

// Walks through the headers of a codestream. A packet has a byte at least, so that a codestream of
// more packets than bytes is damaged: it would take any time and memory.
class Jpeg2000Walker {
 public:
  Jpeg2000Walker(std::string_view data, int samples)
      : data_(data), main_(static_cast<size_t>(samples)) {}

  bool walk() {
    if (!count_tiles() || !take_headers(kTilePart, data_.size(), &main_)) return false;
    while (at_ + 2 <= data_.size() && u16(at_) == kTilePart) {
      if (!take_tile_part()) return false;
    }
    const auto is_whole = [](const Tile& tile) { return tile.parts >= std::max(tile.told, 1); };
    return at_ + 2 <= data_.size() && u16(at_) == kEoc && std::ranges::all_of(tiles_, is_whole);
  }

  // An upper bound of what OpenJPEG needs for its tables.
  size_t table_bytes() const {
    constexpr size_t kTileBytes = 16384, kBlockBytes = 1024;
    return tiles_.size() * kTileBytes + static_cast<size_t>(blocks_) * kBlockBytes;
  }

 private:
  struct Tile {
    int parts = 0, told = 0;  // how many stand there, and how many the last of them says, or 0
  };

  uint16_t u16(size_t at) const {
    return FieldReader{data_.data(), true}.get<uint16_t>(static_cast<int64_t>(at));
  }
  int64_t u32(size_t at) const { return int64_t{u16(at)} << 16 | u16(at + 2); }

  bool count_tiles() {
    constexpr size_t kMinimumTile = 14;  // two markers and their segments
    size_t tiles = 1;
    for (Axis& axis : axes_) {
      const size_t at = &axis == axes_.data() ? 8 : 12;
      axis = {u32(at), u32(at + 8), u32(at + 16), u32(at + 24)};
      if (axis.tile < 1 || axis.first_tile > axis.start ||
          axis.first_tile + axis.tile <= axis.start) {
        return false;
      }
      axis.tiles = (axis.end - axis.first_tile + axis.tile - 1) / axis.tile;
      tiles *= static_cast<size_t>(axis.tiles);
      if (axis.tiles > 65535 || tiles > 65535) return false;
    }
    if (u16(4) != 38 + 3 * main_.size() || tiles > data_.size() / kMinimumTile) return false;
    tiles_.resize(tiles);
    at_ = 4 + u16(4);
    return true;
  }

  // Marker segments up to the marker `last`, before `end`. Null: none that tell the coding.
  bool take_headers(uint16_t last, size_t end, std::vector<Coding>* components) {
    while (at_ + 2 <= end && u16(at_) != last) {
      if (end - at_ < 4) return false;
      const uint16_t marker = u16(at_);
      const size_t length = u16(at_ + 2);
      if (marker < 0xff00 || length < 2 || length > end - at_ - 2) return false;
      const std::string_view body = data_.substr(at_ + 4, length - 2);
      at_ += 2 + length;
      if (marker != kCod && marker != kCoc) continue;
      if (components == nullptr || !take_coding(marker == kCod, body, *components)) return false;
    }
    return at_ + 2 <= end;
  }

  // The coding of all components, or of the one that the first byte names.
  static bool take_coding(bool of_all, std::string_view body, std::vector<Coding>& components) {
    const size_t start = of_all ? 5 : 2;
    if (body.size() < start + 5) return false;
    const size_t component = of_all ? 0 : static_cast<uint8_t>(body[0]);
    if (component >= components.size()) return false;
    Coding coding = components[component];
    if (of_all) coding.layers = FieldReader{body.data(), true}.get<uint16_t>(2);
    coding.levels = static_cast<uint8_t>(body[start]);
    coding.block_bits = (body[start + 1] & 15) + (body[start + 2] & 15) + 4;
    const auto resolutions = static_cast<size_t>(coding.levels) + 1;
    if (resolutions > coding.precincts.size() || coding.block_bits > 12) return false;
    coding.precincts.fill(0xff);
    if ((body[of_all ? 0 : 1] & 1) != 0) {
      if (body.size() < start + 5 + resolutions) return false;
      std::memcpy(coding.precincts.data(), &body[start + 5], resolutions);
    }
    if (of_all) components.assign(components.size(), coding);
    components[component] = coding;
    return true;
  }

  bool take_tile_part() {
    constexpr size_t kHeader = 12, kEnd = 2;
    if (data_.size() - at_ < kHeader + kEnd || u16(at_ + 2) != kHeader - 2) return false;
    const size_t tile = u16(at_ + 4);
    const auto length = static_cast<size_t>(u32(at_ + 6));
    const auto number = static_cast<uint8_t>(data_[at_ + 10]);
    const size_t left = data_.size() - kEnd - at_;
    // The last one may leave its length open.
    if (tile >= tiles_.size() || number != tiles_[tile].parts || length > left) return false;
    ++tiles_[tile].parts;
    tiles_[tile].told = static_cast<uint8_t>(data_[at_ + 11]);
    const size_t end = at_ + (length == 0 ? left : length);
    at_ += kHeader;
    std::vector<Coding> components = main_;
    if (end < at_ || !take_headers(kData, end, number == 0 ? &components : nullptr)) return false;
    at_ = end;
    return number > 0 || count_packets(static_cast<int64_t>(tile), components);
  }

  // T.800, B.3, B.5 and B.6.
  bool count_packets(int64_t tile, const std::vector<Coding>& components) {
    std::array<int64_t, 2> place{tile % axes_[0].tiles, tile / axes_[0].tiles}, from{}, to{};
    for (size_t i = 0; i < 2; ++i) {
      const int64_t corner = axes_[i].first_tile + place[i] * axes_[i].tile;
      from[i] = std::max(corner, axes_[i].start);
      to[i] = std::min(corner + axes_[i].tile, axes_[i].end);
    }
    const auto up = [](int64_t value, int bits) {
      return (value + (int64_t{1} << bits) - 1) >> bits;
    };
    for (const Coding& coding : components) {
      blocks_ += (to[0] - from[0]) * (to[1] - from[1]) >> coding.block_bits;
      for (int resolution = 0; resolution <= coding.levels; ++resolution) {
        const int level = coding.levels - resolution;
        int bits = coding.precincts[static_cast<size_t>(resolution)];
        int64_t precincts = 1;
        for (size_t i = 0; i < 2; ++i, bits >>= 4) {
          const int64_t first = up(from[i], level), last = up(to[i], level);
          precincts *= last > first ? up(last, bits & 15) - (first >> (bits & 15)) : 0;
        }
        blocks_ += 3 * precincts;
        packets_ += precincts * coding.layers;
      }
    }
    return packets_ <= static_cast<int64_t>(data_.size());
  }

  std::string_view data_;
  size_t at_ = 0;
  std::array<Axis, 2> axes_{};
  std::vector<Tile> tiles_;
  std::vector<Coding> main_;  // of each component, where a tile has none of its own
  int64_t packets_ = 0, blocks_ = 0;
};

// A codestream in memory, as OpenJPEG reads it; only who leaves tiles out needs to skip bytes.
struct MemoryStream {
  std::string_view data;
  size_t at = 0;

  static OPJ_SIZE_T read(void* to, OPJ_SIZE_T bytes, void* user) {
    auto& self = *static_cast<MemoryStream*>(user);
    const std::string_view found = self.data.substr(self.at, bytes);
    if (found.empty()) return static_cast<OPJ_SIZE_T>(-1);
    std::memcpy(to, found.data(), found.size());
    self.at += found.size();
    return found.size();
  }
  static OPJ_BOOL seek(OPJ_OFF_T to, void* user) {
    auto& self = *static_cast<MemoryStream*>(user);
    if (to < 0 || to > static_cast<OPJ_OFF_T>(self.data.size())) return OPJ_FALSE;
    self.at = static_cast<size_t>(to);
    return OPJ_TRUE;
  }
};

using Image = std::unique_ptr<opj_image_t, decltype(&opj_image_destroy)>;

// Null if OpenJPEG finds it damaged. Without handlers its messages go nowhere.
Image decode(std::string_view data) {
  MemoryStream memory{data};
  const std::unique_ptr<opj_stream_t, decltype(&opj_stream_destroy)> stream(
      opj_stream_create(std::min<size_t>(data.size(), OPJ_J2K_STREAM_CHUNK_SIZE), OPJ_TRUE),
      opj_stream_destroy);
  const std::unique_ptr<opj_codec_t, decltype(&opj_destroy_codec)> decoder(
      opj_create_decompress(OPJ_CODEC_J2K), opj_destroy_codec);
  if (!stream || !decoder) throw std::bad_alloc();
  opj_stream_set_user_data(stream.get(), &memory, nullptr);
  opj_stream_set_user_data_length(stream.get(), data.size());
  opj_stream_set_read_function(stream.get(), MemoryStream::read);
  opj_stream_set_seek_function(stream.get(), MemoryStream::seek);
  opj_dparameters_t parameters{};
  opj_set_default_decoder_parameters(&parameters);
  opj_image_t* found = nullptr;
  const bool sound = opj_setup_decoder(decoder.get(), &parameters) != 0 &&
                     opj_decoder_set_strict_mode(decoder.get(), OPJ_TRUE) != 0 &&
                     opj_read_header(stream.get(), decoder.get(), &found) != 0;
  Image image(found, opj_image_destroy);
  if (!sound || opj_decode(decoder.get(), stream.get(), image.get()) == 0) image.reset();
  return image;
}

}  // namespace

bool decode_jpeg2000(std::string_view data, const Codestream& stream, const std::string& path,
                     DecodedFrame& frame) {
  Jpeg2000Walker walker(data, stream.samples);
  if (!walker.walk()) return false;
  const auto channels = static_cast<size_t>(stream.samples);
  const size_t count = frame.bytes.size() / sizeof(uint16_t);
  // The image and its tiles hold 32 bits for each sample.
  const size_t needed = count * 2 * sizeof(int32_t) + walker.table_bytes();
  if (!host_memory_allows(needed)) {
    throw MemoryError("'" + path + "': " + out_of_memory_text(needed));
  }
  const Image image = decode(data);
  if (!image || image->numcomps != channels) return false;
  for (size_t channel = 0; channel < channels; ++channel) {
    const opj_image_comp_t& from = image->comps[channel];
    if (from.data == nullptr || size_t{from.w} * from.h * channels != count) return false;
    for (size_t i = channel, pixel = 0; i < count; i += channels, ++pixel) {
      const auto value = static_cast<uint16_t>(from.data[pixel]);
      std::memcpy(&frame.bytes[i * sizeof value], &value, sizeof value);
    }
  }
  return true;
}

}  // namespace larch::io
