// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom_dataset.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include <zlib.h>

#include "larch/core/error.h"
#include "larch/io/byte_order.h"
#include "larch/io/file.h"

namespace larch::io {
namespace {

constexpr uint32_t kUndefined = 0xffffffffU;
constexpr uint32_t kItem = 0xfffee000U, kItemEnd = 0xfffee00dU, kSequenceEnd = 0xfffee0ddU;
constexpr uint32_t kPixelData = 0x7fe00010U, kTransferSyntax = 0x00020010U;
constexpr int kDeepest = 32;
constexpr size_t kMostInflated = size_t{1} << 30;

constexpr std::string_view kImplicitLittle = "1.2.840.10008.1.2";
constexpr std::string_view kExplicitLittle = "1.2.840.10008.1.2.1";
constexpr std::string_view kDeflated = "1.2.840.10008.1.2.1.99";
constexpr std::string_view kExplicitBig = "1.2.840.10008.1.2.2";

// The start of an element: all but its value.
struct Lead {
  uint32_t tag = 0, length = 0;
  std::array<char, 2> vr{};
};

// The sequences that are read, whose type the implicit syntax does not tell (PS3.6).
bool is_read_as_sequence(uint32_t tag) {
  constexpr uint32_t kTags[] = {0x00209113U, 0x00209116U, 0x00283000U, 0x00289110U,
                                0x00289145U, 0x52009229U, 0x52009230U};
  return std::find(std::begin(kTags), std::end(kTags), tag) != std::end(kTags);
}

// Goes through the bytes once, from `at` on.
class Parser {
 public:
  Parser(const std::string& path, std::string_view bytes) : path_(path), bytes_(bytes) {}

  size_t at = 0;
  bool implicit = false, big = false;

  /// Elements up to `end`, or up to an item's end mark if `marked`.
  DicomDataset read_elements(size_t end, bool marked, int depth) {
    if (depth > kDeepest) fail("sequences are nested too deep");
    DicomDataset data;
    data.is_big_endian = big;
    bool ended = !marked;
    while (at < end) {
      const Lead lead = read_lead(end);
      if (marked && lead.tag == kItemEnd) {
        ended = true;
        break;
      }
      data.elements.push_back(read_value(lead, end, depth));
    }
    if (!ended) fail("an item does not end");
    put_in_order(data);
    return data;
  }

  /// File meta elements, always explicit and little-endian.
  DicomDataset read_meta() {
    DicomDataset meta;
    while (at + 8 <= bytes_.size() &&
           FieldReader{bytes_.data(), false}.get<uint16_t>(static_cast<int64_t>(at)) == 2) {
      const Lead lead = read_lead(bytes_.size());
      if (lead.length > bytes_.size() - at) fail("the file meta information ends early");
      meta.elements.push_back({lead.tag, lead.vr, false, bytes_.substr(at, lead.length), {}, {}});
      at += lead.length;
    }
    put_in_order(meta);
    return meta;
  }

  [[noreturn]] void fail(const std::string& what) const {
    throw InputError("'" + path_ + "': the DICOM file is damaged or truncated: " + what +
                     " (at byte " + std::to_string(at) + "); copy or export it again");
  }

 private:
  // All that is read lies before `end`, which is at most the end of the bytes.
  template <class T>
  T number(size_t end) {
    if (end - at < sizeof(T)) fail("it ends in the middle of an element");
    const T value = FieldReader{bytes_.data(), big}.get<T>(static_cast<int64_t>(at));
    at += sizeof(T);
    return value;
  }

  Lead read_lead(size_t end) {
    Lead lead;
    lead.tag = static_cast<uint32_t>(number<uint16_t>(end)) << 16;
    lead.tag |= number<uint16_t>(end);
    if (lead.tag >> 16 == 0xfffeU || implicit) {
      lead.length = number<uint32_t>(end);
      return lead;
    }
    if (end - at < 4) fail("it ends in the middle of an element");
    lead.vr = {bytes_[at], bytes_[at + 1]};
    at += 2;
    constexpr std::string_view kAll =
        "AE AS AT CS DA DS DT FD FL IS LO LT OB OD OF OL OV OW PN SH SL SQ SS ST SV TM UC UI UL UN "
        "UR US UT UV ";
    constexpr std::string_view kLong = "OB OD OF OL OV OW SQ SV UC UN UR UT UV ";
    const std::string known = std::string(lead.vr.data(), 2) + " ";
    if (kAll.find(known) == std::string_view::npos) fail("an element has no known type");
    if (kLong.find(known) == std::string_view::npos) {
      lead.length = number<uint16_t>(end);
    } else {
      number<uint16_t>(end);
      lead.length = number<uint32_t>(end);
    }
    return lead;
  }

  DicomElement read_value(const Lead& lead, size_t end, int depth) {
    if (lead.tag >> 16 == 0xfffeU) fail("a mark stands outside a sequence");
    if (lead.tag == 0) fail("an element has no tag");
    DicomElement element{lead.tag, lead.vr, false, {}, {}, {}};
    const bool no_length = lead.length == kUndefined;
    if (no_length && lead.tag == kPixelData) {  // of the image, or of an icon in a sequence
      element.is_encapsulated = true;
      element.fragments = read_fragments(end);
      return element;
    }
    const size_t left = end - at;
    if (!no_length && lead.length > left) {
      if (lead.tag == kPixelData) {
        throw InputError("'" + path_ + "': the pixel data are truncated: " + std::to_string(left) +
                         " of " + std::to_string(lead.length) +
                         " bytes are there; copy or export the file again");
      }
      fail("an element is longer than what is left of the file");
    }
    // A sequence whose type was lost is implicit and little-endian inside (PS3.5, 6.2.2).
    const bool unknown = element.has_vr("UN");
    const bool untyped = implicit || unknown;
    if (element.has_vr("SQ") || (untyped && (no_length || is_read_as_sequence(lead.tag)))) {
      const auto before = std::pair{implicit, big};
      if (unknown) std::tie(implicit, big) = std::pair{true, false};
      element.items = read_items(no_length ? end : at + lead.length, no_length, depth);
      std::tie(implicit, big) = before;
      return element;
    }
    if (no_length) fail("an element has no length");
    element.value = bytes_.substr(at, lead.length);
    at += lead.length;
    return element;
  }

  std::vector<DicomItem> read_items(size_t end, bool marked, int depth) {
    std::vector<DicomItem> items;
    while (at < end) {
      const Lead lead = read_lead(end);
      if (marked && lead.tag == kSequenceEnd) return items;
      if (lead.tag != kItem) fail("a sequence holds something that is no item");
      const bool no_length = lead.length == kUndefined;
      if (!no_length && lead.length > end - at) fail("an item is longer than its sequence");
      items.push_back({read_elements(no_length ? end : at + lead.length, no_length, depth + 1)});
    }
    if (marked) fail("a sequence does not end");
    return items;
  }

  std::vector<std::string_view> read_fragments(size_t end) {
    std::vector<std::string_view> fragments;
    while (true) {
      const Lead lead = read_lead(end);
      if (lead.tag == kSequenceEnd) return fragments;
      if (lead.tag != kItem || lead.length > end - at) {
        fail("the compressed pixel data end early");
      }
      fragments.push_back(bytes_.substr(at, lead.length));
      at += lead.length;
    }
  }

  // Readers differ in which of two values they take, so that there must be one.
  void put_in_order(DicomDataset& data) const {
    auto& elements = data.elements;
    const auto before = [](const DicomElement& a, const DicomElement& b) { return a.tag < b.tag; };
    if (!std::is_sorted(elements.begin(), elements.end(), before)) {
      std::stable_sort(elements.begin(), elements.end(), before);
    }
    const auto again = [](const DicomElement& a, const DicomElement& b) { return a.tag == b.tag; };
    if (std::adjacent_find(elements.begin(), elements.end(), again) == elements.end()) return;
    for (size_t i = 1; i < elements.size(); ++i) {
      const DicomElement &a = elements[i - 1], &b = elements[i];
      if (a.tag != b.tag) continue;
      const bool plain =
          a.items.empty() && b.items.empty() && !a.is_encapsulated && !b.is_encapsulated;
      if (!plain || a.value != b.value) fail("an element stands twice with different values");
    }
    elements.erase(std::unique(elements.begin(), elements.end(), again), elements.end());
  }

  const std::string& path_;
  std::string_view bytes_;
};

std::string inflated(std::string_view packed, const Parser& parser) {
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) parser.fail("it cannot be inflated");
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
  if (status != Z_STREAM_END) parser.fail("the deflated data end early");
  return out;
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

std::string_view without_padding(std::string_view uid) {
  while (!uid.empty() && (uid.back() == '\0' || uid.back() == ' ')) uid.remove_suffix(1);
  return uid;
}

}  // namespace

const DicomElement* DicomDataset::find(const DicomTag& tag) const {
  const auto found = std::lower_bound(
      elements.begin(), elements.end(), tag.number(),
      [](const DicomElement& element, uint32_t number) { return element.tag < number; });
  return found != elements.end() && found->tag == tag.number() ? &*found : nullptr;
}

DicomFile read_dicom_file(const std::string& path) {
  DicomFile file;
  file.bytes = std::make_unique<const std::string>(read_file(path));
  const std::string_view bytes = *file.bytes;
  Parser parser(path, bytes);
  if (bytes.size() >= 132 && bytes.substr(128, 4) == "DICM") parser.at = 132;
  const size_t start = parser.at;
  file.meta = parser.read_meta();
  if (const DicomElement* syntax =
          file.meta.find({kTransferSyntax >> 16, kTransferSyntax & 0xffffU})) {
    file.transfer_syntax = without_padding(syntax->value);
  }
  if (parser.at > start && file.transfer_syntax.empty()) {
    parser.fail("it does not name its transfer syntax");
  }
  if (parser.at >= bytes.size()) parser.fail("it has no elements");
  if (parser.at == start) {  // no meta information: little-endian, and the first element tells
    const bool typed =
        bytes.size() >= start + 6 && is_upper(bytes[start + 4]) && is_upper(bytes[start + 5]);
    file.transfer_syntax = typed ? kExplicitLittle : kImplicitLittle;
  }
  if (file.transfer_syntax == kDeflated) {
    file.inflated = std::make_unique<const std::string>(inflated(bytes.substr(parser.at), parser));
    file.data = Parser(path, *file.inflated).read_elements(file.inflated->size(), false, 0);
    return file;
  }
  parser.implicit = file.transfer_syntax == kImplicitLittle;
  parser.big = file.transfer_syntax == kExplicitBig;
  file.data = parser.read_elements(bytes.size(), false, 0);
  return file;
}

}  // namespace larch::io
