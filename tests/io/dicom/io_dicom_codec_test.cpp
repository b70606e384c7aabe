// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Codestreams of JPEG 2000, JPEG-LS and lossless JPEG: decoded to what was coded, or refused.
#include <bit>
#include <bitset>
#include <cstdlib>
#include <set>

#include "larch/io/dicom/dicom_codec.h"
#include "tests/io/dicom/dicom_check_util.h"
#include "tests/io/jpeg_maker.h"

using namespace larch;
using namespace larch::test;
using io::TransferSyntax;

namespace {

std::string seed(const std::string& name) {
  return read_file(std::string(std::getenv("LARCH_SOURCE_DIR")) + "/tests/fuzz/seeds/" + name);
}

// The samples of a codestream in a file whose header agrees with its own.
std::vector<int> decoded(const std::string& stream, TransferSyntax syntax) {
  const auto header = io::read_codestream_header(stream);
  if (!header) throw InputError("no header");
  io::DicomObject object;
  object.format.samples = header->samples;
  object.format.bits_stored = header->precision;
  object.format.high_bit = header->precision - 1;
  object.format.representation = header->is_signed ? 1 : 0;
  object.planes.resize(1);
  object.planes[0].size = {static_cast<int>(header->columns), static_cast<int>(header->rows), 1};
  const io::DecodedFrame frame = io::decode_frame(stream, syntax, object);
  std::vector<int> samples;
  for (size_t i = 0; i < frame.bytes.size(); i += static_cast<size_t>(frame.container_bits / 8)) {
    uint16_t value = static_cast<uint8_t>(frame.bytes[i]);
    if (frame.container_bits == 16) std::memcpy(&value, &frame.bytes[i], 2);
    samples.push_back(header->is_signed ? static_cast<int16_t>(value) : value);
  }
  return samples;
}

bool is_refused(const std::string& stream, TransferSyntax syntax) {
  try {
    decoded(stream, syntax);
  } catch (const InputError&) {
    return true;
  }
  return false;
}

TransferSyntax syntax_of(const std::string& name) {
  return name.ends_with("jls") ? TransferSyntax::kJpegLs : TransferSyntax::kJpeg2000;
}

struct Coded {
  std::string name;
  int columns, rows, bits, channels, tolerance;
};

// What opj_compress and CharLS made of one formula.
const std::vector<Coded> kCoded{
    {"j2k/grey8.j2k", 11, 9, 8, 1, 0},           {"j2k/grey12-signed.j2k", 8, 8, 12, 1, 0},
    {"j2k/grey16.j2k", 12, 5, 16, 1, 0},         {"j2k/rgb.j2k", 8, 8, 8, 3, 0},
    {"j2k/rgb-no-transform.j2k", 8, 8, 8, 3, 0}, {"j2k/lossy.j2k", 16, 16, 8, 1, 60},
    {"j2k/tiles.j2k", 13, 17, 8, 1, 0},          {"j2k/precincts.j2k", 16, 16, 8, 1, 0},
    {"j2k/parts.j2k", 16, 16, 8, 3, 0},          {"j2k/modes.j2k", 9, 9, 8, 1, 0},
    {"j2k/progressions.j2k", 16, 16, 8, 3, 0},   {"jls/grey8.jls", 11, 9, 8, 1, 0},
    {"jls/grey12.jls", 8, 8, 12, 1, 0},          {"jls/grey16.jls", 12, 5, 16, 1, 0},
    {"jls/rgb-planes.jls", 7, 5, 8, 3, 0},       {"jls/rgb-lines.jls", 7, 5, 8, 3, 0},
    {"jls/rgb-samples.jls", 7, 5, 8, 3, 0},      {"jls/transform.jls", 7, 5, 8, 3, 0},
    {"jls/presets.jls", 11, 9, 8, 1, 0},         {"jls/near.jls", 16, 16, 8, 1, 3},
    {"jls/rgb16-near.jls", 4, 4, 16, 3, 5}};

std::string with(std::string stream, size_t at, const std::string& bytes) {
  return stream.replace(at, bytes.size(), bytes);
}

}  // namespace

TEST_CASE("JPEG 2000 and JPEG-LS give the samples that were coded") {
  for (const Coded& row : kCoded) {
    INFO(row.name);
    const std::vector<int> found = decoded(seed(row.name), syntax_of(row.name));
    REQUIRE(static_cast<int>(found.size()) == row.columns * row.rows * row.channels);
    const int lowest = row.name.find("signed") != std::string::npos ? -(1 << (row.bits - 1)) : 0;
    int most = 0, i = 0;
    for (const int value : found) {
      const int channel = i % row.channels, x = i / row.channels % row.columns,
                y = i / row.channels / row.columns;
      const int coded = (x * x + 3 * y + 40 * channel) % 200 * (1 << (row.bits - 8)) + lowest;
      most = std::max(most, std::abs(value - coded));
      ++i;
    }
    CHECK(most <= row.tolerance);
    CHECK((most > 0) == (row.tolerance > 0));
  }
}

// CharLS takes the bits of a last byte that is missing for zeros.
TEST_CASE("JPEG 2000 and JPEG-LS that are cut anywhere are refused") {
  for (const Coded& row : kCoded) {
    const std::string whole = seed(row.name);
    const size_t end = whole.size() - (row.name.ends_with("jls") ? 3 : 2);
    for (size_t size = 0; size < end; ++size) {
      INFO(row.name << ", " << size << " of " << whole.size() << " bytes");
      CHECK(is_refused(whole.substr(0, size), syntax_of(row.name)));
      CHECK(is_refused(whole.substr(0, size) + "\xff\xd9", syntax_of(row.name)));
    }
  }
}

TEST_CASE("a JPEG 2000 codestream of tiles and packets that are not there is refused") {
  const auto refused = [](const std::string& stream) {
    CHECK(is_refused(stream, TransferSyntax::kJpeg2000));
  };
  const std::string grey = seed("j2k/grey8.j2k"), tiles = seed("j2k/tiles.j2k");
  const size_t coding = grey.find("\xff\x52") + 4, part = tiles.find("\xff\x90");
  refused(with(grey, coding + 2, "\xff\xff"));                  // layers
  refused(with(grey, coding + 5, "\x21"));                      // resolutions
  refused(with(grey, coding + 6, "\x0a"));                      // blocks
  refused(with(grey, 24, std::string("\0\0\0\1\0\0\0\1", 8)));  // tiles of one sample
  const size_t second = tiles.find("\xff\x90", part + 2);
  refused(with(tiles, second + 4, std::string("\0\0", 2)));  // the first tile twice
  refused(std::string(tiles).erase(part, second - part));
  const std::string open = with(tiles, tiles.rfind("\xff\x90") + 6, std::string(4, '\0'));
  CHECK(decoded(open, TransferSyntax::kJpeg2000) == decoded(tiles, TransferSyntax::kJpeg2000));
}

TEST_CASE("JPEG 2000 of one bit gives samples of which one bit is allocated") {
  const std::string bits = with(seed("j2k/tiles.j2k"), 42, std::string(1, '\0'));
  const std::vector<int> coded = decoded(bits, TransferSyntax::kJpeg2000);
  MadeSlice slice = stored_as(1, 1, 0, 0);
  slice.columns = 13;
  slice.rows = 17;
  slice.syntax = "1.2.840.10008.1.2.4.90";
  slice.fragments = {bits};
  const Volume<float> image = read_one(slice);
  CHECK(std::vector<int>(image.begin(), image.end()) == coded);
  CHECK(std::set<int>(coded.begin(), coded.end()) == std::set<int>{0, 1});
}

TEST_CASE("JPEG-LS of scans of two kinds is refused") {
  const std::string planes = seed("jls/rgb-planes.jls");
  const size_t second = planes.find("\xff\xda", planes.find("\xff\xda") + 2);
  const std::string all("\xff\xda\0\x0c\3\1\0\2\0\3\0\0\2\0", 14);
  std::string mixed = planes;
  CHECK(is_refused(mixed.replace(second, 10, all), TransferSyntax::kJpegLs));
  CHECK(is_refused(with(planes, second + 8, "\2"), TransferSyntax::kJpegLs));
}

namespace {

// Four samples of 12 bits, two by two, by their differences from what is predicted; those of
// further channels are larger by 1 each. The code of a length is that number in five bits.
std::string lossless_jpeg(char predictor, char shift, const std::vector<int>& differences,
                          bool restart = false, char channels = 1) {
  std::string data, bits, symbols, lengths(16, '\0'), frame{channels}, scan{channels};
  const auto flush = [&] {
    bits.resize((bits.size() + 7) / 8 * 8, '1');
    for (size_t i = 0; i < bits.size(); i += 8) {
      data += static_cast<char>(std::stoi(bits.substr(i, 8), nullptr, 2));
      if (data.back() == '\xff') data += '\0';
    }
    bits.clear();
  };
  for (size_t i = 0; i < differences.size(); ++i) {
    if (restart && i == 2) {
      flush();
      data += "\xff\xd0";
    }
    for (int channel = 0; channel < channels; ++channel) {
      const int value = differences[i] + (i == 0 ? channel : 0);
      const auto length = std::bit_width(static_cast<unsigned>(std::abs(value)));
      const auto code = static_cast<unsigned>(value < 0 ? value + (1 << length) - 1 : value);
      bits += std::bitset<5>(static_cast<unsigned>(length)).to_string() +
              std::bitset<16>(code).to_string().substr(16 - static_cast<size_t>(length));
    }
  }
  flush();
  for (char k = 0; k <= 16; ++k) symbols += k;
  lengths[4] = 17;
  for (char id = 1; id <= channels; ++id) {
    frame += {id, '\x11', 0};
    scan += {id, 0};
  }
  return "\xff\xd8" + segment(0xc3, std::string("\x0c\0\2\0\2", 5) + frame) +
         segment(0xc4, std::string(1, '\0') + lengths + symbols) +
         (restart ? segment(0xdd, std::string("\0\2", 2)) : "") +
         segment(0xda, scan + predictor + '\0' + shift) + data + "\xff\xd9";
}

}  // namespace

TEST_CASE("lossless JPEG of every predictor, with restarts and a point transform") {
  const auto read = [](const std::string& jpeg) {
    return decoded(jpeg, TransferSyntax::kJpegLossless);
  };
  const std::vector<int> differences{100 - 2048, 10, 30, 1};
  char predictor = 1;
  for (const int predicted : {130, 110, 100, 140, 135, 125, 120}) {
    CHECK(read(lossless_jpeg(predictor, 0, differences)) ==
          std::vector<int>{100, 110, 130, predicted + 1});
    ++predictor;
  }
  CHECK(read(lossless_jpeg(4, 2, {100 - 512, 10, 30, 1})) == std::vector<int>{400, 440, 520, 564});
  CHECK(read(lossless_jpeg(4, 0, {100 - 2048, 10, 130 - 2048, 1}, true)) ==
        std::vector<int>{100, 110, 130, 131});
  CHECK(read(lossless_jpeg(2, 0, differences, false, 3)) ==
        std::vector<int>{100, 101, 102, 110, 111, 112, 130, 131, 132, 111, 112, 113});
  for (const char wrong : {0, 8}) {
    CHECK(is_refused(lossless_jpeg(wrong, 0, differences), TransferSyntax::kJpegLossless));
  }
  CHECK(is_refused(lossless_jpeg(1, 12, differences), TransferSyntax::kJpegLossless));
}
