// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/dicom/dicom_parser.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <iterator>
#include <tuple>
#include <utility>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/host_memory.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/bytes/byte_order.h"
#include "larch/io/bytes/message.h"
#include "larch/io/bytes/zstream.h"

namespace larch::io {
namespace {

constexpr uint32_t kUndefined = 0xffffffffU;
constexpr uint32_t kItem = 0xfffee000U, kItemEnd = 0xfffee00dU, kSequenceEnd = 0xfffee0ddU;
constexpr DicomTag kTransferSyntax{0x0002, 0x0010, "TransferSyntaxUID"};
constexpr std::string_view kRoot = "1.2.840.10008.1.2";  // of the UIDs of transfer syntaxes
constexpr int kDeepest = 32;
// Bytes that the elements, items and fragments of a file may take: some hundred thousand in any
// case, and beyond that twice the bytes of the file.
constexpr size_t kKeptAnyway = size_t{64} << 20, kKeptPerByte = 2;

TransferSyntax transfer_syntax_of(std::string_view uid) {
  using enum TransferSyntax;
  constexpr std::pair<std::string_view, TransferSyntax> kSyntaxes[] = {
      {"", kImplicitLittle},
      {".1", kExplicitLittle},
      {".1.99", kDeflated},
      {".2", kExplicitBig},
      {".5", kRle},
      {".4.50", kJpegBaseline},
      {".4.51", kJpegExtended},
      {".4.57", kJpegLossless},
      {".4.70", kJpegLossless},
      {".4.80", kJpegLs},
      {".4.81", kJpegLsNear},
      {".4.90", kJpeg2000},
      {".4.91", kJpeg2000},
  };
  if (!uid.starts_with(kRoot)) return kUnknown;
  for (const auto& [end, syntax] : kSyntaxes) {
    if (uid.substr(kRoot.size()) == end) return syntax;
  }
  return kUnknown;
}

// The name of a transfer syntax that is not read (PS3.6, table A-1), or else its UID.
std::string name_of_syntax(std::string_view uid) {
  constexpr std::pair<std::string_view, const char*> kStarts[] = {
      {".4.9", "JPEG 2000 Part 2 or JPIP"},
      {".4.10", "MPEG-2, MPEG-4 or HEVC"},
      {".4.11", "JPEG XL"},
      {".4.20", "HTJ2K"},
      {".4.", "JPEG of a retired process"},
      {".7.", "SMPTE ST 2110"},
      {".8.", "Deflated Image Frame Compression"},
  };
  for (const auto& [start, name] : kStarts) {
    if (uid.starts_with(kRoot) && uid.substr(kRoot.size()).starts_with(start)) return name;
  }
  return shown(uid);
}

// The start of an element: all but its value.
struct Lead {
  uint32_t tag = 0, length = 0;
  std::array<char, 2> vr{};
};

// The sequences that are read, whose type the implicit syntax does not tell (PS3.6).
bool is_read_as_sequence(uint32_t tag) {
  constexpr uint32_t kTags[] = {0x00081140U, 0x00209113U, 0x00209116U, 0x00283000U, 0x00286100U,
                                0x00289110U, 0x00289145U, 0x00289443U, 0x00540022U, 0x00620002U,
                                0x0062000aU, 0x52009229U, 0x52009230U};
  return std::ranges::find(kTags, tag) != std::end(kTags);
}

bool is_upper(char c) {
  return c >= 'A' && c <= 'Z';
}

bool same_values(const DicomElement& a, const DicomElement& b) {
  const auto same_items = [](const DicomItem& x, const DicomItem& y) {
    return std::ranges::equal(x.data.elements, y.data.elements, [](const auto& p, const auto& q) {
      return p.tag == q.tag && same_values(p, q);
    });
  };
  return a.value == b.value && a.is_ambiguous == b.is_ambiguous &&
         std::ranges::equal(a.items, b.items, same_items);
}

// Sorts the elements and leaves one of each tag, which knows whether another one differed.
void put_in_order(std::vector<DicomElement>& elements) {
  std::ranges::stable_sort(elements, {}, &DicomElement::tag);
  for (size_t i = elements.size(); i-- > 1;) {  // the first is kept
    DicomElement& a = elements[i - 1];
    const DicomElement& b = elements[i];
    if (a.tag == b.tag) a.is_ambiguous = b.is_ambiguous || !same_values(a, b);
  }
  const auto again = [](const DicomElement& a, const DicomElement& b) { return a.tag == b.tag; };
  elements.erase(std::unique(elements.begin(), elements.end(), again), elements.end());
}

// Goes through a file once, from `at` on.
class Parser {
 public:
  // Puts what it finds into `file`.
  Parser(DicomBytes& in, DicomFile& file) : in_(in), file_(file), path_(*file.path) {}

  int64_t at = 0;
  bool implicit = false, big = false;

  // Elements up to `end`, or up to an item's end mark if `marked`.
  void read_elements(DicomDataset& data, int64_t end, bool marked, int depth) {
    if (depth > kDeepest) fail("sequences are nested too deep");
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
      if (depth == 0 && lead.tag == kPixelData.number()) {
        find_pixels(lead, end);
        continue;
      }
      spend(sizeof(DicomElement));
      data.elements.push_back(read_value(lead, end, depth));
    }
    if (!ended) fail("an item does not end");
    put_in_order(data.elements);
  }

  // File meta elements, always explicit and little-endian.
  DicomDataset read_meta() {
    DicomDataset meta;
    meta.path = &path_;
    while (at + 8 <= in_.size() && in_.read({at, 2}) == std::string_view("\2\0", 2)) {
      const Lead lead = read_lead(in_.size());
      if (lead.length > in_.size() - at) fail("the file meta information ends early");
      spend(sizeof(DicomElement));
      meta.elements.push_back({lead.tag, lead.vr, false, take_bytes(lead.length), {}});
    }
    put_in_order(meta.elements);
    return meta;
  }

  [[noreturn]] void fail(const std::string& what) const {
    bad(path_, "the DICOM file is damaged or truncated: " + what + " (at byte " +
                   std::to_string(at) + "); copy or export it again");
  }

 private:
  // A vector that grows has room for twice of what it holds.
  void spend(size_t bytes) {
    spent_ += 2 * bytes;
    if (spent_ <= kKeptAnyway + kKeptPerByte * static_cast<size_t>(in_.size())) return;
    bad(path_, "it holds far too many elements for its " + std::to_string(in_.size()) +
                   " bytes; export it again");
  }

  // Some writers round the length of the file up, or end it as a line of text.
  bool only_padding_follows(const DicomDataset& data) {
    const bool is_last = !data.elements.empty() && data.elements.back().tag > kPixelData.number();
    if (!is_last && !file_.place) return false;
    constexpr std::string_view kPadding("\0 \r\n", 4);
    constexpr int64_t kBlock = 4096;
    for (int64_t block = at; block < in_.size(); block += kBlock) {
      const std::string bytes = in_.read({block, std::min(kBlock, in_.size() - block)});
      if (bytes.find_first_not_of(kPadding) != std::string::npos) return false;
    }
    return true;
  }

  std::string_view take_bytes(uint32_t count) {
    if (count == 0) return {};
    file_.values.push_back(in_.read({at, count}));
    at += count;
    return file_.values.back();
  }

  // All that is read lies before `end`, which is at most the end of the bytes.
  template <class T>
  T number(int64_t end) {
    constexpr int64_t kBytes = sizeof(T);
    if (end - at < kBytes) fail("it ends in the middle of an element");
    char bytes[sizeof(T)];
    in_.read({at, kBytes}, bytes);
    at += kBytes;
    return FieldReader{bytes, big}.get<T>(0);
  }

  Lead read_lead(int64_t end) {
    Lead lead;
    lead.tag = static_cast<uint32_t>(number<uint16_t>(end)) << 16;
    lead.tag |= number<uint16_t>(end);
    if (lead.tag >> 16 == 0xfffeU || implicit) {
      lead.length = number<uint32_t>(end);
      return lead;
    }
    if (end - at < 4) fail("it ends in the middle of an element");
    in_.read({at, 2}, lead.vr.data());
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

  DicomElement read_value(const Lead& lead, int64_t end, int depth) {
    if (lead.tag >> 16 == 0xfffeU) fail("a mark stands outside a sequence");
    if (lead.tag == 0) fail("an element has no tag");
    DicomElement element{lead.tag, lead.vr, false, {}, {}};
    const bool no_length = lead.length == kUndefined;
    if (no_length && lead.tag == kPixelData.number()) {  // of an icon in a sequence
      read_fragments(end, nullptr);
      return element;
    }
    if (!no_length && lead.length > end - at) {
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
    element.value = take_bytes(lead.length);
    return element;
  }

  std::vector<DicomItem> read_items(int64_t end, bool marked, int depth) {
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
      DicomDataset& data = items.emplace_back().data;
      read_elements(data, no_length ? end : at + lead.length, no_length, depth + 1);
    }
    if (marked) fail("a sequence does not end");
    return items;
  }

  // Goes over the fragments of encapsulated pixel data, which have no type in any syntax, and
  // says where they stand.
  void read_fragments(int64_t end, std::vector<FilePiece>* pieces) {
    constexpr int64_t kMark = 8;
    const auto end_early = [&] { fail("the compressed pixel data end early"); };
    while (true) {
      if (end - at < kMark) end_early();
      const bool is_typed = !std::exchange(implicit, true);
      const Lead lead = read_lead(end);
      implicit = !is_typed;
      if (lead.tag == kSequenceEnd) return;
      if (lead.tag != kItem || lead.length > end - at) end_early();
      if (pieces != nullptr) {
        spend(sizeof(FilePiece));
        pieces->push_back({at, lead.length});
      }
      at += lead.length;
    }
  }

  void find_pixels(const Lead& lead, int64_t end) {
    if (file_.place) {
      bad_header(path_, "PixelData (7fe0,0010) stands twice with different values");
    }
    PixelPlace& place = file_.place.emplace();
    place.vr = lead.vr;
    place.is_encapsulated = lead.length == kUndefined;
    if (place.is_encapsulated) return read_fragments(end, &place.fragments);
    if (lead.length > end - at) {
      bad(path_, "the pixel data are truncated: " + std::to_string(end - at) + " of " +
                     std::to_string(lead.length) +
                     " bytes are there; copy or export the file again");
    }
    place.native = {at, lead.length};
    at += lead.length;
  }

  DicomBytes& in_;
  DicomFile& file_;
  const std::string& path_;
  size_t spent_ = 0;
};

// Inflates to the end of the stream; what follows it is padding. Deflate makes at most
// kMaximumDeflate bytes of one, but the memory may be smaller than that.
std::string inflated(const std::string& path, int64_t start) {
  constexpr size_t kBlock = 1 << 16;
  ZReader in(path, start, Packing::kDeflate);
  std::string out, block(kBlock, '\0');
  while (const auto made = static_cast<size_t>(in.read(block.data(), kBlock))) {
    if (out.size() + made > out.capacity()) {
      const size_t room = std::max(2 * out.capacity(), kBlock);
      if (!host_memory_allows(room)) {
        throw MemoryError("'" + path + "': " + out_of_memory_text(room));
      }
      out.reserve(room);
    }
    out.append(block.data(), made);
  }
  return out;
}

}  // namespace

const DicomElement* DicomDataset::find(const DicomTag& tag) const {
  const auto found = std::ranges::lower_bound(elements, tag.number(), {}, &DicomElement::tag);
  if (found == elements.end() || found->tag != tag.number()) return nullptr;
  if (!found->is_ambiguous) return &*found;
  bad_header(*path, tag.name + formatted(" (%04x,%04x) stands twice with different values",
                                         unsigned{tag.group}, unsigned{tag.element}));
}

DicomBytes::DicomBytes(const std::string& path, std::shared_ptr<const std::string> inflated)
    : path_(path),
      inflated_(std::move(inflated)),
      size_(inflated_ ? static_cast<int64_t>(inflated_->size()) : file_bytes(path)) {
  if (inflated_) return;
  in_.rdbuf()->pubsetbuf(nullptr, 0);  // what is read ahead stands in block_
  in_.open(path, std::ios::binary);
  if (in_) return;
  throw InputError("cannot read '" + path + "': " + std::strerror(errno) +
                   ": check its permissions");
}

std::string DicomBytes::sha256() {
  if (inflated_) return "";
  Sha256 all;
  std::vector<char> piece(1 << 16);
  in_.seekg(0);
  while (in_) {
    in_.read(piece.data(), static_cast<std::streamsize>(piece.size()));
    all.update(piece.data(), static_cast<size_t>(in_.gcount()));
  }
  in_.clear();
  return hex(all.digest());
}

void DicomBytes::read(const FilePiece& piece, void* to) {
  constexpr int64_t kBlock = 8192;
  bool is_there = piece.offset + piece.bytes <= size_;
  const auto load = [&](int64_t at, char* place, int64_t bytes) {
    in_.seekg(at);
    in_.read(place, bytes);
    is_there = in_.gcount() == bytes;
  };
  const auto count = static_cast<size_t>(piece.bytes);
  if (inflated_ && is_there) {
    std::memcpy(to, inflated_->data() + piece.offset, count);
  } else if (is_there && piece.bytes > kBlock) {
    load(piece.offset, static_cast<char*>(to), piece.bytes);
  } else if (is_there) {
    const auto end = block_at_ + static_cast<int64_t>(block_.size());
    if (piece.offset < block_at_ || piece.offset + piece.bytes > end) {
      block_at_ = piece.offset;
      block_.resize(static_cast<size_t>(std::min(kBlock, size_ - block_at_)));
      load(block_at_, block_.data(), static_cast<int64_t>(block_.size()));
    }
    std::memcpy(to, block_.data() + (piece.offset - block_at_), count);
  }
  if (!is_there) bad(path_, "it became shorter while it was read; is it being copied?");
}

std::string DicomBytes::read(const FilePiece& piece) {
  std::string bytes(static_cast<size_t>(piece.bytes), '\0');
  read(piece, bytes.data());
  return bytes;
}

DicomFile read_dicom_file(const std::string& path) {
  return read_dicom_file(path, DicomBytes(path));
}

DicomFile read_dicom_file(const std::string& path, DicomBytes in) {
  using enum TransferSyntax;
  DicomFile file;
  file.path = std::make_unique<const std::string>(path);
  Parser parser(in, file);
  if (in.size() >= 132 && in.read({128, 4}) == "DICM") parser.at = 132;
  const int64_t start = parser.at;
  file.meta = parser.read_meta();
  const std::string syntax = text_of(file.meta, kTransferSyntax);
  if (parser.at > start && syntax.empty()) parser.fail("it does not name its transfer syntax");
  if (parser.at >= in.size()) parser.fail("it has no elements");
  file.transfer_syntax = transfer_syntax_of(syntax);
  if (file.transfer_syntax == kDeflated) {
    file.inflated = std::make_shared<const std::string>(inflated(path, parser.at));
    in = DicomBytes(path, file.inflated);
    parser.at = 0;
  } else {
    parser.big = file.transfer_syntax == kExplicitBig;
    // Some writers name one of the little-endian syntaxes and write the other.
    const bool typed =
        parser.at + 6 <= in.size() && std::ranges::all_of(in.read({parser.at + 4, 2}), is_upper);
    parser.implicit = !typed && !parser.big;
    if (syntax.empty()) file.transfer_syntax = typed ? kExplicitLittle : kImplicitLittle;
  }
  try {
    parser.read_elements(file.data, in.size(), false, 0);
  } catch (const InputError& error) {
    file.damage = error.what();
    put_in_order(file.data.elements);
  }
  if (file.transfer_syntax == kUnknown) {
    file.damage = "'" + path + "': transfer syntax " + name_of_syntax(syntax) +
                  " is not supported; export the file uncompressed, or convert it";
  }
  return file;
}

}  // namespace larch::io
