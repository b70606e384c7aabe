// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <array>
#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

#include <catch2/catch.hpp>

#include "larch/core/error.h"
#include "larch/core/random_math.h"
#include "larch/picture/animation.h"
#include "larch/picture/montage.h"

namespace larch::picture {
namespace {

/// A reader of GIF 89a, for what the writer may write; throws on anything else.
class GifReader {
 public:
  explicit GifReader(const std::string& bytes) : bytes_(bytes) {
    if (bytes.substr(0, 6) != "GIF89a") throw std::runtime_error("no GIF");
    at_ = 6;
    width = u16();
    height = u16();
    const int flags = u8();
    at_ += 2;
    for (int k = 0; k < 2 << (flags & 7); ++k) {
      table_.push_back({uint8_t(u8()), uint8_t(u8()), uint8_t(u8())});
    }
    while (true) {
      const int kind = u8();
      if (kind == 0x3b) break;
      if (kind == 0x21) {
        extension();
      } else if (kind == 0x2c) {
        picture();
      } else {
        throw std::runtime_error("unknown block");
      }
    }
    if (at_ != bytes.size()) throw std::runtime_error("more after the end");
  }

  int width = 0, height = 0;
  bool is_endless = false;
  std::vector<int> delays_ms{};
  std::vector<std::vector<Rgb>> frames{};

 private:
  int u8() { return static_cast<uint8_t>(bytes_.at(at_++)); }
  int u16() {
    const int low = u8();
    return low | u8() << 8;
  }
  std::string blocks() {
    std::string all;
    for (int length = u8(); length > 0; length = u8()) {
      all += bytes_.substr(at_, static_cast<size_t>(length));
      at_ += static_cast<size_t>(length);
    }
    return all;
  }
  void extension() {
    const int label = u8();
    const std::string content = blocks();
    if (label == 0xff) is_endless = content == std::string("NETSCAPE2.0\x01\0\0", 14);
    if (label != 0xf9) return;
    delays_ms.push_back(10 * (uint8_t(content.at(1)) | uint8_t(content.at(2)) << 8));
  }
  void picture() {
    if (u16() != 0 || u16() != 0 || u16() != width || u16() != height || u8() != 0) {
      throw std::runtime_error("not a whole picture");
    }
    const int depth = u8();
    const std::string data = blocks();
    frames.emplace_back();
    for (const uint8_t entry : expand(data, depth)) frames.back().push_back(table_.at(entry));
  }
  static std::string expand(const std::string& data, int depth) {
    const int clear = 1 << depth, end = clear + 1;
    std::vector<std::string> strings;
    std::string out, last;
    int width = depth + 1, bits = 0;
    uint32_t pending = 0;
    for (size_t at = 0;;) {
      for (; bits < width; bits += 8) {
        pending |= static_cast<uint32_t>(static_cast<uint8_t>(data.at(at++))) << bits;
      }
      const int code = static_cast<int>(pending & ((1u << width) - 1));
      pending >>= width;
      bits -= width;
      if (code == end) {
        if (at != data.size()) throw std::runtime_error("more after the end of a picture");
        return out;
      }
      if (code == clear) {
        strings.assign(static_cast<size_t>(end) + 1, "");
        for (int k = 0; k < clear; ++k) strings[static_cast<size_t>(k)] = std::string(1, char(k));
        width = depth + 1;
        last.clear();
        continue;
      }
      const auto number = static_cast<size_t>(code);
      if (number > strings.size() || (number == strings.size() && last.empty())) {
        throw std::runtime_error("a code that is not there yet");
      }
      const std::string now = number < strings.size() ? strings[number] : last + last.front();
      if (!last.empty() && strings.size() < 4096) strings.push_back(last + now.front());
      if (strings.size() == size_t{1} << width && width < 12) ++width;
      out += now;
      last = now;
    }
  }

  const std::string& bytes_;
  size_t at_ = 0;
  std::vector<Rgb> table_;
};

RgbImage noise(int width, int height, uint64_t stream, uint32_t greys) {
  RgbImage image = make_canvas(width, height);
  for (int y = 0; y < height; ++y) {
    for (int x = 0; x < width; ++x) {
      const auto index = static_cast<uint64_t>(y) * 4096 + static_cast<uint64_t>(x);
      const auto grey = static_cast<uint8_t>(hash_below(1, stream, index, greys) * 255 / greys);
      put(image, x, y, {grey, grey, grey});
    }
  }
  return image;
}

TEST_CASE("an animation is read back: noise, flat pictures, colours, delays") {
  const std::array<Rgb, 2> colours{Rgb{255, 220, 60}, Rgb{80, 220, 80}};
  std::vector<RgbImage> images{noise(97, 61, 0, 256), noise(97, 61, 1, 3), make_canvas(97, 61),
                               noise(97, 61, 2, 2)};
  for (int x = 10; x < 60; ++x) put(images[2], x, 20, colours[1]);
  put(images[2], 5, 5, {250, 222, 66});  // nearest to the first colour
  std::string bytes = gif_header(97, 61, colours);
  for (const RgbImage& image : images) bytes += gif_frame(image, colours, 133.3);
  bytes += gif_end();
  const GifReader gif(bytes);
  CHECK(gif.width == 97);
  CHECK(gif.height == 61);
  CHECK(gif.is_endless);
  CHECK(gif.delays_ms == std::vector<int>(4, 130));
  REQUIRE(gif.frames.size() == 4);
  for (size_t k = 0; k < 4; ++k) {
    REQUIRE(gif.frames[k].size() == 97 * 61);
    int wrong = 0;
    for (int i = 0; i < 97 * 61; ++i) {
      const Rgb was = pixel_at(images[k], i % 97, i / 97), is = gif.frames[k][size_t(i)];
      const bool is_grey = was.r == was.g && was.g == was.b;
      if (is_grey) wrong += is.r != is.g || is.g != is.b || std::abs(is.r - was.r) > 2;
    }
    CHECK(wrong == 0);
  }
  CHECK(gif.frames[2][20 * 97 + 30] == colours[1]);
  CHECK(gif.frames[2][5 * 97 + 5] == colours[0]);
}

TEST_CASE("pictures of every length end with whole codes") {
  for (int width = 1; width < 400; width += 7) {
    const RgbImage image = noise(width, 11, 5, 200);
    const std::string bytes = gif_header(width, 11, {}) + gif_frame(image, {}, 0) + gif_end();
    const GifReader gif(bytes);
    REQUIRE(gif.frames.size() == 1);
    REQUIRE(gif.frames[0].size() == static_cast<size_t>(width * 11));
    CHECK(gif.delays_ms == std::vector<int>{20});
  }
  const RgbImage large = noise(700, 300, 6, 90);  // the table of strings overflows many times
  const std::string bytes = gif_header(700, 300, {}) + gif_frame(large, {}, 40) + gif_end();
  CHECK(GifReader(bytes).frames.at(0).size() == 700 * 300);
}

TEST_CASE("animations that GIF cannot hold are refused") {
  CHECK_THROWS_AS(gif_header(0, 5, {}), UsageError);
  const std::vector<Rgb> many(kAnimationColours + 1);
  CHECK_THROWS_AS(gif_header(5, 5, many), UsageError);
  CHECK_THROWS_AS(gif_frame({5, 5, {}}, {}, 40), std::logic_error);
}

TEST_CASE("a montage has its panels side by side, shrunk by means or enlarged") {
  std::vector<int16_t> dark(20 * 10, -100), ramp(20 * 10);
  for (int i = 0; i < 200; ++i) ramp[size_t(i)] = static_cast<int16_t>(i % 20 < 10 ? 100 : -100);
  std::array<Panel, 2> panels{Panel{"before", dark, {}}, Panel{"after", ramp, {}}};
  MontageOptions options;
  options.width = 20;
  options.height = 10;
  options.window = {-100, 100};
  options.most_panel_width = 10;
  RgbImage image = montage(panels, options);
  CHECK(image.width == 24);
  CHECK(image.height == 14 + 5);
  CHECK(pixel_at(image, 3, 16) == kBlack);
  CHECK(pixel_at(image, 14 + 4, 16) == kWhite);
  CHECK(pixel_at(image, 14 + 5, 16) == kBlack);
  options.most_panel_width = 60;
  options.arrow_scale = 2;
  panels[0].arrows = {{4, 4, 3, 0, {255, 0, 0}}};
  image = montage(panels, options);
  CHECK(image.width == 124);
  CHECK(image.height == 14 + 30);
  // The tail is at the middle of pixel (4, 4), the head 3 pixels x 2 x 3 further.
  CHECK(pixel_at(image, 13, 14 + 13) == Rgb{255, 0, 0});
  CHECK(pixel_at(image, 13 + 18, 14 + 13) == Rgb{255, 0, 0});
  CHECK(pixel_at(image, 13 + 19, 14 + 13) == kBlack);
}

TEST_CASE("montages of nothing and of panels that differ are refused") {
  MontageOptions options;
  options.width = options.height = 4;
  CHECK_THROWS_AS(montage({}, options), UsageError);
  const std::vector<int16_t> few(3);
  const Panel panel{"", few, {}};
  CHECK_THROWS_AS(montage({&panel, 1}, options), std::logic_error);
}

TEST_CASE("a window by shares of the pixels") {
  std::vector<int16_t> values(1001);
  for (int i = 0; i <= 1000; ++i) values[size_t(i)] = static_cast<int16_t>(i - 100);
  CHECK(percentile_window(values, 0.1, 0.9, false) == std::array<double, 2>{0, 800});
  CHECK(percentile_window(values, 0.1, 0.9, true) == std::array<double, 2>{-800, 800});
  CHECK(percentile_window(std::vector<int16_t>(9, 5), 0, 1, false) == std::array<double, 2>{5, 6});
  CHECK(percentile_window({}, 0, 1, true)[1] > 0);
  CHECK_THROWS_AS(percentile_window(values, 0.9, 0.1, false), UsageError);
}

}  // namespace
}  // namespace larch::picture
