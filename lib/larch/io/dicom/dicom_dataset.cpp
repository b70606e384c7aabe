// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_dataset.h"

#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <tuple>
#include <utility>

#include <zlib.h>

#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/files/file.h"
#include "larch/io/dicom/dicom_elements.h"
#include "larch/io/image/byte_order.h"
#include "larch/io/image/message.h"
#include "larch/io/image/zstream.h"

namespace larch::io {
namespace {

constexpr uint32_t kUndefined = 0xffffffffU;
constexpr uint32_t kItem = 0xfffee000U, kItemEnd = 0xfffee00dU, kSequenceEnd = 0xfffee0ddU;
constexpr DicomTag kTransferSyntax{0x0002, 0x0010, "TransferSyntaxUID"};
constexpr int kDeepest = 32;
// Bytes that the elements, items and fragments of a file may take: some hundred thousand in any
// case, and beyond that twice the bytes of the file.
constexpr size_t kKeptAnyway = size_t{64} << 20, kKeptPerByte = 2;

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
  constexpr uint32_t kTags[] = {0x00081140U, 0x00209113U, 0x00209116U, 0x00283000U, 0x00286100U,
                                0x00289110U, 0x00289145U, 0x00289443U, 0x52009229U, 0x52009230U};
  return std::find(std::begin(kTags), std::end(kTags), tag) != std::end(kTags);
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool same_values(const DicomElement& a, const DicomElement& b) {
  const auto same_items = [](const DicomItem& x, const DicomItem& y) {
    return std::equal(x.data.elements.begin(), x.data.elements.end(), y.data.elements.begin(),
                      y.data.elements.end(), [](const DicomElement& p, const DicomElement& q) {
                        return p.tag == q.tag && same_values(p, q);
                      });
  };
  return a.value == b.value && a.fragments == b.fragments && a.is_ambiguous == b.is_ambiguous &&
         std::equal(a.items.begin(), a.items.end(), b.items.begin(), b.items.end(), same_items);
}

std::string truncated_text(int64_t there, uint32_t wanted) {
  return "the pixel data are truncated: " + std::to_string(there) + " of " +
         std::to_string(wanted) + " bytes are there; copy or export the file again";
}

// Goes through the bytes once, from `at` on.
class Parser {
 public:
  Parser(const std::string& path, std::string_view bytes)
      : path_(path), bytes_(bytes), left_(kKeptAnyway + kKeptPerByte * bytes.size()) {}

  size_t at = 0;
  bool implicit = false, big = false;
  /// Ends the elements before the pixel data, whose lead is then in `pixels`.
  bool stops_at_pixels = false;
  std::optional<Lead> pixels;

  /// Elements up to `end`, or up to an item's end mark if `marked`.
  DicomDataset read_elements(size_t end, bool marked, int depth) {
    if (depth > kDeepest) fail("sequences are nested too deep");
    DicomDataset data;
    data.is_big_endian = big;
    data.path = &path_;
    bool ended = !marked;
    while (at < end && !(depth == 0 && only_padding_follows(data))) {
      const Lead lead = read_lead(end);
      if (lead.tag == kItemEnd && marked) {
        ended = true;
        break;
      }
      if (lead.tag == kItemEnd && depth > 0 && lead.length == 0) continue;  // the length said it
      if (stops_at_pixels && depth == 0 && lead.tag == kPixelData.number()) {
        pixels = lead;
        break;
      }
      spend(sizeof(DicomElement));
      data.elements.push_back(read_value(lead, end, depth));
    }
    if (!ended) fail("an item does not end");
    put_in_order(data);
    return data;
  }

  /// File meta elements, always explicit and little-endian.
  DicomDataset read_meta() {
    DicomDataset meta;
    meta.path = &path_;
    while (at + 8 <= bytes_.size() &&
           FieldReader{bytes_.data(), false}.get<uint16_t>(static_cast<int64_t>(at)) == 2) {
      const Lead lead = read_lead(bytes_.size());
      if (lead.length > bytes_.size() - at) fail("the file meta information ends early");
      spend(sizeof(DicomElement));
      meta.elements.push_back(
          {lead.tag, lead.vr, false, false, bytes_.substr(at, lead.length), {}, {}});
      at += lead.length;
    }
    put_in_order(meta);
    return meta;
  }

  [[noreturn]] void fail(const std::string& what) const {
    bad(path_, "the DICOM file is damaged or truncated: " + what + " (at byte " +
                   std::to_string(at) + "); copy or export it again");
  }

 private:
  // A vector that grows has room for twice of what it holds.
  void spend(size_t bytes) {
    if (2 * bytes > left_) {
      bad(path_, "it holds far too many elements for its " + std::to_string(bytes_.size()) +
                     " bytes; export it again");
    }
    left_ -= 2 * bytes;
  }

  // Some writers round the length of the file up, or end it as a line of text.
  bool only_padding_follows(const DicomDataset& data) const {
    if (data.elements.empty() || data.elements.back().tag < kPixelData.number()) return false;
    constexpr std::string_view kPadding("\0 \r\n", 4);
    return bytes_.find_first_not_of(kPadding, at) == std::string_view::npos;
  }

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
    // Vendors have types of their own in their private elements, which have odd groups.
    const bool own = (lead.tag >> 16) % 2 == 1 && is_upper(lead.vr[0]) && is_upper(lead.vr[1]);
    if (kAll.find(known) == std::string_view::npos && !own) fail("an element has no known type");
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
    DicomElement element{lead.tag, lead.vr, false, false, {}, {}, {}};
    const bool no_length = lead.length == kUndefined;
    if (no_length &&
        lead.tag == kPixelData.number()) {  // of the image, or of an icon in a sequence
      element.is_encapsulated = true;
      element.fragments = read_fragments(end);
      return element;
    }
    const size_t left = end - at;
    if (!no_length && lead.length > left) {
      if (lead.tag == kPixelData.number()) {
        bad(path_, truncated_text(static_cast<int64_t>(left), lead.length));
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
    bool measured = false;  // the item before has a length, which makes a mark of its end needless
    while (at < end) {
      const Lead lead = read_lead(end);
      if (marked && lead.tag == kSequenceEnd) return items;
      const bool needless = lead.tag == kSequenceEnd || (lead.tag == kItemEnd && measured);
      if (needless && lead.length == 0) continue;
      if (lead.tag != kItem) fail("a sequence holds something that is no item");
      const bool no_length = lead.length == kUndefined;
      if (!no_length && lead.length > end - at) fail("an item is longer than its sequence");
      measured = !no_length;
      spend(sizeof(DicomItem));
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
      spend(sizeof(std::string_view));
      fragments.push_back(bytes_.substr(at, lead.length));
      at += lead.length;
    }
  }

  // Sorts the elements and leaves one of each tag, which knows whether another one differed.
  static void put_in_order(DicomDataset& data) {
    auto& elements = data.elements;
    const auto before = [](const DicomElement& a, const DicomElement& b) { return a.tag < b.tag; };
    if (!std::is_sorted(elements.begin(), elements.end(), before)) {
      std::stable_sort(elements.begin(), elements.end(), before);
    }
    const auto again = [](const DicomElement& a, const DicomElement& b) { return a.tag == b.tag; };
    if (std::adjacent_find(elements.begin(), elements.end(), again) == elements.end()) return;
    for (size_t i = elements.size() - 1; i > 0; --i) {  // the first is kept
      DicomElement& a = elements[i - 1];
      const DicomElement& b = elements[i];
      if (a.tag == b.tag) a.is_ambiguous = b.is_ambiguous || !same_values(a, b);
    }
    elements.erase(std::unique(elements.begin(), elements.end(), again), elements.end());
  }

  const std::string& path_;
  std::string_view bytes_;
  size_t left_;  // bytes that may still be kept
};

// Inflates to the end of the stream; what follows it is padding. Deflate makes at most kMostDeflate
// bytes of one, but the memory may be smaller than that.
std::string inflated(std::string_view packed, const Parser& parser, const std::string& path) {
  constexpr size_t kBlock = 1 << 16, kMostAtOnce = 1 << 30;
  const size_t most = packed.size() * static_cast<size_t>(kMostDeflate) + kBlock;
  z_stream stream{};
  if (inflateInit2(&stream, -MAX_WBITS) != Z_OK) parser.fail("it cannot be inflated");
  const std::unique_ptr<z_stream, decltype(&inflateEnd)> ended(&stream, &inflateEnd);
  stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(packed.data()));
  std::string out;
  std::string block(kBlock, '\0');
  int status = Z_OK;
  while (status == Z_OK) {
    const auto read =
        static_cast<size_t>(stream.next_in - reinterpret_cast<const Bytef*>(packed.data()));
    stream.avail_in = static_cast<uInt>(std::min(packed.size() - read, kMostAtOnce));
    stream.next_out = reinterpret_cast<Bytef*>(block.data());
    stream.avail_out = static_cast<uInt>(block.size());
    status = inflate(&stream, Z_NO_FLUSH);
    const size_t made = block.size() - stream.avail_out;
    if (out.size() + made > out.capacity()) {
      const size_t room = std::min(std::max(2 * out.capacity(), kBlock), most);
      if (!host_memory_allows(room)) {
        throw MemoryError("'" + path + "': " + out_of_memory_text(room));
      }
      out.reserve(room);
    }
    out.append(block.data(), made);
  }
  if (status != Z_STREAM_END) parser.fail("the deflated data end early");
  return out;
}

// Takes a file apart whose first bytes, or all of them, are `file.bytes`.
void parse(DicomFile& file, bool without_pixels, std::optional<Lead>& pixels, size_t& at) {
  const std::string& path = *file.path;
  const std::string_view bytes = *file.bytes;
  Parser parser(path, bytes);
  if (bytes.size() >= 132 && bytes.substr(128, 4) == "DICM") parser.at = 132;
  const size_t start = parser.at;
  file.meta = parser.read_meta();
  file.transfer_syntax = text_of(file.meta, kTransferSyntax);
  if (parser.at > start && file.transfer_syntax.empty()) {
    parser.fail("it does not name its transfer syntax");
  }
  if (parser.at >= bytes.size()) parser.fail("it has no elements");
  if (file.transfer_syntax == kDeflated) {
    file.inflated =
        std::make_unique<const std::string>(inflated(bytes.substr(parser.at), parser, path));
    file.data = Parser(path, *file.inflated).read_elements(file.inflated->size(), false, 0);
    return;
  }
  parser.big = file.transfer_syntax == kExplicitBig;
  // Some writers name one of the little-endian syntaxes and write the other.
  const bool typed = parser.at + 6 <= bytes.size() && is_upper(bytes[parser.at + 4]) &&
                     is_upper(bytes[parser.at + 5]);
  parser.implicit = !typed && !parser.big;
  if (file.transfer_syntax.empty())
    file.transfer_syntax = typed ? kExplicitLittle : kImplicitLittle;
  parser.stops_at_pixels = without_pixels;
  file.data = parser.read_elements(bytes.size(), false, 0);
  pixels = parser.pixels;
  at = parser.at;
}

// Walks over the fragments of encapsulated pixel data, or checks that native ones are there.
PixelPlace place_of(const std::string& path, const Lead& lead, int64_t at, int64_t size,
                    bool big_endian) {
  PixelPlace place;
  place.vr = lead.vr;
  place.is_encapsulated = lead.length == kUndefined;
  if (!place.is_encapsulated) {
    if (lead.length > size - at) bad(path, truncated_text(size - at, lead.length));
    place.native = {at, lead.length};
    return place;
  }
  constexpr size_t kMostFragments = 1 << 22;
  const auto fail = [&] {
    bad(path,
        "the DICOM file is damaged or truncated: the compressed pixel data end early "
        "(at byte " +
            std::to_string(at) + "); copy or export it again");
  };
  std::ifstream in(path, std::ios::binary);
  while (true) {
    std::array<char, 8> mark{};
    in.seekg(at);
    if (!in.read(mark.data(), mark.size())) fail();
    const FieldReader fields{mark.data(), big_endian};
    const uint32_t tag = uint32_t{fields.get<uint16_t>(0)} << 16 | fields.get<uint16_t>(2);
    const auto length = fields.get<uint32_t>(4);
    at += static_cast<int64_t>(mark.size());
    if (tag == kSequenceEnd) return place;
    if (tag != kItem || length > size - at || place.fragments.size() == kMostFragments) fail();
    place.fragments.push_back({at, length});
    at += length;
  }
}

}  // namespace

const DicomElement* DicomDataset::find(const DicomTag& tag) const {
  const auto found = std::lower_bound(
      elements.begin(), elements.end(), tag.number(),
      [](const DicomElement& element, uint32_t number) { return element.tag < number; });
  if (found == elements.end() || found->tag != tag.number()) return nullptr;
  if (!found->is_ambiguous) return &*found;
  char number[16] = {};
  std::snprintf(number, sizeof number, "(%04x,%04x)", unsigned{tag.group}, unsigned{tag.element});
  bad(*path, std::string(tag.name) + " " + number +
                 " stands twice with different values; repair the header or export the file "
                 "again");
}

DicomFile read_dicom_file(const std::string& path) {
  DicomFile file;
  file.path = std::make_unique<const std::string>(path);
  file.bytes = std::make_unique<const std::string>(read_file(path));
  std::optional<Lead> pixels;
  size_t at = 0;
  parse(file, /*without_pixels=*/false, pixels, at);
  return file;
}

DicomFile read_dicom_head(const std::string& path) {
  const int64_t size = file_bytes(path);
  // A header is rarely longer than this. One that is cut off looks damaged, and is read again with
  // more of the file.
  constexpr int64_t kFirst = int64_t{1} << 18, kMore = 4;
  for (int64_t loaded = std::min(kFirst, size);; loaded = std::min(loaded * kMore, size)) {
    DicomFile file;
    file.path = std::make_unique<const std::string>(path);
    std::string start(static_cast<size_t>(loaded), '\0');
    std::ifstream in(path, std::ios::binary);
    in.read(start.data(), loaded);
    if (in.gcount() < loaded) break;
    const bool is_all = loaded == size;
    file.bytes = std::make_unique<const std::string>(std::move(start));
    std::optional<Lead> pixels;
    size_t at = 0;
    try {
      parse(file, /*without_pixels=*/true, pixels, at);
    } catch (const InputError&) {
      if (is_all) throw;
      continue;
    }
    if (!pixels) {
      if (is_all) return file;
      continue;
    }
    file.place = place_of(path, *pixels, static_cast<int64_t>(at), size, file.data.is_big_endian);
    return file;
  }
  return read_dicom_file(path);
}

}  // namespace larch::io
