// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstring>
#include <type_traits>

#include "larch/core/guard.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_codec.h"
#include "larch/io/dicom/dicom_object.h"

namespace larch::io {
namespace {

constexpr DicomTag kFloatPixelData{0x7fe0, 0x0008, "FloatPixelData"};
constexpr DicomTag kDoublePixelData{0x7fe0, 0x0009, "DoubleFloatPixelData"};

// Bytes of native pixel data of `samples` numbers. Two pixels may share their colour, and have four
// numbers for six then (PS3.3, C.7.6.3.1.2).
int64_t native_bytes(const DicomPixelFormat& format, int64_t samples) {
  if (format.photometric == "YBR_FULL_422") return samples / 3 * 2;
  return format.bits_allocated == 1 ? (samples + 7) / 8 : samples * (format.bits_allocated / 8);
}

// More than a further frame is no padding: a header that says less than there is, of frames, bits
// or samples, is not to be believed.
void require_native(int64_t length, const DicomObject& object, int64_t frame_samples) {
  const int64_t wanted = native_bytes(object.format, frame_samples * object.frames);
  const std::string both = std::to_string(length) + " of " + std::to_string(wanted) + " bytes";
  if (length < wanted) {
    bad(object.path,
        "the pixel data are truncated: " + both + " are there; copy or export the file again");
  }
  const int64_t excess = length - wanted;
  if (excess > 1 && excess >= native_bytes(object.format, frame_samples)) {
    bad(object.path, "the pixel data hold more than the header says: " + both +
                         " are there; repair NumberOfFrames, BitsAllocated or the size, or "
                         "export the file again");
  }
}

// What the bytes can become: two bytes of RLE at most 128 (PS3.5, G.3.1). A blank picture of JPEG
// and its kin can be compressed without limit, so that kAnyPicture bytes are always believed.
void require_compressed(int64_t stored, const DicomObject& object, int64_t wanted) {
  constexpr int64_t kMaximumRle = 64, kMaximumJpeg = 8192, kAnyPicture = 64 << 20;
  const bool rle = object.transfer_syntax == TransferSyntax::kRle;
  if (rle ? wanted <= stored * kMaximumRle
          : wanted <= std::max(stored * kMaximumJpeg, kAnyPicture)) {
    return;
  }
  bad(object.path, "the compressed pixel data are truncated or damaged: " + std::to_string(stored) +
                       " bytes cannot become " + std::to_string(wanted) +
                       "; export the file again");
}

// The numbers of the fragments that the offset table names, one for each frame (PS3.5, A.4).
std::vector<size_t> starts_in_table(std::string_view table, const DicomObject& object) {
  const std::vector<FilePiece>& pieces = object.place->fragments;
  const FieldReader offsets{table.data(), false};
  std::vector<size_t> starts;
  int64_t at = 0;
  for (size_t i = 1; i < pieces.size(); ++i) {
    const size_t next = 4 * starts.size();
    if (next < table.size() && offsets.get<uint32_t>(static_cast<int64_t>(next)) == at) {
      starts.push_back(i);
    }
    at += 8 + pieces[i].bytes;
  }
  if (table.size() != 4 * static_cast<size_t>(object.frames) || 4 * starts.size() != table.size() ||
      starts[0] != 1) {
    bad(object.path,
        "the compressed pixel data are damaged: their offset table does not name the start of "
        "each of " +
            std::to_string(object.frames) + " frames; export the file again");
  }
  return starts;
}

// Tells whether a fragment starts as a frame does: a codestream, or the header of run-length
// coding, which is the number of segments, then their offsets, of which the first follows the
// header.
bool starts_frame(DicomBytes& in, const FilePiece& piece, const DicomObject& object) {
  constexpr int64_t kHeader = 64;
  const std::string bytes = in.read({piece.offset, std::min(piece.bytes, kHeader)});
  if (object.transfer_syntax != TransferSyntax::kRle) return starts_codestream(bytes);
  if (piece.bytes < kHeader) return false;
  const FieldReader header{bytes.data(), false};
  const int segments = object.format.samples * (object.format.bits_allocated / 8);
  return header.get<uint32_t>(0) == static_cast<uint32_t>(segments) &&
         header.get<uint32_t>(4) == kHeader;
}

// Finds the fragments that make each frame (PS3.5, A.4): a frame starts where the offset table, the
// first of them, says; without one each fragment is a frame if there are as many, and otherwise
// those that start as an image does. What the first bytes of each frame say of it is compared with
// the header; the whole of a codestream is checked when it is decoded.
void find_frames(DicomObject& object, const Vec3i& size) {
  constexpr int64_t kLooked = 4096;
  const std::vector<FilePiece>& pieces = object.place->fragments;
  DicomBytes in(object.path);
  const std::string table = pieces.empty() ? std::string() : in.read(pieces[0]);
  std::vector<size_t> starts;
  if (!table.empty()) starts = starts_in_table(table, object);
  size_t used = 0;
  for (size_t i = 1; i < pieces.size(); ++i) used += pieces[i].bytes > 0 ? 1 : 0;
  const auto wanted = static_cast<size_t>(object.frames);
  const bool one_each = table.empty() && used == wanted;
  std::vector<size_t>& frames = object.frame_starts;
  for (size_t i = 1; i < pieces.size(); ++i) {
    const bool starts_here = std::ranges::binary_search(starts, i) ||
                             (pieces[i].bytes > 0 &&
                              (frames.empty() || one_each || starts_frame(in, pieces[i], object)));
    if (starts_here) frames.push_back(i);
  }
  if (frames.size() != wanted) {
    const bool more = frames.size() > wanted;
    bad(object.path, (more ? "the compressed pixel data hold more than the header says: "
                           : "the compressed pixel data are truncated or damaged: ") +
                         std::to_string(frames.size()) + " images for " + std::to_string(wanted) +
                         " frames; " + (more ? "repair NumberOfFrames or export" : "export") +
                         " the file again");
  }
  for (const size_t start : frames) {
    const std::string bytes =
        in.read({pieces[start].offset, std::min(pieces[start].bytes, kLooked)});
    if (read_codestream_header(bytes)) {
      check_codestream(bytes, object.transfer_syntax, object, size);
    }
  }
  frames.push_back(pieces.size());
}

// Moves the stored bits of each number to its lower end and gives it its sign. Returns the number
// of those that have other bits set: neither overlays, nor the sign once more.
template <class U>
int64_t extract(std::span<std::byte> bytes, const DicomPixelFormat& format) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(U));
  const int up = kBits - 1 - format.high_bit, down = kBits - format.bits_stored;
  if (down == 0) return 0;
  const bool is_signed = format.representation == 1;
  const auto above = static_cast<U>(~(((uint64_t{1} << format.high_bit) << 1) - 1));
  const auto stored = static_cast<U>(((uint64_t{1} << format.bits_stored) - 1)
                                     << (format.high_bit + 1 - format.bits_stored));
  const auto others = static_cast<U>(~stored & ~format.overlay_bits);
  const auto* numbers = reinterpret_cast<const U*>(bytes.data());
  const bool in_place = !is_signed && format.high_bit == format.bits_stored - 1;
  U all = 0;
  for (size_t i = 0; in_place && i < bytes.size() / sizeof(U); ++i) all |= numbers[i];
  if (in_place && static_cast<U>(all & ~stored) == 0) return 0;  // as most files are
  int64_t unexplained = 0;
  for (size_t i = 0; i + sizeof(U) <= bytes.size(); i += sizeof(U)) {
    U value = 0;
    std::memcpy(&value, &bytes[i], sizeof(U));
    const auto other = static_cast<U>(value & others);
    const bool negative = is_signed && (value >> format.high_bit & 1) != 0;
    const bool sign_again = negative && other == static_cast<U>(above & others);
    unexplained += other != 0 && !sign_again ? 1 : 0;
    value = static_cast<U>(value << up);
    value = is_signed ? static_cast<U>(static_cast<std::make_signed_t<U>>(value) >> down)
                      : static_cast<U>(value >> down);
    std::memcpy(&bytes[i], &value, sizeof(U));
  }
  return unexplained;
}

// The numbers Y Y CB CR of two pixels, from the start of `pixels`, become Y CB CR of each.
void spread_colours(std::span<std::byte> pixels) {
  for (size_t i = pixels.size() / 6; i-- > 0;) {
    const std::byte* two = &pixels[4 * i];
    const std::byte spread[] = {two[0], two[2], two[3], two[1], two[2], two[3]};
    std::ranges::copy(spread, &pixels[6 * i]);
  }
}

// Y CB CR to red, green and blue (PS3.3, C.7.6.3.1.2).
void ybr_to_rgb(std::span<std::byte> pixels) {
  const auto byte = [](double value) {
    return static_cast<std::byte>(std::clamp(std::floor(value + 0.5), 0.0, 255.0));
  };
  for (size_t i = 0; i + 3 <= pixels.size(); i += 3) {
    const auto number = [&](size_t k) { return std::to_integer<int>(pixels[i + k]); };
    const double y = number(0), cb = number(1) - 128, cr = number(2) - 128;
    pixels[i] = byte(y + 1.402 * cr);
    pixels[i + 1] = byte(y - (0.114 * 1.772 * cb + 0.299 * 1.402 * cr) / 0.587);
    pixels[i + 2] = byte(y + 1.772 * cb);
  }
}

// Big-endian pixel data are words (PS3.5, A.3), or bytes.
void require_byte_order(const DicomObject& object, int64_t samples_of_frame) {
  const int bits = object.format.bits_allocated;
  const bool words = object.place->vr == std::array{'O', 'W'};
  if ((bits == 16 && words) || (bits == 8 && !words)) return;
  if (bits == 8 && samples_of_frame % 2 == 0) return;  // frames begin with a word
  bad(object.path, "big-endian pixel data of " + std::to_string(bits) +
                       " bits are not supported; convert the file to little-endian");
}

// Puts the samples of a decoder into the container and the sign that the header says; a number that
// the stored bits cannot hold is damage, because compression leaves no room for other bits.
template <class From, class To>
void store_samples(const DecodedFrame& frame, const DicomObject& object, To* out) {
  const DicomPixelFormat& format = object.format;
  const bool as_signed = format.representation == 1;
  const int from_bits = frame.extended ? 8 * static_cast<int>(sizeof(From)) : frame.precision;
  const int64_t mask = (int64_t{1} << format.bits_stored) - 1;
  for (size_t i = 0; i < frame.bytes.size() / sizeof(From); ++i) {
    From sample = 0;
    std::memcpy(&sample, &frame.bytes[i * sizeof(From)], sizeof(From));
    const int64_t raw = sample;
    int64_t value = raw & mask;
    if (as_signed && value >> (format.bits_stored - 1) != 0) value -= mask + 1;
    const int64_t whole =
        as_signed && raw >> (from_bits - 1) != 0 ? raw - (int64_t{1} << from_bits) : raw;
    // Encoders leave the bits above the stored ones 0, or fill them with the sign.
    if (value != whole && (frame.extended || raw != (raw & mask))) {
      bad(object.path, "a compressed sample, " + std::to_string(whole) + ", has more than the " +
                           std::to_string(format.bits_stored) +
                           " bits that the header says; export the file again");
    }
    out[i] = static_cast<To>(value);
  }
}

}  // namespace

Component component_of(const DicomPixelFormat& format) {
  const bool is_signed = format.representation == 1;
  if (format.bits_allocated <= 8) return is_signed ? Component::kInt8 : Component::kUint8;
  if (format.bits_allocated <= 16) return is_signed ? Component::kInt16 : Component::kUint16;
  return is_signed ? Component::kInt32 : Component::kUint32;
}

void check_pixel_claims(const DicomFile& file, DicomObject& object, const Vec3i& size) {
  using enum TransferSyntax;
  // Sizes are below 2^16, samples 1 or 3, and frames at most a million.
  const int64_t samples = int64_t{size.x} * size.y * object.format.samples;
  const int64_t wanted = native_bytes(object.format, samples * object.frames);
  if (!object.place) {
    const bool is_floating = file.data.find(kFloatPixelData) || file.data.find(kDoublePixelData);
    bad(object.path,
        is_floating ? "floating-point pixels are not supported; convert it, for example to NIfTI"
                    : "the DICOM " + object.kind + " has no pixel data; give an image");
  }
  const TransferSyntax syntax = object.transfer_syntax;
  const bool is_native = syntax == kImplicitLittle || syntax == kExplicitLittle ||
                         syntax == kDeflated || syntax == kExplicitBig;
  // The element and the transfer syntax must agree.
  const bool is_encapsulated = object.place->is_encapsulated;
  const DicomPixelFormat& format = object.format;
  const bool is_of_jpeg_2000 = format.photometric == "YBR_RCT" || format.photometric == "YBR_ICT";
  if (format.is_ybr() && is_of_jpeg_2000 != (syntax == kJpeg2000)) {
    bad(object.path, "pixels are stored as '" + format.photometric +
                         "', which is not supported in its transfer syntax; convert to RGB");
  }
  if (format.photometric == "YBR_FULL_422" && !is_encapsulated &&
      (size.x % 2 != 0 || format.planar != 0)) {
    bad_header(object.path,
               "its pixels share their colours (YBR_FULL_422), and do not do so in pairs");
  }
  if (is_encapsulated ? file.inflated != nullptr : !is_native) {
    bad(object.path,
        "the pixel data are not coded as the transfer syntax says, or in a way that "
        "is not supported; export the file again");
  }
  if (!is_encapsulated) {
    if (guarded(Guard::kDicomClaims)) require_native(object.place->native.bytes, object, samples);
    return;
  }
  find_frames(object, size);
  int64_t stored = 0;
  for (const FilePiece& piece : object.place->fragments) stored += piece.bytes;
  if (guarded(Guard::kDicomClaims)) require_compressed(stored, object, wanted);
}

DicomPixels::DicomPixels(const DicomObject& object, const ReadOptions& options)
    : object_(object),
      options_(options),
      in_(object.path, object.transfer_syntax == TransferSyntax::kDeflated
                           ? read_dicom_file(object.path).inflated
                           : nullptr) {
  const bool is_big = object.transfer_syntax == TransferSyntax::kExplicitBig;
  if (is_big && !object.place->is_encapsulated) require_byte_order(object, samples_of_frame());
}

int64_t DicomPixels::samples_of_frame() const {
  const Vec3i& size = object_.planes.front().size;
  return int64_t{size.x} * size.y * object_.format.samples;
}

// Bits beyond the stored ones are most often numbers that do not fit: a wrong BitsStored.
void DicomPixels::extract_bits(std::span<std::byte> to) {
  int64_t unexplained = 0;
  with_type(component_of(object_.format), [&](auto type) {
    using Type = decltype(type);
    if constexpr (std::is_integral_v<Type>) {
      unexplained = extract<std::make_unsigned_t<Type>>(to, object_.format);
    }
  });
  if (unexplained == 0) return;
  require_allowed(
      options_, Allow::kUnusedBits,
      "'" + object_.path + "': " + std::to_string(unexplained) +
          " samples have bits set beside the " + std::to_string(object_.format.bits_stored) +
          " that BitsStored and HighBit name, and no overlay lies there",
      "those bits are cut off, also of padding beyond the stored bits, which then looks "
      "like tissue");
  options_.warn = nullptr;  // once is enough
}

void DicomPixels::read_native(const FrameRange& frames, std::span<std::byte> to) {
  const DicomPixelFormat& format = object_.format;
  const int64_t before = samples_of_frame() * frames.first;
  const int64_t start = object_.place->native.offset;
  // Segmentations store one bit per voxel, the first in the lowest bit of a byte; those of a frame
  // may begin in the middle of one.
  if (format.bits_allocated == 1) {
    const int64_t first = before / 8, end = (before + static_cast<int64_t>(to.size()) + 7) / 8;
    const std::string bits = in_.read({start + first, end - first});
    for (size_t i = 0; i < to.size(); ++i) {
      const size_t at = static_cast<size_t>(before % 8) + i;
      to[i] = static_cast<std::byte>(bits[at / 8] >> (at % 8) & 1);
    }
    return;
  }
  const bool shares_colours = format.photometric == "YBR_FULL_422";
  const auto stored = shares_colours ? to.first(to.size() / 3 * 2) : to;
  in_.read({start + native_bytes(format, before), static_cast<int64_t>(stored.size())}, to.data());
  const bool words = object_.place->vr == std::array{'O', 'W'};
  if (words && object_.transfer_syntax == TransferSyntax::kExplicitBig) swap_all(stored, 2);
  if (shares_colours) return spread_colours(to);
  extract_bits(to);
  if (format.samples == 3 && format.planar == 1) {
    interleave_planes(to, static_cast<size_t>(samples_of_frame() / 3),
                      static_cast<size_t>(format.bits_allocated / 8));
  }
}

void DicomPixels::read_compressed(int64_t frame, std::span<std::byte> to) {
  const TransferSyntax syntax = object_.transfer_syntax;
  const size_t* const starts = &object_.frame_starts[static_cast<size_t>(frame)];
  std::string data;
  for (size_t i = starts[0]; i < starts[1]; ++i) data += in_.read(object_.place->fragments[i]);
  const DecodedFrame decoded = decode_frame(data, syntax, object_);
  if (syntax == TransferSyntax::kRle) {  // bit for bit what was stored
    std::memcpy(to.data(), decoded.bytes.data(), to.size());
    extract_bits(to);
    return;
  }
  with_type(component_of(object_.format), [&](auto type) {
    auto* const out = reinterpret_cast<decltype(type)*>(to.data());
    if (decoded.container_bits == 8) {
      store_samples<uint8_t>(decoded, object_, out);
    } else {
      store_samples<uint16_t>(decoded, object_, out);
    }
  });
}

void DicomPixels::read(const FrameRange& frames, std::span<std::byte> to) {
  using enum TransferSyntax;
  const size_t bytes = to.size() / static_cast<size_t>(frames.count);
  const bool is_encapsulated = object_.place->is_encapsulated;
  if (!is_encapsulated) read_native(frames, to);
  for (int64_t i = 0; is_encapsulated && i < frames.count; ++i) {
    read_compressed(frames.first + i, to.subspan(static_cast<size_t>(i) * bytes, bytes));
  }
  const TransferSyntax syntax = object_.transfer_syntax;
  const bool by_decoder = syntax == kJpegBaseline || syntax == kJpegExtended || syntax == kJpeg2000;
  if (object_.format.is_ybr() && !by_decoder) ybr_to_rgb(to);
}

namespace {

constexpr DicomTag kStorageClass{0x0008, 0x0016, "SOPClassUID"};
constexpr DicomTag kSegmentationType{0x0062, 0x0001, "SegmentationType"};
constexpr DicomTag kSegments{0x0062, 0x0002, "SegmentSequence"};
constexpr DicomTag kSegmentNumber{0x0062, 0x0004, "SegmentNumber"};
constexpr DicomTag kOwnGroup{0x0063, 0x0010, "the private creator (0063,0010)"};
constexpr DicomTag kOwnLabel{0x0063, 0x1001, "the label of a segment (0063,1001)"};
constexpr DicomTag kSegmentLabel{0x0062, 0x0005, "SegmentLabel"};

}  // namespace

std::optional<DicomSegments> segments_of(const DicomDataset& data, const std::string& path) {
  const std::string storage = text_of(data, kStorageClass);
  const std::string type = text_of(data, kSegmentationType);
  DicomSegments found;
  found.is_labelmap = storage == "1.2.840.10008.5.1.4.1.1.66.7" || type == "LABELMAP";
  if (!found.is_labelmap && storage != "1.2.840.10008.5.1.4.1.1.66.4") return std::nullopt;
  if (!found.is_labelmap && type != "BINARY") {
    bad(path, "a segmentation of the type " + shown(type) +
                  ", whose pixels are shares or probabilities of a segment and no labels; write "
                  "it by a threshold as BINARY or LABELMAP");
  }
  for (const DicomItem& item : items_of(data, kSegments)) {
    int32_t label = uint16_of(item.data, kSegmentNumber, 0, path);
    const std::vector<uint16_t> own = uint16s_of(item.data, kOwnLabel);
    if (!found.is_labelmap && text_of(item.data, kOwnGroup) == "LARCH" && own.size() == 2) {
      const auto value = static_cast<int32_t>(uint32_t{own[1]} << 16 | own[0]);
      // Others have no place in float32, in which DICOM is read.
      if (std::abs(int64_t{value}) <= 1 << 24) label = found.renumbered[label] = value;
    }
    found.table.push_back({label, text_of(item.data, kSegmentLabel)});
  }
  return found;
}

}  // namespace larch::io
