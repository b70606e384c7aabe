// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/picture/animation.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <stdexcept>
#include <vector>

#include "larch/core/error.h"

namespace larch::picture {
namespace {

constexpr int kDepth = 7;  // bits of a pixel: 96 greys and 32 colours
static_assert(kAnimationGreys + kAnimationColours == 1 << kDepth);
constexpr int kClear = 1 << kDepth, kEnd = kClear + 1;
constexpr int kMaximumCodes = 4096;

void put_u16(std::string& bytes, int value) {
  bytes += static_cast<char>(value & 255);
  bytes += static_cast<char>(value >> 8 & 255);
}

int grey_level(int number) {
  return (255 * number + (kAnimationGreys - 1) / 2) / (kAnimationGreys - 1);
}

/// Returns the entry of the table that is nearest to a colour.
uint8_t entry_of(Rgb pixel, std::span<const Rgb> colours) {
  const auto distance = [&](Rgb c) {
    const int r = pixel.r - c.r, g = pixel.g - c.g, b = pixel.b - c.b;
    return r * r + g * g + b * b;
  };
  const int mean = (pixel.r + pixel.g + pixel.b + 1) / 3;
  const int number = (mean * (kAnimationGreys - 1) + 127) / 255;
  const auto level = static_cast<uint8_t>(grey_level(number));
  int best = number, least = distance({level, level, level});
  if (pixel.r == pixel.g && pixel.g == pixel.b) return static_cast<uint8_t>(best);
  for (size_t k = 0; k < colours.size(); ++k) {
    if (distance(colours[k]) >= least) continue;
    least = distance(colours[k]);
    best = kAnimationGreys + static_cast<int>(k);
  }
  return static_cast<uint8_t>(best);
}

/// Codes of growing width, lowest bit first, in blocks of 255 bytes at most.
class CodeStream {
 public:
  explicit CodeStream(std::string& out) : out_(out) {}
  void put(int code, int width) {
    pending_ |= static_cast<uint32_t>(code) << bits_;
    for (bits_ += width; bits_ >= 8; bits_ -= 8) {
      byte(static_cast<char>(pending_ & 255));
      pending_ >>= 8;
    }
  }
  void finish() {
    if (bits_ > 0) byte(static_cast<char>(pending_ & 255));
    flush();
    out_ += '\0';
  }

 private:
  void byte(char value) {
    block_ += value;
    if (block_.size() == 255) flush();
  }
  void flush() {
    if (block_.empty()) return;
    out_ += static_cast<char>(block_.size());
    out_ += block_;
    block_.clear();
  }

  std::string& out_;
  std::string block_;
  uint32_t pending_ = 0;
  int bits_ = 0;
};

/// Strings that were seen, as GIF counts them (Welch, IEEE Computer 17(6), 1984).
void compress(const std::vector<uint8_t>& entries, std::string& out) {
  out += static_cast<char>(kDepth);
  CodeStream codes(out);
  std::vector<int16_t> longer(static_cast<size_t>(kMaximumCodes)
                              << kDepth);  // string and next entry
  int next = 0, width = 0;
  const auto clear = [&] {
    codes.put(kClear, std::max(width, kDepth + 1));
    std::fill(longer.begin(), longer.end(), int16_t{-1});
    next = kEnd + 1;
    width = kDepth + 1;
  };
  clear();
  int string = entries.front();
  for (size_t i = 1; i < entries.size(); ++i) {
    int16_t& code = longer[static_cast<size_t>(string) << kDepth | entries[i]];
    if (code >= 0) {
      string = code;
      continue;
    }
    codes.put(string, width);
    string = entries[i];
    if (next == kMaximumCodes) {
      clear();
      continue;
    }
    // The reader learns a code one step later, so that its codes become wider one step later too.
    if (next == 1 << width) ++width;
    code = static_cast<int16_t>(next++);
  }
  codes.put(string, width);
  if (next == 1 << width && width < 12) ++width;
  codes.put(kEnd, width);
  codes.finish();
}

}  // namespace

std::string gif_header(int width, int height, std::span<const Rgb> colours) {
  make_canvas(width, height);  // for its checks
  if (colours.size() > kAnimationColours) {
    throw UsageError("an animation with " + std::to_string(colours.size()) +
                     " colours beside its greys; give at most " +
                     std::to_string(kAnimationColours));
  }
  std::string bytes = "GIF89a";
  put_u16(bytes, width);
  put_u16(bytes, height);
  bytes += static_cast<char>(0x80 | (kDepth - 1) << 4 | (kDepth - 1));
  bytes.append(2, '\0');
  for (int k = 0; k < kAnimationGreys; ++k) bytes.append(3, static_cast<char>(grey_level(k)));
  for (size_t k = 0; k < kAnimationColours; ++k) {
    const Rgb colour = k < colours.size() ? colours[k] : kBlack;
    for (const uint8_t part : {colour.r, colour.g, colour.b}) bytes += static_cast<char>(part);
  }
  bytes += "\x21\xff\x0bNETSCAPE2.0\x03\x01";
  put_u16(bytes, 0);  // without end
  bytes += '\0';
  return bytes;
}

std::string gif_frame(const RgbImage& image, std::span<const Rgb> colours, double delay_ms) {
  const size_t pixels = static_cast<size_t>(image.width) * static_cast<size_t>(image.height);
  if (pixels == 0 || image.rgb.size() != 3 * pixels) {
    throw std::logic_error("a picture whose size is not that of its bytes");
  }
  std::string bytes("\x21\xf9\x04\x04", 4);
  put_u16(bytes, static_cast<int>(std::clamp(std::round(delay_ms / 10), 2.0, 65535.0)));
  bytes.append(2, '\0');
  bytes += '\x2c';
  put_u16(bytes, 0);
  put_u16(bytes, 0);
  put_u16(bytes, image.width);
  put_u16(bytes, image.height);
  bytes += '\0';
  std::vector<uint8_t> entries(pixels);
  for (size_t i = 0; i < pixels; ++i) {
    const uint8_t* rgb = image.rgb.data() + 3 * i;
    entries[i] = entry_of({rgb[0], rgb[1], rgb[2]}, colours);
  }
  compress(entries, bytes);
  return bytes;
}

std::string gif_end() {
  return ";";
}

}  // namespace larch::picture
