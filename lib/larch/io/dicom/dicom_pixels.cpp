// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>
#include <type_traits>

#include <gdcmTransferSyntax.h>

#include "larch/core/guard.h"
#include "larch/io/dicom/dicom_codec.h"
#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/dicom/dicom_file.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/xa/dicom_fragments.h"

namespace larch::io {
namespace {

using gdcm::TransferSyntax;

constexpr DicomTag kFloatPixelData{0x7fe0, 0x0008, "FloatPixelData"};
constexpr DicomTag kDoublePixelData{0x7fe0, 0x0009, "DoubleFloatPixelData"};

// Bytes of native pixel data of `samples` numbers.
int64_t native_bytes(const DicomPixelFormat& format, int64_t samples) {
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

[[noreturn]] void bad_coding(const std::string& path) {
  bad(path,
      "the pixel data are not coded as the transfer syntax says, or in a way that "
      "is not supported; export the file again");
}

TransferSyntax syntax_of(const DicomFile& file) {
  return TransferSyntax::GetTSType(file.transfer_syntax.c_str());
}

bool is_native(const TransferSyntax& syntax) {
  return syntax == TransferSyntax::ImplicitVRLittleEndian ||
         syntax == TransferSyntax::ExplicitVRLittleEndian ||
         syntax == TransferSyntax::DeflatedExplicitVRLittleEndian ||
         syntax == TransferSyntax::ExplicitVRBigEndian;
}

// Native or encapsulated, as both the element and the transfer syntax must say.
bool is_compressed(bool is_encapsulated, const TransferSyntax& syntax, const std::string& path) {
  if (!is_encapsulated && !is_native(syntax)) bad_coding(path);
  return is_encapsulated;
}

// The fragments of one frame. Views, so that a file of many small ones takes little memory.
struct FrameFragments {
  const std::string_view* first = nullptr;
  size_t count = 0;

  std::string joined() const {
    std::string bytes;
    for (size_t i = 0; i < count; ++i) bytes += first[i];
    return bytes;
  }
};

std::vector<FrameFragments> frame_fragments(const DicomElement& element,
                                            const TransferSyntax& syntax,
                                            const DicomObject& object) {
  const std::vector<std::string_view>& all = element.fragments;
  std::vector<FragmentStart> starts;
  starts.reserve(all.size());
  for (const std::string_view fragment : all) {
    starts.push_back({fragment.size(), starts_frame(fragment, syntax, object.format)});
  }
  std::vector<FrameFragments> frames;
  for (const FragmentRun& run :
       frames_of_fragments(starts, all.empty() ? std::string_view() : all[0], object)) {
    frames.push_back({&all[run.first], run.count});
  }
  return frames;
}

// What the bytes can become: two bytes of RLE at most 128 (PS3.5, G.3.1). A blank picture of JPEG
// and its kin can be compressed without limit, so that kAnyPicture bytes are always believed.
void require_compressed(int64_t stored, const TransferSyntax& syntax, const DicomObject& object,
                        int64_t wanted) {
  constexpr int64_t kMostRle = 64, kMostJpeg = 8192, kAnyPicture = 64 << 20;
  const bool rle = syntax == TransferSyntax::RLELossless;
  if (rle ? wanted <= stored * kMostRle : wanted <= std::max(stored * kMostJpeg, kAnyPicture)) {
    return;
  }
  bad(object.path, "the compressed pixel data are truncated or damaged: " + std::to_string(stored) +
                       " bytes cannot become " + std::to_string(wanted) +
                       "; export the file again");
}

void check_compressed(const DicomElement& element, const TransferSyntax& syntax,
                      const DicomObject& object, const Vec3i& size, int64_t wanted) {
  const bool rle = syntax == TransferSyntax::RLELossless;
  int64_t stored = 0;
  for (const FrameFragments& frame : frame_fragments(element, syntax, object)) {
    const std::string bytes = frame.joined();
    stored += static_cast<int64_t>(bytes.size());
    if (!rle && starts_codestream(bytes)) check_codestream(bytes, syntax, object, size);
  }
  require_compressed(stored, syntax, object, wanted);
}

int64_t samples_of_frame(const DicomObject& object) {
  const Vec3i& size = object.planes.front().size;
  return int64_t{size.x} * size.y * object.format.samples;
}

// Moves the stored bits of each number to its lower end and gives it its sign. Returns the number
// of those that have other bits set: neither overlays, nor the sign once more.
template <class U>
int64_t extract(std::vector<std::byte>& bytes, const DicomPixelFormat& format) {
  constexpr int kBits = 8 * static_cast<int>(sizeof(U));
  const int up = kBits - 1 - format.high_bit, down = kBits - format.bits_stored;
  if (down == 0) return 0;
  const bool is_signed = format.representation == 1;
  const auto above = static_cast<U>(~(((uint64_t{1} << format.high_bit) << 1) - 1));
  const auto stored = static_cast<U>(((uint64_t{1} << format.bits_stored) - 1)
                                     << (format.high_bit + 1 - format.bits_stored));
  const auto others = static_cast<U>(~stored & ~format.overlay_bits);
  int64_t unexplained = 0;
  for (size_t i = 0; i + sizeof(U) <= bytes.size(); i += sizeof(U)) {
    U value = 0;
    std::memcpy(&value, &bytes[i], sizeof(U));
    const auto other = static_cast<U>(value & others);
    const bool negative = is_signed && (value >> format.high_bit & 1) != 0;
    const bool sign_again = negative && other == static_cast<U>(above & others);
    unexplained += other != 0 && !sign_again ? 1 : 0;
    value = static_cast<U>(value << up);
    if (is_signed) {
      value = static_cast<U>(static_cast<std::make_signed_t<U>>(value) >> down);
    } else {
      value = static_cast<U>(value >> down);
    }
    std::memcpy(&bytes[i], &value, sizeof(U));
  }
  return unexplained;
}

int64_t extract_any(std::vector<std::byte>& bytes, const DicomPixelFormat& format) {
  if (format.bits_allocated == 8) return extract<uint8_t>(bytes, format);
  if (format.bits_allocated == 16) return extract<uint16_t>(bytes, format);
  return extract<uint32_t>(bytes, format);
}

// Bits beyond the stored ones are most often numbers that do not fit: a wrong BitsStored.
void extract_stored_bits(std::vector<std::byte>& bytes, const DicomObject& object,
                         const ReadOptions& options) {
  const int64_t unexplained = extract_any(bytes, object.format);
  if (unexplained == 0) return;
  require_allowed(
      options, Allow::kUnusedBits,
      "'" + object.path + "': " + std::to_string(unexplained) +
          " samples have bits set beside the " + std::to_string(object.format.bits_stored) +
          " that BitsStored and HighBit name, and no overlay lies there",
      "those bits are cut off, also of padding beyond the stored bits, which then looks "
      "like tissue");
}

// Segmentations store one bit per voxel, the first in the lowest bit. `first`: the first that is
// wanted.
void unpack_bits(std::string_view bits, int64_t first, std::vector<std::byte>& out) {
  for (size_t i = 0; i < out.size(); ++i) {
    const size_t at = static_cast<size_t>(first) + i;
    out[i] = static_cast<std::byte>(bits[at / 8] >> (at % 8) & 1);
  }
}

// From all red samples of a frame, then all green, then all blue, to pixel after pixel.
void interleave(std::vector<std::byte>& bytes, size_t pixels, size_t width) {
  const std::vector<std::byte> planes = bytes;
  const size_t frame = 3 * pixels * width;
  for (size_t start = 0; start + frame <= bytes.size(); start += frame) {
    for (size_t i = 0; i < pixels; ++i) {
      for (size_t channel = 0; channel < 3; ++channel) {
        std::memcpy(&bytes[start + (3 * i + channel) * width],
                    &planes[start + (channel * pixels + i) * width], width);
      }
    }
  }
}

// Big-endian pixel data are words (PS3.5, A.3), or bytes.
void require_byte_order(const DicomElement& element, const DicomObject& object) {
  const int bits = object.format.bits_allocated;
  const bool words = element.has_vr("OW");
  if ((bits == 16 && words) || (bits == 8 && !words)) return;
  if (bits == 8 && samples_of_frame(object) * object.frames % 2 == 0) return;
  bad(object.path, "big-endian pixel data of " + std::to_string(bits) +
                       " bits are not supported; convert the file to little-endian");
}

DicomPixels native_pixels(const DicomElement& element, bool big_endian, const DicomObject& object,
                          const FrameRange& frames, const ReadOptions& options) {
  const DicomPixelFormat& format = object.format;
  const int64_t before = samples_of_frame(object) * frames.first;
  const int64_t count = samples_of_frame(object) * frames.count;
  const bool one_bit = format.bits_allocated == 1;
  const int64_t wanted = native_bytes(format, count);
  require_native(static_cast<int64_t>(element.value.size()), object, samples_of_frame(object));
  DicomPixels pixels;
  pixels.component = component_of(format);
  pixels.channels = format.samples;
  pixels.bytes = allocate_voxels(one_bit ? count : wanted, object.path);
  pixels.first_frame = frames.first;
  if (one_bit) {  // the bits of a frame may begin in the middle of a byte
    unpack_bits(element.value, before, pixels.bytes);
    return pixels;
  }
  const std::string_view stored = element.value.substr(
      static_cast<size_t>(native_bytes(format, before)), static_cast<size_t>(wanted));
  std::memcpy(pixels.bytes.data(), stored.data(), stored.size());
  if (big_endian && element.has_vr("OW")) swap_all(pixels.bytes, 2);
  extract_stored_bits(pixels.bytes, object, options);
  if (format.samples == 3 && format.planar == 1) {
    interleave(pixels.bytes, static_cast<size_t>(samples_of_frame(object) / 3),
               static_cast<size_t>(format.bits_allocated / 8));
  }
  return pixels;
}

// Puts the samples of a decoder into the container and the sign that the header says; a number that
// the stored bits cannot hold is damage, because compression leaves no room for other bits.
template <class From, class To>
void store_samples(const DecodedFrame& frame, const DicomObject& object, std::byte* out) {
  const DicomPixelFormat& format = object.format;
  const bool as_signed = format.representation == 1;
  const int from_bits = frame.extended ? 8 * static_cast<int>(sizeof(From)) : frame.precision;
  const size_t count = frame.bytes.size() / sizeof(From);
  for (size_t i = 0; i < count; ++i) {
    From sample = 0;
    std::memcpy(&sample, &frame.bytes[i * sizeof(From)], sizeof(From));
    const int64_t raw = sample;
    const int64_t mask = (int64_t{1} << format.bits_stored) - 1;
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
    const To number = static_cast<To>(value);
    std::memcpy(out + i * sizeof(To), &number, sizeof(To));
  }
}

DicomPixels compressed_pixels(const DicomElement& element, const TransferSyntax& syntax,
                              const DicomObject& object, const FrameRange& range,
                              const ReadOptions& options) {
  const std::vector<FrameFragments> frames = frame_fragments(element, syntax, object);
  const DicomPixelFormat& format = object.format;
  DicomPixels pixels;
  pixels.component = component_of(format);
  pixels.channels = format.samples;
  const int64_t frame_bytes = samples_of_frame(object) * bytes_of(pixels.component);
  pixels.first_frame = range.first;
  pixels.bytes = allocate_voxels(frame_bytes * range.count, object.path);
  for (int64_t i = 0; i < range.count; ++i) {
    const FrameFragments& fragments = frames[static_cast<size_t>(range.first + i)];
    DecodedFrame frame = decode_frame(fragments.joined(), syntax, object);
    std::byte* out = pixels.bytes.data() + i * frame_bytes;
    if (syntax == TransferSyntax::RLELossless) {  // bit for bit what was stored
      extract_stored_bits(frame.bytes, object, options);
      std::memcpy(out, frame.bytes.data(), frame.bytes.size());
    } else if (frame.container_bits == 8 && format.bits_allocated == 8) {
      store_samples<uint8_t, uint8_t>(frame, object, out);
    } else if (frame.container_bits == 8 && format.bits_allocated == 16) {
      store_samples<uint8_t, uint16_t>(frame, object, out);
    } else if (frame.container_bits == 8) {
      store_samples<uint8_t, uint32_t>(frame, object, out);
    } else if (format.bits_allocated == 16) {
      store_samples<uint16_t, uint16_t>(frame, object, out);
    } else {
      store_samples<uint16_t, uint32_t>(frame, object, out);
    }
  }
  return pixels;
}

const DicomElement& pixel_data_of(const DicomFile& file, const DicomObject& object) {
  if (const DicomElement* element = file.data.find(kPixelData)) return *element;
  if (file.data.find(kFloatPixelData) != nullptr || file.data.find(kDoublePixelData) != nullptr) {
    bad(object.path, "floating-point pixels are not supported; convert it, for example to NIfTI");
  }
  bad(object.path, "the DICOM " + object.kind + " has no pixel data; give an image");
}

}  // namespace

Component component_of(const DicomPixelFormat& format) {
  const bool is_signed = format.representation == 1;
  if (format.bits_allocated <= 8) return is_signed ? Component::kInt8 : Component::kUint8;
  if (format.bits_allocated <= 16) return is_signed ? Component::kInt16 : Component::kUint16;
  return is_signed ? Component::kInt32 : Component::kUint32;
}

void check_pixel_format(const DicomPixelFormat& format, const std::string& path) {
  const std::string& photometric = format.photometric;
  if (photometric == "PALETTE COLOR") {
    bad(path, "pixels are stored with a colour palette, which is not supported; convert to RGB");
  }
  const bool grey = photometric == "MONOCHROME1" || photometric == "MONOCHROME2";
  if (!(format.samples == 1 && grey) && !(format.samples == 3 && photometric == "RGB")) {
    bad(path, "pixels are stored as '" + photometric + "' with " + std::to_string(format.samples) +
                  " samples, which is not supported; convert to RGB or MONOCHROME2");
  }
  if (!guarded(Guard::kDicomBitRules)) return;
  const int allocated = format.bits_allocated, stored = format.bits_stored;
  const auto rule = [&](bool kept, const std::string& what) {
    if (!kept) bad(path, what + "; repair the header or export the file again");
  };
  rule(allocated == 1 || allocated == 8 || allocated == 16 || allocated == 32,
       "BitsAllocated is " + std::to_string(allocated) + "; 1, 8, 16 and 32 are supported");
  rule(stored >= 1 && stored <= allocated, "BitsStored is " + std::to_string(stored) + " of " +
                                               std::to_string(allocated) + " allocated");
  rule(format.high_bit >= stored - 1 && format.high_bit < allocated,
       "HighBit is " + std::to_string(format.high_bit) + " with " + std::to_string(stored) +
           " bits stored of " + std::to_string(allocated) + " allocated");
  rule(format.samples == 1 || stored == allocated,
       "BitsStored is " + std::to_string(stored) + " of " + std::to_string(allocated) +
           " allocated, which is supported for grey images alone");
  rule(format.representation == 0 || format.representation == 1,
       "PixelRepresentation is " + std::to_string(format.representation) + ", neither 0 nor 1");
  rule(format.samples == 1 || format.planar == 0 || format.planar == 1,
       "PlanarConfiguration is " + std::to_string(format.planar) + ", neither 0 nor 1");
  rule(allocated != 1 || (format.samples == 1 && format.representation == 0),
       "one bit is allocated for a sample that is signed or a colour");
}

void check_pixel_claims(const DicomFile& file, const DicomObject& object, const Vec3i& size) {
  if (!guarded(Guard::kDicomClaims)) return;
  const TransferSyntax syntax = syntax_of(file);
  // Sizes are below 2^16, samples 1 or 3, and frames at most a million.
  const int64_t samples = int64_t{size.x} * size.y * object.format.samples;
  const int64_t wanted = native_bytes(object.format, samples * object.frames);
  if (file.place) {  // what its codestreams say is compared when they are decoded
    int64_t stored = 0;
    for (const FilePiece& piece : file.place->fragments) stored += piece.bytes;
    if (is_compressed(file.place->is_encapsulated, syntax, object.path)) {
      require_compressed(stored, syntax, object, wanted);
    } else {
      require_native(file.place->native.bytes, object, samples);
    }
    return;
  }
  const DicomElement& element = pixel_data_of(file, object);
  if (is_compressed(element.is_encapsulated, syntax, object.path)) {
    check_compressed(element, syntax, object, size, wanted);
  } else {
    require_native(static_cast<int64_t>(element.value.size()), object, samples);
  }
}

DicomPixels decode_dicom_pixels(const DicomElement& element, const std::string& transfer_syntax,
                                const DicomObject& object, const FrameRange& frames,
                                const ReadOptions& options) {
  const TransferSyntax syntax = TransferSyntax::GetTSType(transfer_syntax.c_str());
  if (is_compressed(element.is_encapsulated, syntax, object.path)) {
    return compressed_pixels(element, syntax, object, frames, options);
  }
  const bool big_endian = syntax == TransferSyntax::ExplicitVRBigEndian;
  if (big_endian) require_byte_order(element, object);
  return native_pixels(element, big_endian, object, frames, options);
}

DicomPixels read_dicom_pixels(const DicomObject& object, const FrameRange& frames,
                              const ReadOptions& options) {
  const DicomFile file = read_dicom_file(object.path);
  return decode_dicom_pixels(pixel_data_of(file, object), file.transfer_syntax, object, frames,
                             options);
}

}  // namespace larch::io
