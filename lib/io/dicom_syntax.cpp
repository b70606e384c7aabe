// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom_syntax.h"

#include <algorithm>
#include <iterator>
#include <string_view>

#include <zlib.h>

#include "larch/core/error.h"
#include "larch/io/byte_order.h"
#include "larch/io/dicom_codec.h"
#include "larch/io/file.h"

namespace larch::io {
namespace {

constexpr uint32_t kUndefined = 0xffffffffU;
constexpr uint32_t kItem = 0xfffee000U, kItemEnd = 0xfffee00dU, kSequenceEnd = 0xfffee0ddU;
constexpr uint32_t kPixelData = 0x7fe00010U, kRecognitionCode = 0x00080010U;
constexpr int kDeepest = 32;
constexpr size_t kMostInflated = size_t{1} << 30;

struct Element {
  uint32_t tag = 0;
  std::string_view vr;
  uint32_t length = 0;
  bool is_sequence = false;
};

// The sequences that are read, whose type the implicit syntax does not tell (PS3.6).
bool is_read_as_sequence(uint32_t tag) {
  constexpr uint32_t kTags[] = {0x00209113U, 0x00209116U, 0x00283000U, 0x00289110U,
                                0x00289145U, 0x52009229U, 0x52009230U};
  return std::find(std::begin(kTags), std::end(kTags), tag) != std::end(kTags);
}

class Walker {
 public:
  Walker(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  size_t at = 0;
  bool implicit = false, big = false;

  /// Elements up to `end`, or up to an item's end mark if `marked`.
  void walk_elements(size_t end, bool marked, int depth) {
    if (depth > kDeepest) fail("sequences are nested too deep");
    while (at < end) {
      const Element element = read_element(end);
      if (marked && element.tag == kItemEnd) return;
      walk_value(element, end, depth);
    }
    if (marked) fail("an item does not end");
  }

  /// File meta elements, always explicit and little-endian; returns the transfer syntax.
  std::string walk_meta() {
    std::string syntax;
    while (at + 8 <= bytes_.size() &&
           FieldReader{bytes_.data(), false}.get<uint16_t>(static_cast<int64_t>(at)) == 2) {
      const Element element = read_element(bytes_.size());
      if (element.length > bytes_.size() - at) fail("the file meta information ends early");
      if (element.tag == 0x00020010U) syntax = bytes_.substr(at, element.length);
      at += element.length;
    }
    while (!syntax.empty() && (syntax.back() == '\0' || syntax.back() == ' ')) syntax.pop_back();
    return syntax;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("'" + path_ + "': the DICOM file is damaged or truncated: " + what +
                     " (at byte " + std::to_string(at) + "); copy or export it again");
  }

 private:
  template <class T>
  T number() {
    if (bytes_.size() - at < sizeof(T)) fail("it ends in the middle of an element");
    const T value = FieldReader{bytes_.data(), big}.get<T>(static_cast<int64_t>(at));
    at += sizeof(T);
    return value;
  }

  Element read_element(size_t end) {
    Element element;
    element.tag = static_cast<uint32_t>(number<uint16_t>()) << 16;
    element.tag |= number<uint16_t>();
    if (element.tag >> 16 == 0xfffeU || implicit) {
      element.length = number<uint32_t>();
      element.is_sequence = element.length == kUndefined || is_read_as_sequence(element.tag);
      element.is_sequence &= implicit;
      return element;
    }
    if (end - at < 4) fail("it ends in the middle of an element");
    element.vr = bytes_.substr(at, 2);
    at += 2;
    constexpr std::string_view kAll =
        "AE AS AT CS DA DS DT FD FL IS LO LT OB OD OF OL OV OW PN SH SL SQ SS ST SV TM UC UI UL UN "
        "UR US UT UV ";
    constexpr std::string_view kLong = "OB OD OF OL OV OW SQ SV UC UN UR UT UV ";
    const std::string known = std::string(element.vr) + " ";
    if (kAll.find(known) == std::string_view::npos) fail("an element has no known type");
    if (kLong.find(known) == std::string_view::npos) {
      element.length = number<uint16_t>();
    } else {
      number<uint16_t>();
      element.length = number<uint32_t>();
    }
    element.is_sequence = element.vr == "SQ";
    return element;
  }

  void walk_value(const Element& element, size_t end, int depth) {
    if (element.tag >> 16 == 0xfffeU) fail("a mark stands outside a sequence");
    if (element.tag == 0) fail("an element has no tag");
    if (depth == 0) check_pixel_module(element);
    if (element.tag == kRecognitionCode && bytes_.substr(at, 3) != "ACR") {
      fail("the retired recognition code (0008,0010) is not that of ACR-NEMA");
    }
    const size_t left = end - at;
    if (element.length == kUndefined && element.tag == kPixelData && depth == 0) {
      return walk_fragments();
    }
    if (element.length == kUndefined) {
      if (!element.is_sequence && element.vr != "UN") fail("an element has no length");
      const bool before = implicit;
      if (element.vr == "UN") implicit = true;  // PS3.5, 6.2.2
      walk_items(end, true, depth);
      implicit = before;
      return;
    }
    if (element.length > left) {
      if (element.tag == kPixelData) {
        throw InputError("'" + path_ + "': the pixel data are truncated: " + std::to_string(left) +
                         " of " + std::to_string(element.length) +
                         " bytes are there; copy or export the file again");
      }
      fail("an element is longer than what is left of the file");
    }
    if (element.is_sequence) {
      walk_items(at + element.length, false, depth);
    } else {
      at += element.length;
    }
  }

  // GDCM takes for granted that these are numbers, and compressed images must be of this size.
  void check_pixel_module(const Element& element) {
    constexpr uint32_t kTags[] = {0x00280002U, 0x00280006U, 0x00280010U, 0x00280011U,
                                  0x00280100U, 0x00280101U, 0x00280102U, 0x00280103U};
    const auto* found = std::find(std::begin(kTags), std::end(kTags), element.tag);
    if (found == std::end(kTags)) return;
    if ((!implicit && element.vr != "US") || element.length < 2 ||
        element.length > bytes_.size() - at) {
      fail("an element of the image description is not a 16-bit number");
    }
    const int value = FieldReader{bytes_.data(), big}.get<uint16_t>(static_cast<int64_t>(at));
    if (element.tag == kTags[0]) samples_ = value;
    if (element.tag == kTags[2]) rows_ = value;
    if (element.tag == kTags[3]) columns_ = value;
  }

  void check_codestream(std::string_view data) {
    if (!starts_codestream(data)) return;
    const std::optional<Codestream> stream = read_codestream_header(data);
    if (!stream) fail("a compressed image has no sound header");
    if (stream->columns != columns_ || stream->rows != rows_ || stream->samples != samples_) {
      fail("a compressed image is of another size than the header says");
    }
  }

  void walk_items(size_t end, bool marked, int depth) {
    while (at < end) {
      const Element item = read_element(end);
      if (marked && item.tag == kSequenceEnd) return;
      if (item.tag != kItem) fail("a sequence holds something that is no item");
      if (item.length == kUndefined) {
        walk_elements(end, true, depth + 1);
      } else if (item.length > end - at) {
        fail("an item is longer than its sequence");
      } else {
        walk_elements(at + item.length, false, depth + 1);
      }
    }
    if (marked) fail("a sequence does not end");
  }

  void walk_fragments() {
    while (true) {
      const Element item = read_element(bytes_.size());
      if (item.tag == kSequenceEnd) return;
      if (item.tag != kItem || item.length > bytes_.size() - at) {
        fail("the compressed pixel data end early");
      }
      check_codestream(bytes_.substr(at, item.length));
      at += item.length;
    }
  }

  const std::string& path_;
  std::string_view bytes_;
  int rows_ = 0, columns_ = 0, samples_ = 1;
};

std::string inflated(std::string_view packed, const Walker& walker) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) walker.fail("it cannot be inflated");
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  stream.avail_in = static_cast<uInt>(packed.size());
  std::string out;
  std::string block(1 << 16, '\0');
  int status = Z_OK;
  while (status == Z_OK && out.size() < kMostInflated) {
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    out.append(block.data(), block.size() - stream.avail_out);
  }
  inflateEnd(&stream);
  if (status != Z_STREAM_END) walker.fail("the deflated data end early");
  return out;
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

}  // namespace

void check_dicom_structure(const std::string& path) {
  const std::string bytes = read_file(path);
  Walker walker(path, bytes);
  if (bytes.size() >= 132 && std::string_view(bytes).substr(128, 4) == "DICM") walker.at = 132;
  const size_t start = walker.at;
  const std::string syntax = walker.walk_meta();
  if (walker.at > start && syntax.empty()) walker.fail("it does not name its transfer syntax");
  if (walker.at >= bytes.size()) walker.fail("it has no elements");
  if (walker.at == start) {  // no meta information: little-endian, and the first element tells
    walker.implicit =
        bytes.size() < start + 6 || !is_upper(bytes[start + 4]) || !is_upper(bytes[start + 5]);
  }
  if (syntax == "1.2.840.10008.1.2.1.99") {
    const std::string data = inflated(std::string_view(bytes).substr(walker.at), walker);
    Walker inner(path, data);
    inner.walk_elements(data.size(), false, 0);
    return;
  }
  if (!syntax.empty()) walker.implicit = syntax == "1.2.840.10008.1.2";
  walker.big = syntax == "1.2.840.10008.1.2.2";
  walker.walk_elements(bytes.size(), false, 0);
}

}  // namespace larch::io
