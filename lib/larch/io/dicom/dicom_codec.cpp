// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_codec.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <sstream>

#include <charls/charls.h>
#include <gdcmJPEG12Codec.h>
#include <gdcmTrace.h>

#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/formats/formats.h"

namespace larch::io {
namespace {

constexpr std::string_view kJpegStart("\xff\xd8", 2), kJpeg2000Start("\xff\x4f\xff\x51", 4);
constexpr std::string_view kEnd("\xff\xd9", 2);  // of all three

std::optional<Codestream> read_jpeg2000_header(std::string_view data) {
  constexpr size_t kComponents = 42, kComponentBytes = 3;
  const FieldReader in{data.data(), true};
  if (data.size() < kComponents + kComponentBytes) return std::nullopt;
  Codestream found;
  found.kind = Codestream::Kind::kJpeg2000;
  found.columns = in.get<uint32_t>(8) - int64_t{in.get<uint32_t>(16)};
  found.rows = in.get<uint32_t>(12) - int64_t{in.get<uint32_t>(20)};
  found.samples = in.get<uint16_t>(40);
  const auto size = in.get<uint8_t>(kComponents);
  found.precision = (size & 127) + 1;
  found.is_signed = size >> 7 != 0;
  const auto samples = static_cast<size_t>(found.samples);
  if (samples < 1 || data.size() < kComponents + samples * kComponentBytes) return std::nullopt;
  for (size_t i = 0; i < samples; ++i) {
    const auto at = static_cast<int64_t>(kComponents + i * kComponentBytes);
    if (in.get<uint8_t>(at) != size) return std::nullopt;
    found.subsampled |= in.get<uint8_t>(at + 1) != 1 || in.get<uint8_t>(at + 2) != 1;
  }
  return found;
}

// Without a marker the components tell, as libjpeg has it; only that nothing is known of components
// of other numbers than 1, 2, 3, so that the DICOM header is believed.
void take_colours(std::string_view components, Codestream& found) {
  if (components.size() < 9) return;
  const auto id = [&](size_t i) { return static_cast<uint8_t>(components[3 * i]); };
  const auto factors = [&](size_t i) { return components[3 * i + 1]; };
  const bool numbered = id(0) == 1 && id(1) == 2 && id(2) == 3;
  found.is_rgb = id(0) == 'R' && id(1) == 'G' && id(2) == 'B';
  found.is_ycc =
      !found.is_rgb && (numbered || factors(0) != factors(1) || factors(0) != factors(2));
}

// A marker of JPEG with what is there of its segment.
struct Segment {
  uint8_t marker = 0;
  std::string_view body;
};

// The one at `at`, which goes to what follows it; nothing if none with a length stands there.
std::optional<Segment> next_segment(std::string_view data, size_t& at) {
  const FieldReader in{data.data(), true};
  // Any number of bytes ff may stand before a marker.
  while (at + 1 < data.size() && data[at] == '\xff' && data[at + 1] == '\xff') ++at;
  if (at + 4 > data.size() || data[at] != '\xff') return std::nullopt;
  const size_t length = in.get<uint16_t>(static_cast<int64_t>(at + 2));
  if (length < 2) return std::nullopt;
  const Segment found{static_cast<uint8_t>(data[at + 1]), data.substr(at + 4, length - 2)};
  at += 2 + length;
  return found;
}

// Markers up to the frame header, which has the size.
std::optional<Codestream> read_jpeg_header(std::string_view data) {
  Codestream found;
  bool is_jfif = false;
  std::optional<int> adobe;  // its transform
  size_t at = 2;
  while (const std::optional<Segment> segment = next_segment(data, at)) {
    const auto [marker, body] = *segment;
    if (marker == 0xda) break;
    if (marker == 0xe0 && body.substr(0, 4) == "JFIF") is_jfif = true;
    if (marker == 0xee && body.substr(0, 5) == "Adobe" && body.size() > 11) adobe = body[11];
    const bool is_frame =
        marker == 0xf7 || marker == 0xc0 || (marker > 0xc0 && marker <= 0xcf && marker % 4 != 0);
    if (!is_frame) continue;
    if (body.size() < 6) break;
    const FieldReader in{body.data(), true};
    if (marker == 0xf7) found.kind = Codestream::Kind::kJpegLs;
    found.precision = in.get<uint8_t>(0);
    found.rows = in.get<uint16_t>(1);
    found.columns = in.get<uint16_t>(3);
    found.samples = in.get<uint8_t>(5);
    found.process = marker & 15;
    const bool lossy = found.process != 3 && found.kind == Codestream::Kind::kJpeg;
    if (lossy && found.samples == 3) take_colours(body.substr(6, 9), found);
    if (is_jfif || adobe) found.is_ycc = is_jfif || *adobe != 0;
    if (is_jfif || adobe) found.is_rgb = !found.is_ycc;
    return found;
  }
  return std::nullopt;
}

// One run-length coded plane of bytes (annex G.3.2) to every `step`-th byte of `out`.
bool unpack_segment(std::string_view packed, std::byte* out, size_t count, size_t step) {
  size_t at = 0, done = 0;
  while (done < count && at < packed.size()) {
    const auto control = static_cast<uint8_t>(packed[at++]);
    if (control == 128) continue;
    const bool literal = control < 128;
    const size_t run = literal ? control + size_t{1} : size_t{257} - control;
    if (run > count - done || at + (literal ? run : 1) > packed.size()) return false;
    for (size_t i = 0; i < run; ++i, ++done) {
      out[done * step] = static_cast<std::byte>(packed[literal ? at + i : at]);
    }
    at += literal ? run : 1;
  }
  return done == count;
}

DecodedFrame decode_rle(std::string_view data, const DicomObject& object) {
  constexpr size_t kHeader = 64;
  const auto damaged = [&] {
    bad(object.path, "the pixel data cannot be decoded: the run-length coding is damaged");
  };
  const DicomPixelFormat& format = object.format;
  if (format.bits_allocated < 8) {
    bad(object.path,
        "run-length coding of one bit per sample is not supported; export the file "
        "uncompressed");
  }
  const auto bytes = static_cast<size_t>(format.bits_allocated / 8);
  const auto samples = static_cast<size_t>(format.samples);
  const FieldReader in{data.data(), false};
  const size_t segments = data.size() < kHeader ? 0 : in.get<uint32_t>(0);
  if (segments != bytes * samples) damaged();
  const Vec3i& size = object.planes.front().size;
  const size_t pixels = static_cast<size_t>(size.x) * static_cast<size_t>(size.y);
  DecodedFrame frame;
  frame.container_bits = frame.precision = format.bits_allocated;
  frame.bytes = allocate_voxels(static_cast<int64_t>(pixels * segments), object.path);
  for (size_t i = 0; i < segments; ++i) {  // of each sample the highest byte first
    const size_t start = in.get<uint32_t>(static_cast<int64_t>(4 + 4 * i));
    const size_t end =
        i + 1 < segments ? in.get<uint32_t>(static_cast<int64_t>(8 + 4 * i)) : data.size();
    if (start < kHeader || start > end || end > data.size()) damaged();
    std::byte* out = frame.bytes.data() + i / bytes * bytes + (bytes - 1 - i % bytes);
    if (!unpack_segment(data.substr(start, end - start), out, pixels, segments)) damaged();
  }
  return frame;
}

bool kind_fits(const Codestream& stream, TransferSyntax syntax) {
  using enum TransferSyntax;
  const int precision = stream.precision;
  if (stream.kind == Codestream::Kind::kJpeg2000) return syntax == kJpeg2000;
  if (stream.kind == Codestream::Kind::kJpegLs) return syntax == kJpegLs || syntax == kJpegLsNear;
  if (syntax == kJpegLossless) return stream.process == 3;
  if (syntax == kJpegBaseline) return stream.process == 0 && precision == 8;
  return syntax == kJpegExtended && stream.process <= 1 && (precision == 8 || precision == 12);
}

// Through GDCM's decoder of 12 bits itself, which throws its own exceptions: the way around it
// tries that of 8 first, which complains on the terminal.
bool decode_12_bit_jpeg(std::string_view data, const Codestream& stream, DecodedFrame& frame) try {
  gdcm::Trace::DebugOff();
  gdcm::Trace::WarningOff();
  gdcm::Trace::ErrorOff();
  gdcm::JPEG12Codec decoder;
  const unsigned dimensions[] = {static_cast<unsigned>(stream.columns),
                                 static_cast<unsigned>(stream.rows), 1};
  decoder.SetDimensions(dimensions);
  decoder.SetNumberOfDimensions(2);
  decoder.SetPlanarConfiguration(0);
  decoder.SetPhotometricInterpretation(stream.samples == 3
                                           ? gdcm::PhotometricInterpretation::RGB
                                           : gdcm::PhotometricInterpretation::MONOCHROME2);
  decoder.SetPixelFormat(
      gdcm::PixelFormat(static_cast<unsigned short>(stream.samples), 16, 12, 11, 0));
  std::istringstream in{std::string(data)};
  std::ostringstream out;
  if (!decoder.DecodeByStreams(in, out) || out.view().size() != frame.bytes.size()) return false;
  std::memcpy(frame.bytes.data(), out.view().data(), frame.bytes.size());
  return true;
} catch (const std::bad_alloc&) {
  throw;
} catch (const std::exception&) {
  return false;
}

// Tells whether the scans of JPEG-LS hold one component each, or one scan holds all. Nothing if
// they are of both kinds or not as many: CharLS takes the room for all of them from the first.
std::optional<bool> is_plane_by_plane(std::string_view data, size_t samples) {
  const FieldReader in{data.data(), true};
  size_t at = 2, scans = 0;
  bool by_planes = false;
  while (const std::optional<Segment> segment = next_segment(data, at)) {
    if (segment->marker != 0xda) continue;
    const std::string_view body = segment->body;
    const size_t count = body.empty() ? 0 : static_cast<uint8_t>(body[0]);
    if (body.size() != 4 + 2 * count) return std::nullopt;
    const auto interleave = static_cast<uint8_t>(body[2 + 2 * count]);
    const bool is_plane = count == 1 && interleave == 0;
    const bool is_joint = count == samples && (interleave == 1 || interleave == 2);
    if (!is_plane && !is_joint) return std::nullopt;
    if (scans++ > 0 && is_plane != by_planes) return std::nullopt;
    by_planes = is_plane;
    // In coded data a bit 0 follows a byte ff; only markers of restarts stand between them.
    const auto is_end = [&](uint16_t word) { return word >= 0xff80 && (word & 0xfff8) != 0xffd0; };
    while (at + 2 <= data.size() && !is_end(in.get<uint16_t>(static_cast<int64_t>(at)))) ++at;
  }
  if (scans != (by_planes ? samples : 1)) return std::nullopt;
  return by_planes;
}

bool decode_jpegls(std::string_view data, const Codestream& stream, DecodedFrame& frame) {
  const auto samples = static_cast<size_t>(stream.samples);
  const std::optional<bool> by_planes = is_plane_by_plane(data, samples);
  if (!by_planes) return false;
  const std::unique_ptr<charls_jpegls_decoder, decltype(&charls_jpegls_decoder_destroy)> owner(
      charls_jpegls_decoder_create(), charls_jpegls_decoder_destroy);
  charls_jpegls_decoder* const decoder = owner.get();
  if (decoder == nullptr) throw std::bad_alloc();
  constexpr auto kSuccess = charls_jpegls_errc::success;
  const size_t bytes = frame.bytes.size();
  size_t needed = 0;
  const bool is_sound =
      charls_jpegls_decoder_set_source_buffer(decoder, data.data(), data.size()) == kSuccess &&
      charls_jpegls_decoder_read_header(decoder) == kSuccess &&
      charls_jpegls_decoder_get_destination_size(decoder, 0, &needed) == kSuccess &&
      needed == bytes &&
      charls_jpegls_decoder_decode_to_buffer(decoder, frame.bytes.data(), bytes, 0) == kSuccess;
  const auto width = static_cast<size_t>(frame.container_bits / 8);
  if (is_sound && samples == 3 && *by_planes) {
    interleave_planes(frame.bytes, bytes / width / 3, width);
  }
  return is_sound;
}

// False if it is damaged.
bool decode_codestream(std::string_view data, const Codestream& stream, const DicomObject& object,
                       DecodedFrame& frame) {
  using Kind = Codestream::Kind;
  const bool lossy_jpeg = stream.kind == Kind::kJpeg && stream.process != 3;
  if (stream.precision <= 8 && (lossy_jpeg || stream.kind == Kind::kJpegLs)) {
    frame.container_bits = 8;
  }
  if (lossy_jpeg && !is_whole_jpeg(data)) return false;
  if (lossy_jpeg && frame.container_bits == 8) {
    frame.bytes = decode_colour_jpeg(object.path, std::string(data), !object.format.is_ybr());
    return true;
  }
  const int64_t samples = stream.columns * stream.rows * stream.samples;
  frame.bytes = allocate_voxels(samples * (frame.container_bits / 8), object.path);
  if (stream.kind == Kind::kJpeg2000) return decode_jpeg2000(data, stream, object.path, frame);
  if (stream.kind == Kind::kJpegLs) return decode_jpegls(data, stream, frame);
  if (lossy_jpeg) return decode_12_bit_jpeg(data, stream, frame);
  auto* const numbers = reinterpret_cast<uint16_t*>(frame.bytes.data());
  return decode_lossless_jpeg(data, {numbers, static_cast<size_t>(samples)});
}

}  // namespace

bool starts_codestream(std::string_view data) {
  return data.substr(0, 2) == kJpegStart || data.substr(0, 4) == kJpeg2000Start;
}

std::optional<Codestream> read_codestream_header(std::string_view data) {
  if (data.substr(0, 4) == kJpeg2000Start) return read_jpeg2000_header(data);
  if (data.substr(0, 2) == kJpegStart) return read_jpeg_header(data);
  return std::nullopt;
}

Codestream check_codestream(std::string_view data, TransferSyntax syntax, const DicomObject& object,
                            const Vec3i& size) {
  const std::optional<Codestream> found = read_codestream_header(data);
  if (!found) bad(object.path, "a compressed image has no sound header; export it again");
  const Codestream& stream = *found;
  const DicomPixelFormat& format = object.format;
  const auto rule = [&](bool kept, const std::string& what) {
    if (!kept) bad(object.path, "the compressed pixel data " + what + "; export the file again");
  };
  rule(kind_fits(stream, syntax),
       "are not coded as the transfer syntax says, or in a way that is not supported");
  rule(stream.columns == size.x && stream.rows == size.y && stream.samples == format.samples,
       "are of another size than the header says");
  const int fewest_bits = stream.kind == Codestream::Kind::kJpeg2000 ? 1 : 2;
  rule(stream.precision >= fewest_bits && stream.precision <= 16 &&
           stream.precision <= format.bits_allocated,
       "have " + std::to_string(stream.precision) + " bits per sample, against " +
           std::to_string(format.bits_allocated) + " allocated");
  rule(!stream.subsampled, "have fewer samples than pixels");
  rule(!stream.is_ycc || format.photometric != "RGB",
       "say that their colours are not RGB, but the header does");
  rule(!stream.is_rgb || !format.is_ybr(),
       "say that their colours are RGB, but the header does not");
  rule(!stream.is_signed || format.representation != 0, "are signed, but the header says unsigned");
  rule(stream.is_signed || format.representation != 1 || stream.precision >= format.bits_stored,
       "have fewer bits than the header says, so that nothing tells the sign");
  rule(format.high_bit == format.bits_stored - 1,
       "are to be shifted (HighBit), which compression does not allow");
  return stream;
}

DecodedFrame decode_frame(std::string_view data, TransferSyntax syntax, const DicomObject& object) {
  if (syntax == TransferSyntax::kRle) return decode_rle(data, object);
  const Codestream stream = check_codestream(data, syntax, object, object.planes.front().size);
  const size_t end = data.rfind(kEnd);
  if (end == std::string_view::npos) {
    bad(object.path, "a compressed image has no end: the file is truncated; copy it again");
  }
  DecodedFrame frame;
  frame.precision = stream.precision;
  frame.extended = stream.is_signed;
  if (!decode_codestream(data.substr(0, end + kEnd.size()), stream, object, frame)) {
    bad(object.path, "a compressed image is damaged or truncated; copy or export the file again");
  }
  return frame;
}

// From all red samples of a frame, then all green, then all blue, to pixel after pixel.
void interleave_planes(std::span<std::byte> bytes, size_t pixels, size_t width) {
  const std::vector<std::byte> planes(bytes.begin(), bytes.end());
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

}  // namespace larch::io
