// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "larch/config/fields.h"

namespace larch::dsa {

/// How the motion between mask and contrast frames is found.
enum class Method : uint8_t {
  kBlock,  ///< a vector per block by histogram block matching: US 2008/0037845
  kFlex,   ///< flexible pixel shift from the result of block matching: ibid., 0104 to 0106
  kShift,  ///< one translation per frame: what is done by hand in the clinic
  kNone,   ///< plain subtraction
};
constexpr auto enum_names(Method*) {
  return std::to_array<EnumName<Method>>({{Method::kBlock, "block"},
                                          {Method::kFlex, "flex"},
                                          {Method::kShift, "shift"},
                                          {Method::kNone, "none"}});
}

/// Similarity of a block at a displacement, from the histogram of differences.
enum class Metric : uint8_t {
  kEhd,      ///< energy of the histogram of differences: ibid., equation 3
  kEntropy,  ///< its entropy, which is minimised: ibid., equation 1
};
constexpr auto enum_names(Metric*) {
  return std::to_array<EnumName<Metric>>({{Metric::kEhd, "ehd"}, {Metric::kEntropy, "entropy"}});
}

/// The dense field beyond the outermost block centres.
enum class BorderField : uint8_t {
  kClamp,   ///< that of the nearest centre
  kZero,    ///< falls to 0 one block further out: US 2008/0037845, 0132
  kLinear,  ///< goes on as between the centres, for one block at most
};
/// Domain of the differences.
enum class Domain : uint8_t { kAuto, kLinear, kLog };
constexpr auto enum_names(Domain*) {
  return std::to_array<EnumName<Domain>>(
      {{Domain::kAuto, "auto"}, {Domain::kLinear, "lin"}, {Domain::kLog, "log"}});
}

/// How vessels look in the output.
enum class Vessels : uint8_t { kDark, kBright };
constexpr auto enum_names(Vessels*) {
  return std::to_array<EnumName<Vessels>>({{Vessels::kDark, "dark"}, {Vessels::kBright, "bright"}});
}

/// Says what is taken from the differences of each frame.
enum class Normalize : uint8_t { kMode, kNone };
constexpr auto enum_names(Normalize*) {
  return std::to_array<EnumName<Normalize>>(
      {{Normalize::kMode, "mode"}, {Normalize::kNone, "none"}});
}

/// Bins of a histogram of differences.
constexpr int kBins = 1024;
/// Displacements are sampled at multiples of 1/kUnit pixel; a tenth of a pixel is 32 of them.
constexpr int32_t kUnit = 320;
/// Vectors are in 2^-16 pixel (Q16) and pull: the mask is read at x + d for the contrast pixel x.
constexpr int kVectorBits = 16;

struct DsaConfig {
  Method method = Method::kBlock;
  bool literal = false;
  Metric metric = Metric::kEhd;
  std::string passes{};
  int range = 10;
  Domain domain = Domain::kAuto;
  Domain stored = Domain::kAuto;
  double log_scale = 1000;
  double dark = 0;
  Normalize normalize = Normalize::kMode;
  Vessels vessels = Vessels::kDark;

  /// The dense field of blocks in pictures is a spline; without it, which is no key, bilinear.
  bool allows_spline = true;

  template <class F>
  void fields(F&& f) {
    f(Field{"method", method, "block, flex (flexible pixel shift), shift (rigid) or none"},
      Field{"literal", literal, "the method of US 2008/0037845 to the letter"},
      Field{"metric", metric, "similarity from the histogram of differences"},
      Field{"passes", passes,
            "block/step of each pass in pixels, such as 64/64,64/32,48/16; empty: 64/64,48/24, in "
            "volumes 16/16, literally 64/64"},
      Field{"range", range, "largest motion in pixels along each axis, beside that of the frame", 2,
            64},
      Field{"domain", domain, "domain of the differences: auto, lin or log"},
      Field{"stored", stored, "what the file holds, where it does not say so: lin or log"},
      Field{"log_scale", log_scale, "grey values per factor e in the log domain", 1, 5000},
      Field{"dark", dark, "value without any radiation: stored, or by the Modality LUT", 0, 65535},
      Field{"normalize", normalize, "mode: the background of each frame becomes 0"},
      Field{"vessels", vessels, "dark or bright in the output"});
  }
};

/// How the dense field goes on: linearly; in volumes, and where frames are moved as a whole, as the
/// outermost vectors; in the literal method with a ring of zeros.
BorderField border_field_of(const DsaConfig& config, bool is_volume);

/// Block and step of a pass, in pixels.
struct Pass {
  int block = 64, step = 64;
};
/// Returns the passes of a configuration over pictures or volumes. The literal method has one.
/// Throws UsageError for a text that does not name them, for blocks below 8 or above 255 pixels,
/// and for steps above a block.
std::vector<Pass> passes_of(const DsaConfig& config, bool is_volume);

}  // namespace larch::dsa
