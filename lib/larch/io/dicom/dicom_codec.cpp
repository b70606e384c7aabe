// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_codec.h"

#include <cstring>
#include <sstream>

#include <gdcmBitmap.h>
#include <gdcmJPEG12Codec.h>
#include <gdcmSequenceOfFragments.h>
#include <gdcmTrace.h>

#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/formats/jpeg_read.h"
#include "larch/io/formats/jpeg_scan.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"

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

// Without a marker the components tell, as libjpeg has it; only that components of other numbers
// than 1, 2, 3 count as red, green and blue, which is what the DICOM header says of them.
bool components_are_ycc(std::string_view components) {
  if (components.size() < 9) return false;
  const auto id = [&](size_t i) { return static_cast<uint8_t>(components[3 * i]); };
  const auto factors = [&](size_t i) { return components[3 * i + 1]; };
  const bool rgb = id(0) == 'R' && id(1) == 'G' && id(2) == 'B';
  const bool numbered = id(0) == 1 && id(1) == 2 && id(2) == 3;
  return !rgb && (numbered || factors(0) != factors(1) || factors(0) != factors(2));
}

// Markers up to the frame header, which has the size.
std::optional<Codestream> read_jpeg_header(std::string_view data) {
  const FieldReader in{data.data(), true};
  Codestream found;
  bool is_jfif = false;
  std::optional<int> adobe;  // its transform
  for (size_t i = 2; i + 10 <= data.size();) {
    const auto marker = static_cast<uint8_t>(data[i + 1]);
    const auto at = static_cast<int64_t>(i);
    if (static_cast<uint8_t>(data[i]) != 0xff || marker == 0xda) break;
    if (marker == 0xff) {  // a fill byte, of which any number may stand before a marker
      ++i;
      continue;
    }
    const bool frame = marker == 0xf7 || (marker >= 0xc0 && marker <= 0xcf && marker != 0xc4 &&
                                          marker != 0xc8 && marker != 0xcc);
    if (frame) {
      if (marker == 0xf7) found.kind = Codestream::Kind::kJpegLs;
      found.precision = in.get<uint8_t>(at + 4);
      found.rows = in.get<uint16_t>(at + 5);
      found.columns = in.get<uint16_t>(at + 7);
      found.samples = in.get<uint8_t>(at + 9);
      found.process = marker & 15;
      const bool lossy = found.process != 3 && found.kind == Codestream::Kind::kJpeg;
      found.is_ycc = is_jfif || (adobe ? *adobe != 0
                                       : lossy && found.samples == 3 &&
                                             components_are_ycc(data.substr(i + 10, 9)));
      return found;
    }
    const size_t length = in.get<uint16_t>(at + 2);
    if (length < 2) break;
    const std::string_view segment = data.substr(i + 4, length - 2);
    if (marker == 0xe0 && segment.substr(0, 4) == "JFIF") is_jfif = true;
    if (marker == 0xee && segment.substr(0, 5) == "Adobe" && segment.size() > 11) {
      adobe = segment[11];
    }
    i += 2 + length;
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
  if (data.size() < kHeader) damaged();
  const auto bytes = static_cast<size_t>(format.bits_allocated / 8);
  const auto samples = static_cast<size_t>(format.samples);
  const FieldReader in{data.data(), false};
  const size_t segments = in.get<uint32_t>(0);
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

bool kind_fits(const Codestream& stream, const gdcm::TransferSyntax& syntax) {
  using gdcm::TransferSyntax;
  const Codestream::Kind kind = stream.kind;
  const bool jpeg = kind == Codestream::Kind::kJpeg;
  switch (static_cast<TransferSyntax::TSType>(syntax)) {
    case TransferSyntax::JPEGBaselineProcess1:
      return jpeg && stream.process == 0 && stream.precision == 8;
    case TransferSyntax::JPEGExtendedProcess2_4:
      return jpeg && stream.process <= 1 && (stream.precision == 8 || stream.precision == 12);
    case TransferSyntax::JPEGLosslessProcess14:
    case TransferSyntax::JPEGLosslessProcess14_1:
      return jpeg && stream.process == 3;
    case TransferSyntax::JPEGLSLossless:
    case TransferSyntax::JPEGLSNearLossless:
      return kind == Codestream::Kind::kJpegLs;
    case TransferSyntax::JPEG2000Lossless:
    case TransferSyntax::JPEG2000:
      return kind == Codestream::Kind::kJpeg2000;
    default:
      return false;
  }
}

// All that GDCM's decoders take for granted, and contradictions between the two headers.
void check_agreement(const Codestream& stream, const gdcm::TransferSyntax& syntax,
                     const DicomObject& object, const Vec3i& size) {
  const DicomPixelFormat& format = object.format;
  const auto bad = [&](const std::string& what) {
    io::bad(object.path, "the compressed pixel data " + what + "; export the file again");
  };
  if (!kind_fits(stream, syntax)) {
    bad("are not coded as the transfer syntax says, or in a way that is not supported");
  }
  if (stream.columns != size.x || stream.rows != size.y || stream.samples != format.samples) {
    bad("are of another size than the header says");
  }
  const bool jpeg2000 = stream.kind == Codestream::Kind::kJpeg2000;
  if (stream.precision < (jpeg2000 ? 1 : 2) || stream.precision > 16 ||
      stream.precision > format.bits_allocated) {
    bad("have " + std::to_string(stream.precision) + " bits per sample, against " +
        std::to_string(format.bits_allocated) + " allocated");
  }
  if (stream.subsampled) bad("have fewer samples than pixels");
  if (stream.is_ycc && format.samples == 3) {
    bad("say that their colours are not RGB, but the header does");
  }
  if (stream.is_signed && format.representation == 0) {
    bad("are signed, but the header says unsigned");
  }
  if (!stream.is_signed && format.representation == 1 && stream.precision < format.bits_stored) {
    bad("have fewer bits than the header says, so that nothing tells the sign");
  }
  if (format.high_bit != format.bits_stored - 1) {
    bad("are to be shifted (HighBit), which compression does not allow");
  }
}

// By the decoder of 12 bits itself: GDCM tries that of 8 first, which complains on the terminal.
bool decode_12_bit_jpeg(std::string_view data, int samples, const Vec3i& size,
                        DecodedFrame& frame) {
  gdcm::JPEG12Codec decoder;
  const unsigned dimensions[] = {static_cast<unsigned>(size.x), static_cast<unsigned>(size.y), 1};
  decoder.SetDimensions(dimensions);
  decoder.SetNumberOfDimensions(2);
  decoder.SetPlanarConfiguration(0);
  decoder.SetPhotometricInterpretation(samples == 3 ? gdcm::PhotometricInterpretation::RGB
                                                    : gdcm::PhotometricInterpretation::MONOCHROME2);
  decoder.SetPixelFormat(gdcm::PixelFormat(static_cast<unsigned short>(samples), 16, 12, 11, 0));
  std::istringstream in{std::string(data)};
  std::ostringstream out;
  if (!decoder.DecodeByStreams(in, out) || out.view().size() != frame.bytes.size()) return false;
  std::memcpy(frame.bytes.data(), out.view().data(), frame.bytes.size());
  return true;
}

// GDCM throws its own exceptions and writes to the terminal.
bool decode_with_gdcm(std::string_view data, const gdcm::TransferSyntax& syntax,
                      const Codestream& stream, const Vec3i& size, DecodedFrame& frame) {
  gdcm::Trace::DebugOff();
  gdcm::Trace::WarningOff();
  gdcm::Trace::ErrorOff();
  const auto bits = [](int value) { return static_cast<unsigned short>(value); };
  const bool lossy_jpeg = stream.kind == Codestream::Kind::kJpeg && stream.process != 3;
  try {
    if (lossy_jpeg) return decode_12_bit_jpeg(data, stream.samples, size, frame);
    gdcm::Bitmap image;
    image.SetTransferSyntax(syntax);
    image.SetNumberOfDimensions(2);
    image.SetDimension(0, static_cast<unsigned>(size.x));
    image.SetDimension(1, static_cast<unsigned>(size.y));
    image.SetPixelFormat(gdcm::PixelFormat(bits(stream.samples), bits(frame.container_bits),
                                           bits(stream.precision), bits(stream.precision - 1),
                                           bits(stream.is_signed ? 1 : 0)));
    image.SetPhotometricInterpretation(stream.samples == 3
                                           ? gdcm::PhotometricInterpretation::RGB
                                           : gdcm::PhotometricInterpretation::MONOCHROME2);
    image.SetPlanarConfiguration(0);
    gdcm::SmartPointer<gdcm::SequenceOfFragments> fragments = new gdcm::SequenceOfFragments;
    gdcm::Fragment fragment;
    fragment.SetByteValue(data.data(), static_cast<uint32_t>(data.size()));
    fragments->AddFragment(fragment);
    gdcm::DataElement element(gdcm::Tag(0x7fe0, 0x0010), 0, gdcm::VR::OB);
    element.SetValue(*fragments);
    image.SetDataElement(element);
    return image.GetBufferLength() == frame.bytes.size() &&
           image.GetBuffer(reinterpret_cast<char*>(frame.bytes.data()));
  } catch (const std::bad_alloc&) {
    throw;
  } catch (const std::exception&) {
    return false;
  }
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

Codestream check_codestream(std::string_view data, const gdcm::TransferSyntax& syntax,
                            const DicomObject& object, const Vec3i& size) {
  const std::optional<Codestream> stream = read_codestream_header(data);
  if (!stream) bad(object.path, "a compressed image has no sound header; export it again");
  check_agreement(*stream, syntax, object, size);
  return *stream;
}

DecodedFrame decode_frame(std::string_view data, const gdcm::TransferSyntax& syntax,
                          const DicomObject& object) {
  if (syntax == gdcm::TransferSyntax::RLELossless) return decode_rle(data, object);
  const Codestream stream = check_codestream(data, syntax, object, object.planes.front().size);
  const size_t end = data.rfind(kEnd);
  if (end == std::string_view::npos) {
    bad(object.path, "a compressed image has no end: the file is truncated; copy it again");
  }
  data = data.substr(0, end + kEnd.size());

  DecodedFrame frame;
  frame.precision = stream.precision;
  frame.container_bits = stream.precision <= 8 ? 8 : 16;
  frame.extended = stream.is_signed;
  const Vec3i& size = object.planes.front().size;
  if (stream.kind == Codestream::Kind::kJpeg) {
    if (!is_whole_jpeg(data)) {
      bad(object.path, "a compressed image is damaged or truncated; copy or export the file again");
    }
    if (stream.process != 3 && stream.precision == 8) {
      frame.bytes = decode_rgb_jpeg(object.path, std::string(data)).voxels;
      return frame;
    }
  }
  const int64_t bytes = int64_t{size.x} * size.y * stream.samples * (frame.container_bits / 8);
  frame.bytes = allocate_voxels(bytes, object.path);
  if (!decode_with_gdcm(data, syntax, stream, size, frame)) {
    bad(object.path,
        "the pixel data cannot be decoded: damaged, truncated, or a compression that is not "
        "supported");
  }
  return frame;
}

}  // namespace larch::io
