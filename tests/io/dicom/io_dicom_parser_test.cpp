// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Files that other software writes a little differently, and files that are made to cost much.
#include <algorithm>

#include <zlib.h>

#include "larch/io/dicom/dicom_parser.h"
#include "tests/io/dicom/dicom_check_util.h"

using namespace larch;
using namespace larch::test;
using Catch::Contains;

namespace {

const std::string kItemTag = dicom_number(0xe000fffe, 4);
const std::string kItemEnd = dicom_number(0xe00dfffe, 4) + dicom_number(0, 4);
const std::string kSequenceEnd = dicom_number(0xe0ddfffe, 4) + dicom_number(0, 4);

std::string replaced(std::string bytes, const std::string& from, const std::string& to) {
  const size_t at = bytes.find(from);
  REQUIRE(at != std::string::npos);
  return bytes.replace(at, from.size(), to);
}

void check_sound(const std::string& bytes) {
  CHECK(same_values(read_bytes(bytes), read_bytes(made_dicom({}))));
}

std::string with_groups(const std::string& groups) {
  MadeSlice slice;
  slice.groups = groups;
  return made_dicom(slice);
}

/// The slice with another transfer syntax, whose elements, without the file's meta information, are
/// `body`.
std::string with_syntax(const std::string& uid, const std::string& body) {
  const std::string meta = dicom_element(2, 0x10, "UI", uid);
  return std::string(128, '\0') + "DICM" + meta + body;
}

/// The elements of a slice, explicit and little-endian.
std::string body_of(const MadeSlice& slice) {
  const std::string bytes = made_dicom(slice);
  return bytes.substr(bytes.find(dicom_number(0x00160008, 4) + "UI"));
}

std::string deflated(const std::string& body) {
  z_stream stream{};
  REQUIRE(deflateInit2(&stream, 9, Z_DEFLATED, -MAX_WBITS, 8, Z_DEFAULT_STRATEGY) == Z_OK);
  std::string out(deflateBound(&stream, body.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(body.data()));
  stream.avail_in = static_cast<uInt>(body.size());
  stream.next_out = reinterpret_cast<Bytef*>(out.data());
  stream.avail_out = static_cast<uInt>(out.size());
  REQUIRE(deflate(&stream, Z_FINISH) == Z_STREAM_END);
  out.resize(stream.total_out);
  deflateEnd(&stream);
  return out;
}

std::string repeated(const std::string& text, size_t bytes) {
  std::string out;
  out.reserve(bytes + text.size());
  while (out.size() < bytes) out += text;
  return out;
}

}  // namespace

TEST_CASE("a small file cannot make millions of elements, items or fragments") {
  constexpr size_t kMuch = size_t{48} << 20;
  const std::string deflate = "1.2.840.10008.1.2.1.99";
  const std::string pixels = dicom_number(0x00107fe0, 4) + std::string("OB\0\0\xff\xff\xff\xff", 8);
  const std::string empty_item = kItemTag + dicom_number(0, 4);
  const std::string sequence =
      dicom_number(0x91130020, 4) + std::string("SQ\0\0\xff\xff\xff\xff", 8);
  const std::string element = dicom_element(9, 0x10, "LO", "");
  const std::string many_items = repeated(empty_item, kMuch);
  for (const std::string& body : {pixels + many_items + kSequenceEnd,
                                  sequence + many_items + kSequenceEnd, repeated(element, kMuch)}) {
    const std::string bytes = with_syntax(deflate, deflated(body));
    CHECK(bytes.size() < 400000);
    CHECK_THAT(error_of_bytes(bytes), Contains("far too many elements"));
  }
}

TEST_CASE("a deflated file that ends early is an error, and one that is whole is read") {
  const std::string deflate = "1.2.840.10008.1.2.1.99";
  const std::string packed = deflated(body_of({}));
  check_sound(with_syntax(deflate, packed));
  CHECK_THAT(error_of_bytes(with_syntax(deflate, packed.substr(0, packed.size() - 5))),
             Contains("damaged or truncated"));
}

TEST_CASE("frames without a position are refused before planes are made of them") {
  MadeSlice slice;
  slice.rows = slice.columns = 1;
  slice.bits_allocated = slice.bits_stored = 1;
  slice.is_signed = 0;
  slice.frames = 1000000;
  slice.raw_pixels = std::string(125000, '\0');
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", made_dicom(slice));
  const io::DicomObject object = io::describe_dicom(io::read_dicom_file(folder / "x.dcm"));
  CHECK(object.planes.size() == 1);  // for all frames, which are alike
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "x.dcm"); }),
             Contains("has no position or orientation in space"));
}

TEST_CASE("what follows the pixel data is padding or refused, and takes no place of pixel data") {
  const std::string sound = made_dicom({});
  CHECK_THAT(error_of_bytes(sound + "\1"), Contains("the DICOM file is damaged or truncated"));
  CHECK_THAT(error_of_bytes(sound + std::string(8, '\0') + "\1"),
             Contains("the DICOM file is damaged or truncated"));
  CHECK_THAT(error_of_bytes(sound.substr(0, sound.find(dicom_number(0x00107fe0, 4))) +
                            std::string(2, '\0')),
             Contains("the DICOM file is damaged or truncated"));
}

TEST_CASE("a number that is present and empty is missing") {
  const std::string sound = made_dicom({});
  const auto us = [](uint16_t element, uint16_t value) {
    return dicom_element(0x28, element, "US", dicom_number(value, 2));
  };
  const auto empty = [](uint16_t element) { return dicom_element(0x28, element, "US", ""); };
  check_sound(replaced(sound, us(0x101, 16), empty(0x101)));
  check_sound(replaced(sound, us(0x102, 15), empty(0x102)));
  check_sound(replaced(sound, us(0x10, 3), empty(6) + us(0x10, 3)));
  check_sound(with_groups(dicom_element(0x6000, 0x102, "US", "")));
  CHECK_THAT(error_of_bytes(replaced(sound, us(0x100, 16), empty(0x100))),
             Contains("BitsAllocated is missing"));
  CHECK_THAT(error_of_bytes(replaced(sound, us(0x10, 3), empty(0x10))),
             Contains("Rows or Columns is missing"));
  CHECK_THAT(error_of_bytes(replaced(sound, us(0x10, 3), dicom_element(0x28, 0x10, "LO", "3 "))),
             Contains("Rows is not a 16-bit number"));
}

TEST_CASE("a report with an empty size is passed over in a folder") {
  const TemporaryFolder folder;
  write_file(folder / "a.dcm", made_dicom({}));
  MadeSlice report;
  report.sop_class = "1.2.840.10008.5.1.4.1.1.88.11";
  report.rows = report.columns = 7;
  const std::string body = body_of(report);
  const std::string size = dicom_element(0x28, 0x10, "US", dicom_number(7, 2));
  const size_t pixels = body.find(dicom_number(0x00107fe0, 4));
  write_file(folder / "b.dcm",
             with_syntax("1.2.840.10008.1.2.1", replaced(body.substr(0, pixels), size,
                                                         dicom_element(0x28, 0x10, "US", ""))));
  CHECK(same_values(read_volume<float>(folder.string()), read_bytes(made_dicom({}))));
}

TEST_CASE("the number of images in a mosaic may be a text, or empty") {
  const std::string creator = dicom_element(0x19, 0x10, "LO", "SIEMENS MR HEADER");
  const auto with_count = [&](const std::string& vr, const std::string& value) {
    MadeSlice slice;
    slice.with_rescale = false;
    slice.groups = creator + dicom_element(0x19, 0x100a, vr, value);
    return made_dicom(slice);
  };
  for (const auto& [vr, value] :
       {std::pair<std::string, std::string>{"IS", "1"}, {"US", ""}, {"US", dicom_number(1, 2)}}) {
    INFO(vr << " " << value);
    CHECK_NOTHROW(read_bytes(with_count(vr, value)));
  }
  for (const auto& [vr, value] :
       {std::pair<std::string, std::string>{"IS", "36"}, {"US", dicom_number(36, 2)}}) {
    INFO(vr << " " << value);
    CHECK_THAT(error_of_bytes(with_count(vr, value)), Contains("it is a Siemens mosaic"));
  }
}

TEST_CASE("only an element that is read has to have one value") {
  const auto text = [](const std::string& value) {
    return dicom_element(0x29, 0x1020, "LO", value);
  };
  check_sound(with_groups(text("one") + text("two")));
  const std::string item = dicom_element(0x28, 0x30, "DS", "2.0\\0.5");
  const std::string other = dicom_element(0x28, 0x30, "DS", "2.0\\0.6");
  const std::string measures = dicom_sequence(0x28, 0x9110, {item});
  const std::string groups = dicom_sequence(0x5200, 0x9229, {measures});
  check_sound(with_groups(groups + groups));
  const std::string changed =
      dicom_sequence(0x5200, 0x9229, {dicom_sequence(0x28, 0x9110, {other})});
  CHECK_THAT(error_of_bytes(with_groups(groups + changed)),
             Contains("(5200,9229) stands twice with different values"));
  CHECK_THAT(error_of_bytes(with_groups(dicom_element(0x28, 0x10, "US", dicom_number(4, 2)))),
             Contains("Rows (0028,0010) stands twice with different values"));
}

TEST_CASE("marks of an end that a length makes needless are passed over") {
  const std::string empty = dicom_element(8, 0x104, "LO", "x");
  const auto length = [](const std::string& text) {
    return dicom_number(static_cast<uint32_t>(text.size()), 4);
  };
  const std::string item = kItemTag + length(empty) + empty;
  const std::string within = kItemTag + length(empty + kItemEnd) + empty + kItemEnd;
  check_sound(with_groups(dicom_element(0x40, 0x555, "SQ", item + kSequenceEnd)));
  check_sound(with_groups(dicom_element(0x40, 0x555, "SQ", item + kItemEnd)));
  check_sound(with_groups(dicom_element(0x40, 0x555, "SQ", within)));
  const std::string undefined =
      dicom_number(0x05550040, 4) + std::string("SQ\0\0\xff\xff\xff\xff", 8);
  check_sound(with_groups(undefined + item + kItemEnd + kSequenceEnd));
  CHECK_THAT(error_of_bytes(with_groups(kSequenceEnd)), Contains("a mark stands outside"));
}

TEST_CASE("a private element of an unknown type is passed over, one of the standard is not") {
  check_sound(with_groups(dicom_element(0x29, 0x1020, "OX", "abcd")));
  CHECK_THAT(error_of_bytes(with_groups(dicom_element(0x40, 0x1020, "OX", "abcd"))),
             Contains("an element has no known type"));
}

TEST_CASE("the frames of a dose need an offset each, at even distances") {
  MadeSlice slice;
  slice.modality = "RTDOSE";
  slice.frames = 3;
  slice.groups = dicom_element(0x3004, 0x0c, "DS", "0\\2.5");
  CHECK_THAT(error_of(slice), Contains("not 3 finite numbers"));
  slice.groups = dicom_element(0x3004, 0x0c, "DS", "0\\2.5\\6");
  CHECK_THAT(error_of(slice), Contains("not evenly spaced"));
  slice.position.z = 30;  // offsets are places along z, also where the normal points down
  slice.column = {0, -1, 0};
  slice.groups = dicom_element(0x3004, 0x0c, "DS", "30\\27.5\\25");
  const Grid grid = read_one(slice).grid();
  CHECK(norm(world_from_index(grid, {0, 0, 2}) - Vec3d{0, 0, 25}) < 1e-6);
}
