// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Files that other software writes a little differently, and files that are made to cost much.
#include <algorithm>

#include <zlib.h>

#include "larch/io/dicom/dicom_dataset.h"
#include "larch/io/dicom/dicom_file.h"
#include "tests/io/dicom/dicom_maker.h"
#include "tests/io/io_test_util.h"

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

Volume<float> read_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", bytes);
  return read_volume<float>(folder / "x.dcm");
}

std::string error_of_bytes(const std::string& bytes) {
  const TemporaryFolder folder;
  write_file(folder / "x.dcm", bytes);
  std::string message = message_of<InputError>([&] { read_volume<float>(folder / "x.dcm"); });
  CHECK_THAT(message, Contains("x.dcm"));
  return message;
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

/// Explicit elements without sequences in the implicit syntax.
std::string implicit_of(const std::string& body) {
  std::string out;
  for (size_t at = 0; at < body.size();) {
    const std::string vr = body.substr(at + 4, 2);
    const bool is_long = vr == "OB" || vr == "OW";
    uint32_t length = 0;
    std::memcpy(&length, &body[at + (is_long ? 8 : 6)], is_long ? 4 : 2);
    const size_t value = at + (is_long ? 12 : 8);
    out += body.substr(at, 4) + dicom_number(length, 4) + body.substr(value, length);
    at = value + length;
  }
  return out;
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
  constexpr size_t kMuch = size_t{96} << 20;
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
             Contains("the deflated data end early"));
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
  const io::DicomObject object = io::read_dicom_object(folder / "x.dcm");
  CHECK(object.planes.size() == 1);  // for all frames, which are alike
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "x.dcm"); }),
             Contains("has no position or orientation in space"));
}

TEST_CASE("zeros, spaces and line ends after the pixel data are padding") {
  const std::string sound = made_dicom({});
  for (const std::string& padding :
       {std::string(1, '\0'), std::string(2, '\0'), std::string(512, '\0'), std::string(4, ' '),
        std::string("\n"), std::string("\r\n")}) {
    INFO(padding.size());
    check_sound(sound + padding);
  }
  CHECK_THAT(error_of_bytes(sound + "\1"), Contains("the DICOM file is damaged or truncated"));
  CHECK_THAT(error_of_bytes(sound + std::string(8, '\0') + "\1"),
             Contains("the DICOM file is damaged or truncated"));
  CHECK_THAT(error_of_bytes(sound.substr(0, sound.find(dicom_number(0x00107fe0, 4))) +
                            std::string(2, '\0')),
             Contains("the DICOM file is damaged or truncated"));
}

TEST_CASE("the elements tell whether they are implicit or explicit, whatever the syntax says") {
  const std::string body = body_of({});
  check_sound(with_syntax("1.2.840.10008.1.2.1", body));
  check_sound(with_syntax("1.2.840.10008.1.2", implicit_of(body)));
  check_sound(with_syntax("1.2.840.10008.1.2", body));
  check_sound(with_syntax("1.2.840.10008.1.2.1", implicit_of(body)));
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

TEST_CASE("the frames of a dose lie where GridFrameOffsetVector says") {
  const auto dose = [](const std::string& offsets, const Vec3d& row, const Vec3d& column) {
    MadeSlice slice;
    slice.modality = "RTDOSE";
    slice.position = {1, 2, 30};
    slice.row = row;
    slice.column = column;
    slice.frames = 3;
    slice.with_rescale = false;
    slice.groups =
        dicom_element(0x3004, 0x0c, "DS", offsets) + dicom_element(0x3004, 0x0e, "DS", "0.5");
    return made_dicom(slice);
  };
  const Vec3d x{1, 0, 0}, y{0, 1, 0}, z{0, 0, 1};
  const auto relative = read_bytes(dose("0\\2.5\\5", x, y));
  CHECK(relative.size() == Vec3i{4, 3, 3});
  CHECK(relative.grid().spacing_mm.z == Approx(2.5));
  CHECK(norm(relative.grid().origin_mm - Vec3d{1, 2, 30}) < 1e-6);
  CHECK(relative[12] == 6);  // the first value of the second frame
  const auto absolute = read_bytes(dose("30\\32.5\\35", x, y));
  CHECK(same_values(relative, absolute));
  CHECK(norm(absolute.grid().origin_mm - Vec3d{1, 2, 30}) < 1e-6);
  CHECK(absolute.grid().spacing_mm.z == Approx(2.5));
  const auto down = read_bytes(dose("0\\-2.5\\-5", x, y));
  CHECK(norm(down.grid().origin_mm - Vec3d{1, 2, 25}) < 1e-6);
  CHECK(down[0] == 12);  // the last frame is the lowest
  const auto sagittal = read_bytes(dose("0\\2.5\\5", y, z));
  CHECK(norm(world_from_index(sagittal.grid(), {0, 0, 2}) - Vec3d{6, 2, 30}) < 1e-6);
  CHECK_THAT(error_of_bytes(dose("0\\2.5", x, y)), Contains("not 3 finite numbers"));
  CHECK_THAT(error_of_bytes(dose("0\\2.5\\6", x, y)), Contains("not evenly spaced"));
  CHECK_THAT(error_of_bytes(dose("7\\9.5\\12", x, y)),
             Contains("GridFrameOffsetVector starts with"));
  CHECK_THAT(error_of_bytes(dose("30\\32.5\\35", y, z)),
             Contains("GridFrameOffsetVector starts with"));
}
