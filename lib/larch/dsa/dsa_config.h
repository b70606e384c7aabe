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

/// Order in which whole-pixel displacements are tried.
enum class Search : uint8_t {
  kFull,  ///< all of the window, which shows how well a block knows its motion
  kCds,   ///< conjugate directions, one axis after the other: Srinivasan and Rao 1985
};
constexpr auto enum_names(Search*) {
  return std::to_array<EnumName<Search>>({{Search::kFull, "full"}, {Search::kCds, "cds"}});
}

/// How the mask is sampled between pixels during the search.
enum class SubPixel : uint8_t {
  kGain,    ///< three taps whose noise gain is the same at every fraction
  kLinear,  ///< linear interpolation of the mask alone: the patent's, biased to half pixels
  kNone,    ///< whole pixels only
};
constexpr auto enum_names(SubPixel*) {
  return std::to_array<EnumName<SubPixel>>(
      {{SubPixel::kGain, "gain"}, {SubPixel::kLinear, "linear"}, {SubPixel::kNone, "none"}});
}

/// How the displacements at tenths of a pixel are searched.
enum class SubSearch : uint8_t {
  kFit,   ///< all 11 x 11, and the top of a quadratic fitted to their scores
  kCds,   ///< conjugate directions
  kFast,  ///< conjugate directions, then a quadratic through 5 x 5 at steps of 0.2
};
constexpr auto enum_names(SubSearch*) {
  return std::to_array<EnumName<SubSearch>>(
      {{SubSearch::kFit, "fit"}, {SubSearch::kCds, "cds"}, {SubSearch::kFast, "fast"}});
}

/// What becomes of differences beyond the bins.
enum class Overflow : uint8_t {
  kWrap,     ///< counted modulo the number of bins: spread as thinly as they are
  kDiscard,  ///< not counted
  kClamp,    ///< counted in the outermost bins, which then attract
};
constexpr auto enum_names(Overflow*) {
  return std::to_array<EnumName<Overflow>>(
      {{Overflow::kWrap, "wrap"}, {Overflow::kDiscard, "discard"}, {Overflow::kClamp, "clamp"}});
}

/// Mask pixels outside of the image during the search.
enum class Border : uint8_t {
  kValid,  ///< not counted
  kClamp,  ///< those of the edge
};
constexpr auto enum_names(Border*) {
  return std::to_array<EnumName<Border>>({{Border::kValid, "valid"}, {Border::kClamp, "clamp"}});
}

/// The dense field beyond the outermost block centres.
enum class BorderField : uint8_t {
  kClamp,   ///< that of the nearest centre
  kZero,    ///< falls to 0 one block further out: US 2008/0037845, 0132
  kLinear,  ///< goes on as between the centres, for one block at most
};
constexpr auto enum_names(BorderField*) {
  return std::to_array<EnumName<BorderField>>({{BorderField::kClamp, "clamp"},
                                               {BorderField::kZero, "zero"},
                                               {BorderField::kLinear, "linear"}});
}

/// The dense field between the vectors of blocks.
enum class DenseField : uint8_t {
  kBilinear,  ///< US 2008/0037845, 0080
  kSpline,    ///< cubic B-spline through the vectors
};

/// How the mask is sampled for the output.
enum class Warp : uint8_t {
  kCubic,   ///< Catmull-Rom
  kLinear,  ///< with noise that depends on the fraction
};
constexpr auto enum_names(Warp*) {
  return std::to_array<EnumName<Warp>>({{Warp::kCubic, "cubic"}, {Warp::kLinear, "linear"}});
}

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

/// What is taken from the differences of each frame.
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

  // How blocks are searched and what becomes of their vectors. These are not keys: they have the
  // best values, and other ones in volumes and in the literal method (searched_config).
  Search search = Search::kFull;
  int rounds = 4;  ///< of conjugate directions, at most
  SubPixel subpixel = SubPixel::kGain;
  SubSearch subsearch = SubSearch::kFit;
  double bin_width = 0;  ///< grey values; 0: from the noise of each frame
  Overflow overflow = Overflow::kWrap;
  Border border = Border::kValid;
  bool starts_at_shift = true;  ///< the window is around the best shift of the frame, not around 0
  BorderField border_field = BorderField::kLinear;
  DenseField dense_field = DenseField::kSpline;
  Warp warp = Warp::kCubic;

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

/// The configuration with what is not a key as the method asks for it.
///
/// Volumes have a bilinear field, which ends with its outermost vectors. The literal method is the
/// patent's: one round of conjugate directions from zero, bins of one grey value, clamped, pixels
/// of the edge beyond the image (as textures have them), linear sampling, a bilinear field with a
/// ring of zeros around it, vectors judged by ratio and angle. Of what the patent does not speak
/// of, bins around the median of a block's differences, pixels that do not count and the mode that
/// is taken off stay.
DsaConfig searched_config(DsaConfig config, bool is_volume);

/// Block and step of a pass, in pixels.
struct Pass {
  int block = 64, step = 64;
};
/// The passes of a configuration over pictures or volumes. The literal method has one. Throws
/// UsageError for a text that does
/// not name them, for blocks below 8 or above 255 pixels, and for steps above a block.
std::vector<Pass> passes_of(const DsaConfig& config, bool is_volume);

}  // namespace larch::dsa
