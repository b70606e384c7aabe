// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/formats/jpeg_scan.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <vector>

#include "larch/io/image/byte_order.h"

namespace larch::io {
namespace {

constexpr std::string_view kZero("\0", 1);    // after a byte ff that is none of a marker
constexpr int kLookAhead = 8, kLongest = 16;  // bits of a code

// A table of codes (T.81, annex C).
struct HuffmanTable {
  struct Code {
    uint8_t length = 0, symbol = 0;
  };
  std::array<Code, 1 << kLookAhead> by_start{};  // length 0: the code is longer
  // Of the codes of one length: the first, how many, and the place of their first symbol.
  std::array<int32_t, kLongest + 1> first{}, count{};
  std::array<size_t, kLongest + 1> index{};
  std::vector<uint8_t> symbols;
};

// The bits of entropy-coded data, up to the next marker.
class BitReader {
 public:
  BitReader(std::string_view data, size_t at) : data_(data), at_(at) {}

  // The next bits, zeros where there are none any more.
  uint32_t peek(int bits) {
    if (count_ < bits) fill();
    const uint64_t aligned = count_ >= bits ? bits_ >> (count_ - bits) : bits_ << (bits - count_);
    return static_cast<uint32_t>(aligned & ((uint64_t{1} << bits) - 1));
  }

  bool skip(int bits) {
    if (count_ < bits) fill();
    if (count_ < bits) return false;
    count_ -= bits;
    return true;
  }

  // Where the marker stands, if nothing but the rest of a byte is left before it.
  std::optional<size_t> marker() {
    fill();
    if (!ended_ || count_ >= 8) return std::nullopt;
    return at_;
  }

 private:
  void fill() {
    while (count_ <= 48 && !ended_) {
      const bool is_ff = at_ < data_.size() && data_[at_] == '\xff';
      ended_ = at_ >= data_.size() || (is_ff && data_.substr(at_ + 1, 1) != kZero);
      if (ended_) return;
      bits_ = bits_ << 8 | static_cast<uint8_t>(data_[at_]);
      count_ += 8;
      at_ += is_ff ? 2 : 1;
    }
  }

  std::string_view data_;
  size_t at_;
  uint64_t bits_ = 0;
  int count_ = 0;
  bool ended_ = false;
};

std::optional<int> next_symbol(const HuffmanTable& table, BitReader& in) {
  const HuffmanTable::Code code = table.by_start[in.peek(kLookAhead)];
  if (code.length > 0) return in.skip(code.length) ? std::optional<int>(code.symbol) : std::nullopt;
  const auto bits = static_cast<int32_t>(in.peek(kLongest));
  for (size_t length = kLookAhead + 1; length <= kLongest; ++length) {
    const int32_t place = (bits >> (kLongest - length)) - table.first[length];
    if (place < 0 || place >= table.count[length]) continue;
    if (!in.skip(static_cast<int>(length))) return std::nullopt;
    return table.symbols[table.index[length] + static_cast<size_t>(place)];
  }
  return std::nullopt;
}

class Walker {
 public:
  explicit Walker(std::string_view data) : data_(data) {}

  bool walk() {
    while (true) {
      const std::optional<uint8_t> marker = next_marker();
      if (!marker) return false;
      if (*marker == 0xd9) return !parts_.empty() && std::ranges::all_of(parts_, &Part::is_read);
      if (data_.size() - at_ < 2) return false;
      const size_t length =
          FieldReader{data_.data(), true}.get<uint16_t>(static_cast<int64_t>(at_));
      if (length < 2 || length > data_.size() - at_) return false;
      const std::string_view body = data_.substr(at_ + 2, length - 2);
      at_ += length;
      if (!take(*marker, body)) return false;
    }
  }

 private:
  struct Part {  // a component
    uint8_t id = 0;
    int64_t across = 1, down = 1;  // sampling factors
    bool is_read = false;
    const HuffmanTable *dc = nullptr, *ac = nullptr;
  };

  // Any number of bytes ff may stand before one (T.81, B.1.1.2).
  std::optional<uint8_t> next_marker() {
    if (at_ >= data_.size() || data_[at_] != '\xff') return std::nullopt;
    while (at_ < data_.size() && data_[at_] == '\xff') ++at_;
    if (at_ >= data_.size()) return std::nullopt;
    return static_cast<uint8_t>(data_[at_++]);
  }

  bool take(uint8_t marker, std::string_view body) {
    if (marker == 0xc4) return take_tables(body);
    if (marker == 0xc0 || marker == 0xc1 || marker == 0xc3) {
      is_lossless_ = marker == 0xc3;
      return take_frame(body);
    }
    if (marker == 0xda) return take_scan(body);
    if (marker == 0xdd) {
      if (body.size() != 2) return false;
      interval_ = FieldReader{body.data(), true}.get<uint16_t>(0);
      return true;
    }
    // Tables of quantization, comments and application data have no part in the codes.
    return marker == 0xdb || marker == 0xfe || (marker >= 0xe0 && marker <= 0xef);
  }

  bool take_tables(std::string_view body) {
    while (!body.empty()) {
      if (body.size() < 1 + kLongest) return false;
      const auto place = static_cast<uint8_t>(body[0]);
      if ((place & 15) > 3 || place >> 4 > 1) return false;
      HuffmanTable& table = tables_[place >> 4][place & 15];
      table = {};
      int32_t code = 0;
      size_t total = 0;
      for (size_t length = 1; length <= kLongest; ++length) {
        table.first[length] = code;
        table.index[length] = total;
        table.count[length] = static_cast<uint8_t>(body[length]);
        code += table.count[length];
        total += static_cast<size_t>(table.count[length]);
        if (code > 1 << length) return false;
        code <<= 1;
      }
      body.remove_prefix(1 + kLongest);
      if (total > 256 || body.size() < total) return false;
      const std::string_view symbols = body.substr(0, total);
      table.symbols.assign(symbols.begin(), symbols.end());
      body.remove_prefix(total);
      fill_starts(table);
    }
    return true;
  }

  static void fill_starts(HuffmanTable& table) {
    for (int length = 1; length <= kLookAhead; ++length) {
      const auto l = static_cast<size_t>(length);
      for (int32_t i = 0; i < table.count[l]; ++i) {
        const int32_t start = (table.first[l] + i) << (kLookAhead - length);
        const uint8_t symbol = table.symbols[table.index[l] + static_cast<size_t>(i)];
        std::fill_n(table.by_start.begin() + start, 1 << (kLookAhead - length),
                    HuffmanTable::Code{static_cast<uint8_t>(length), symbol});
      }
    }
  }

  bool take_frame(std::string_view body) {
    if (!parts_.empty() || body.size() < 6) return false;
    const FieldReader in{body.data(), true};
    rows_ = in.get<uint16_t>(1);
    columns_ = in.get<uint16_t>(3);
    const size_t count = in.get<uint8_t>(5);
    if (count < 1 || count > 4 || body.size() != 6 + 3 * count) return false;
    for (size_t i = 0; i < count; ++i) {
      const auto at = static_cast<int64_t>(6 + 3 * i);
      const auto factors = in.get<uint8_t>(at + 1);
      Part part{in.get<uint8_t>(at), factors >> 4, factors & 15, false, nullptr, nullptr};
      if (part.across < 1 || part.across > 4 || part.down < 1 || part.down > 4) return false;
      across_ = std::max(across_, part.across);
      down_ = std::max(down_, part.down);
      parts_.push_back(part);
    }
    return true;
  }

  // Each component in one scan, so that no file makes work beyond its size.
  bool take_scan(std::string_view body) {
    const size_t count = body.empty() ? 0 : static_cast<uint8_t>(body[0]);
    if (count < 1 || count > 4 || body.size() != 4 + 2 * count) return false;
    std::vector<Part*> parts;
    for (size_t i = 0; i < count; ++i) {
      const auto id = static_cast<uint8_t>(body[1 + 2 * i]);
      const auto tables = static_cast<uint8_t>(body[2 + 2 * i]);
      const auto part = std::ranges::find(parts_, id, &Part::id);
      if (part == parts_.end() || part->is_read || (tables & 15) > 3 || tables >> 4 > 3) {
        return false;
      }
      part->is_read = true;
      part->dc = &tables_[0][tables >> 4];
      part->ac = &tables_[1][tables & 15];
      parts.push_back(&*part);
    }
    return walk_scan(parts);
  }

  bool walk_scan(const std::vector<Part*>& parts) {
    const int64_t unit = is_lossless_ ? 1 : 8;  // samples across and down of what is coded as one
    const auto in_units = [](int64_t samples, int64_t size) { return (samples + size - 1) / size; };
    int64_t groups = in_units(columns_, unit * across_) * in_units(rows_, unit * down_);
    const bool alone = parts.size() == 1;
    if (alone) {
      groups = in_units(in_units(columns_ * parts[0]->across, across_), unit) *
               in_units(in_units(rows_ * parts[0]->down, down_), unit);
    }
    BitReader in(data_, at_);
    for (int64_t group = 0; group < groups; ++group) {
      if (interval_ > 0 && group > 0 && group % interval_ == 0) {
        const std::optional<size_t> marker = in.marker();
        if (!marker) return false;
        at_ = *marker;
        if (next_marker() != 0xd0 + (group / interval_ - 1) % 8) return false;
        in = BitReader(data_, at_);
      }
      for (const Part* part : parts) {
        for (int64_t i = 0; i < (alone ? 1 : part->across * part->down); ++i) {
          if (!(is_lossless_ ? skip_sample(*part, in) : skip_block(*part, in))) return false;
        }
      }
    }
    const std::optional<size_t> marker = in.marker();
    if (marker) at_ = *marker;
    return marker.has_value();
  }

  // A difference of 32768 is told without further bits (T.81, H.1.2.2).
  static bool skip_sample(const Part& part, BitReader& in) {
    const std::optional<int> bits = next_symbol(*part.dc, in);
    return bits && *bits <= 16 && in.skip(*bits % 16);
  }

  static bool skip_block(const Part& part, BitReader& in) {
    const std::optional<int> bits = next_symbol(*part.dc, in);
    if (!bits || *bits > 15 || !in.skip(*bits)) return false;
    for (int k = 1; k < 64; ++k) {
      const std::optional<int> code = next_symbol(*part.ac, in);
      if (!code) return false;
      const int zeros = *code >> 4, size = *code & 15;
      if (size == 0 && zeros != 15) break;  // the end of the block
      k += zeros;
      if (k > 63 || !in.skip(size)) return false;
    }
    return true;
  }

  std::string_view data_;
  size_t at_ = 2;  // after the start of the image
  std::array<std::array<HuffmanTable, 4>, 2> tables_{};
  std::vector<Part> parts_;
  int64_t rows_ = 0, columns_ = 0, across_ = 1, down_ = 1, interval_ = 0;
  bool is_lossless_ = false;
};

}  // namespace

bool is_whole_jpeg(std::string_view data) {
  return data.substr(0, 2) == "\xff\xd8" && Walker(data).walk();
}

}  // namespace larch::io
