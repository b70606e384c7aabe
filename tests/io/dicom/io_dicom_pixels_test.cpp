// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// What the pixel data of DICOM files can be: each is read right, or refused.
#include "tests/io/dicom/dicom_check_util.h"
#include "tests/io/jpeg_maker.h"

using namespace larch;
using namespace larch::test;
using Catch::Contains;

namespace {

const std::string kBaseline = "1.2.840.10008.1.2.4.50", kExtended = "1.2.840.10008.1.2.4.51";
const std::string kLossless = "1.2.840.10008.1.2.4.70", kRle = "1.2.840.10008.1.2.5";

MadeSlice compressed(const std::string& syntax, uint16_t bits,
                     const std::vector<std::string>& fragments, uint16_t edge = 32) {
  MadeSlice slice = stored_as(bits > 8 ? 16 : 8, bits, bits - 1, 0);
  slice.syntax = syntax;
  slice.rows = slice.columns = edge;
  slice.fragments = fragments;
  return slice;
}

std::string without_bytes(std::string jpeg, size_t count) {
  return jpeg.erase(jpeg.size() - 2 - count, count);
}

// The message of a file whose header is sound, so that reading alone refuses it.
std::string reading_error_of(const MadeSlice& slice) {
  return message_of<InputError>([&] { read_one(slice); });
}

}  // namespace

TEST_CASE("no number of a header is believed that the pixel data cannot hold") {
  MadeSlice large;
  large.raw_pixels = std::string(24, '\1');
  large.rows = large.columns = 65535;
  CHECK_THAT(error_of(large), Contains("truncated: 24 of 8589672450 bytes"));
  MadeSlice many;
  many.raw_pixels = std::string(24, '\1');
  many.frames = 1000000;
  CHECK_THAT(error_of(many), Contains("truncated: 24 of 24000000 bytes"));
  MadeSlice bits = stored_as(1, 1, 0, 0);
  bits.rows = bits.columns = 100;
  bits.raw_pixels = std::string(1248, '\1');
  CHECK_THAT(error_of(bits), Contains("truncated: 1248 of 1250 bytes"));

  // Fragments of run-length coding and of JPEG: too few for the frames, or too short for the size.
  struct Row {
    std::string syntax, message;
    uint16_t size;
    int frames;
  };
  for (const Row& row : {Row{"1.2.840.10008.1.2.5", "1 images for 1000000 frames", 4, 1000000},
                         Row{"1.2.840.10008.1.2.5", "100 bytes cannot become", 60000, 0},
                         Row{"1.2.840.10008.1.2.4.70", "1 images for 9 frames", 4, 9},
                         Row{"1.2.840.10008.1.2.4.90", "100 bytes cannot become", 60000, 0}}) {
    INFO(row.syntax << " " << row.message);
    MadeSlice s = compressed(row.syntax, 16, {std::string(100, '\1')}, row.size);
    s.frames = row.frames;
    CHECK_THAT(error_of(s), Contains(row.message));
  }
}

TEST_CASE("bits beside the stored ones are overlays, or refused") {
  const auto overlay = [](int group, uint32_t position) {
    const auto g = static_cast<uint16_t>(group);
    return dicom_element(g, 0x100, "US", dicom_number(16, 2)) +
           dicom_element(g, 0x102, "US", dicom_number(position, 2));
  };
  MadeSlice s = stored_as(16, 12, 11, 0);
  s.values = {0x1001, 5};
  CHECK(read_only_allowed({s}, Allow::kUnusedBits, "unused-bits", "1 samples have bits set")[0] ==
        1);
  CHECK_THAT(message_of<InputError>([&] { read_one(s); }), Contains("also of padding beyond"));
  s.groups = overlay(0x6000, 12);
  CHECK(read_one(s)[0] == 1);
  s.groups = overlay(0x6002, 13);
  read_only_allowed({s}, Allow::kUnusedBits, "unused-bits", "beside the 12");
  s.groups = overlay(0x6000, 12) + dicom_element(0x6000, 0x3000, "OW", std::string(2, '\1'));
  read_only_allowed({s}, Allow::kUnusedBits, "unused-bits", "no overlay lies there");
  s.groups.clear();
  s.is_signed = 1;
  s.values = {2200, 1};
  s.bits_stored = 11;
  s.high_bit = 10;
  read_only_allowed({s}, Allow::kUnusedBits, "unused-bits", "beside the 11");
  s = stored_as(16, 12, 15, 0);
  s.values = {0x7ff1, 0};
  s.values.resize(12, 0);
  read_only_allowed({s}, Allow::kUnusedBits, "unused-bits", "1 samples");
}

TEST_CASE("bits, samples and colours that cannot be meant") {
  const auto refused = [](uint16_t allocated, uint16_t stored, int high, uint16_t sign,
                          const std::string& why) {
    INFO(allocated << " " << stored << " " << high << " " << sign);
    CHECK_THAT(error_of(stored_as(allocated, stored, high, sign)), Contains(why));
  };
  for (const int allocated : {0, 2, 7, 12, 24, 48, 64, 255, 65535}) {
    refused(static_cast<uint16_t>(allocated), 8, 7, 0, "BitsAllocated is");
  }
  refused(16, 0, 0, 0, "BitsStored is 0");
  refused(16, 17, 16, 0, "BitsStored is 17");
  refused(8, 12, 11, 0, "BitsStored is 12");
  refused(16, 12, 16, 0, "HighBit is 16");
  refused(16, 12, 10, 0, "HighBit is 10");
  refused(16, 12, 11, 2, "PixelRepresentation is 2");
  refused(16, 16, 15, 0x8001, "PixelRepresentation is 32769");
  refused(1, 1, 0, 1, "one bit");
  for (const int samples : {0, 2, 4, 5}) {
    MadeSlice s = stored_as(8, 8, 7, 0);
    s.samples = static_cast<uint16_t>(samples);
    CHECK_THAT(error_of(s), Contains("with " + std::to_string(samples) + " samples"));
  }
  for (const std::string photometric : {"YBR_FULL", "ARGB", "RGB", "nonsense"}) {
    MadeSlice s = stored_as(8, 8, 7, 0);
    s.photometric = photometric;
    CHECK_THAT(error_of(s), Contains("not supported"));
  }
  MadeSlice colour = stored_as(8, 3, 7, 0);
  colour.samples = 3;
  colour.photometric = "RGB";
  CHECK_THAT(error_of(colour), Contains("BitsStored is 3 of 8") && Contains("grey"));
  // As found in the wild: three bits of eight, the highest on top.
  MadeSlice s = stored_as(8, 3, 7, 0);
  s.raw_pixels = std::string(12, '\xe0');
  CHECK(read_one(s)[0] == 7);
}

TEST_CASE("JPEG with missing or superfluous data is refused, whatever the process") {
  struct Row {
    std::string syntax;
    int process, precision;
    float value;
  };
  for (const Row& row :
       {Row{kBaseline, 0, 8, 128}, Row{kExtended, 0, 8, 128}, Row{kExtended, 1, 8, 128},
        Row{kExtended, 1, 12, 2048}, Row{kLossless, 3, 8, 128}, Row{kLossless, 3, 12, 2048}}) {
    INFO(row.syntax << ", process " << row.process << ", " << row.precision << " bits");
    const auto bits = static_cast<uint16_t>(row.precision);
    const std::string whole = blank_jpeg(row.process, row.precision);
    CHECK(read_one(compressed(row.syntax, bits, {whole}))[1023] == row.value);
    for (const size_t missing : {1, 2}) {
      CHECK_THAT(reading_error_of(compressed(row.syntax, bits, {without_bytes(whole, missing)})),
                 Contains("damaged or truncated"));
    }
    std::string longer = whole;
    longer.insert(longer.size() - 2, 2, '\0');
    CHECK_THAT(reading_error_of(compressed(row.syntax, bits, {longer})),
               Contains("damaged or truncated"));
  }
}

TEST_CASE("the restart markers of JPEG stand where they must") {
  const auto image = [](const std::string& data) {
    std::string jpeg = blank_jpeg(1, 12);
    jpeg.replace(jpeg.size() - 6, 4, data);
    return compressed(kExtended, 12, {jpeg.insert(2, segment(0xdd, std::string("\0\4", 2)))});
  };
  const std::string row(1, '\0');  // of four blocks
  CHECK(read_one(image(row + "\xff\xd0" + row + "\xff\xd1" + row + "\xff\xff\xd2" + row))[9] ==
        2048);
  for (const std::string& wrong :
       {row + row + row + row, row + "\xff\xd0" + row + "\xff\xd2" + row + "\xff\xd1" + row,
        row + "\xff\xd0" + row + "\xff\xd1" + row,
        row + "\xff\xd0" + "\xff\xd1" + row + "\xff\xd2" + row,
        row + row + "\xff\xd0" + row + "\xff\xd1" + row + "\xff\xd2" + row}) {
    CHECK_THAT(reading_error_of(image(wrong)), Contains("damaged or truncated"));
  }
}

TEST_CASE("JPEG of another process than the transfer syntax names is refused") {
  const auto refused = [](const std::string& syntax, uint16_t bits, const std::string& stream) {
    CHECK_THAT(error_of(compressed(syntax, bits, {stream})),
               Contains("not coded as the transfer syntax says"));
  };
  refused(kBaseline, 8, progressive_jpeg(32));
  refused(kExtended, 8, progressive_jpeg(32, 8));  // of 504 scans
  refused(kBaseline, 8, blank_jpeg(1, 8));
  refused(kBaseline, 12, blank_jpeg(1, 12));
  refused(kBaseline, 8, blank_jpeg(3, 8));
  refused(kLossless, 8, blank_jpeg(0, 8));
}

TEST_CASE("pixel data of a whole frame more than the header says are refused") {
  const std::string why = "hold more than the header says";
  MadeSlice s = stored_as(16, 16, 15, 0);
  s.raw_pixels = std::string(240, '\1');
  CHECK_THAT(error_of(s), Contains(why) && Contains("240 of 24 bytes"));
  s.raw_pixels.resize(48);
  CHECK_THAT(error_of(s), Contains(why));
  s.raw_pixels.resize(46);  // padding
  CHECK(read_one(s)[11] == 257);
  s = stored_as(8, 8, 7, 0);  // 16-bit numbers as if they had 8
  s.raw_pixels = std::string(24, '\1');
  CHECK_THAT(error_of(s), Contains(why));
  s.rows = s.columns = 1;
  s.raw_pixels.resize(2);  // an odd number of bytes, and the one that makes it even
  CHECK(read_one(s)[0] == 1);

  const std::string jpeg = blank_jpeg(0, 8);
  CHECK_THAT(error_of(compressed(kBaseline, 8, {jpeg, jpeg})),
             Contains(why) && Contains("2 images for 1 frames"));
  const std::string rle = dicom_number(1, 4) + dicom_number(64, 4) + std::string(56, '\0') +
                          std::string("\xf1\x07", 2);  // sixteen times 7
  CHECK(read_one(compressed(kRle, 8, {rle}, 4))[15] == 7);
  CHECK_THAT(error_of(compressed(kRle, 8, {rle, rle}, 4)), Contains(why));
}

TEST_CASE("a JPEG image may be cut into fragments anywhere, and have fill bytes") {
  const std::string jpeg = blank_jpeg(0, 8);
  std::vector<std::string> pieces;
  for (size_t at = 0; at < jpeg.size(); at += 16) pieces.push_back(jpeg.substr(at, 16));
  CHECK(read_one(compressed(kBaseline, 8, pieces))[0] == 128);
  for (const auto& [syntax, process, bits] :
       {std::tuple{kBaseline, 0, 8}, {kExtended, 1, 12}, {kLossless, 3, 12}}) {
    std::string filled = blank_jpeg(process, bits);
    filled.insert(2, 3, '\xff');
    filled.insert(filled.find("\xff\xda"), 2, '\xff');
    CHECK(read_one(compressed(syntax, static_cast<uint16_t>(bits), {filled}))[0] ==
          static_cast<float>(1 << (bits - 1)));
  }
}
