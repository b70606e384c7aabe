// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "larch/config/fields.h"
#include "larch/data/mesh.h"
#include "larch/phantom/anatomy.h"

namespace larch::phantom {

/// How motion and contrast agent go on after the mask frames.
enum class Course : uint8_t {
  kBreathing,  ///< motion swings, with a swallow at two thirds; a bolus passes through the vessels
  kConstant,   ///< whole motion and filled vessels in each frame
};
constexpr auto enum_names(Course*) {
  return std::to_array<EnumName<Course>>(
      {{Course::kBreathing, "breathing"}, {Course::kConstant, "constant"}});
}

/// Says what stored values are proportional to.
enum class Stored : uint8_t { kLinear, kLog };
constexpr auto enum_names(Stored*) {
  return std::to_array<EnumName<Stored>>({{Stored::kLinear, "lin"}, {Stored::kLog, "log"}});
}

struct AngiogramConfig {
  std::array<int, 2> size{512, 512};
  int frames = 20;
  int mask_frames = 4;
  double spacing_mm = 0.3;
  double frame_ms = 250;
  int noise_seed = 0;
  double contrast = 1;
  double photons = 10000;
  double electronic = 3;
  double scatter = 0;
  double detector_blur_px = 0;
  double noise_blur_px = 0;
  int collimator_px = 0;
  Course course = Course::kBreathing;
  std::array<double, 2> translation_px{0, 0};
  double rotation_deg = 0;
  double amplitude_px = 1.5;
  double wavelength_px = 384;
  int vessels = 2;
  double vessel_radius_px = 6;
  double vessel_attenuation = 0.035;
  bool vessel_motion = false;
  Stored stored = Stored::kLog;
  int bits = 12;
  double log_scale = 800;
  template <class F>
  void fields(F&& f) {
    f(Field{"size", size, "columns and rows", 16, 4096},
      Field{"frames", frames, "number of frames, those of the mask included", 1, 100000},
      Field{"mask_frames", mask_frames, "frames at rest before the contrast agent", 1, 100000},
      Field{"spacing_mm", spacing_mm, "side of a pixel at the detector", 0.01, 10},
      Field{"frame_ms", frame_ms, "time from frame to frame", 1, 100000},
      Field{"noise_seed", noise_seed, "other noise over the same anatomy and motion", 0,
            1000000000},
      Field{"contrast", contrast, "factor of all structure; 0: none, noise alone", 0, 4},
      Field{"photons", photons, "mean number of photons at a pixel", 10, 1e7},
      Field{"electronic", electronic, "standard deviation of the detector's noise in photons", 0,
            1000},
      Field{"scatter", scatter, "share of the photons that make a veil", 0, 0.9},
      Field{"detector_blur_px", detector_blur_px, "Gaussian over the photons, before the noise", 0,
            5},
      Field{"noise_blur_px", noise_blur_px, "Gaussian that correlates the noise, of equal strength",
            0, 5},
      Field{"collimator_px", collimator_px, "dark border", 0, 2048},
      Field{"course", course, "of motion and contrast agent: breathing, or constant"},
      Field{"translation_px", translation_px, "motion along x and y", -64, 64},
      Field{"rotation_deg", rotation_deg, "motion about the middle", -10, 10},
      Field{"amplitude_px", amplitude_px, "smooth motion: largest component", 0, 32},
      Field{"wavelength_px", wavelength_px, "smooth motion: shortest wave", 64, 100000},
      Field{"vessels", vessels, "number of vessel trees", 0, 16},
      Field{"vessel_radius_px", vessel_radius_px, "at the root", 0.8, 40},
      Field{"vessel_attenuation", vessel_attenuation, "nepers per pixel of filled vessel", 0, 1},
      Field{"vessel_motion", vessel_motion, "vessels move with the tissue around them"},
      Field{"stored", stored, "stored values: log or lin of the photons"},
      Field{"bits", bits, "of a stored value", 8, 16},
      Field{"log_scale", log_scale, "grey values per factor e, if 12 bits are stored", 1, 5000});
  }
};

/// Throws UsageError if no frame is left after those of the mask, or the collimator leaves nothing.
void check(const AngiogramConfig& config);

/// A wave of the smooth motion: direction and length as turns per pixel, phases of both components
/// in turns.
struct MotionWave {
  double x = 0, y = 0, phase_x = 0, phase_y = 0;
};

/// All that the frames of a sequence have in common.
struct Angiogram {
  AngiogramConfig config{};
  uint64_t seed = 0;
  int number = 0;
  SplineImage anatomy{};
  VesselTree vessels{};
  std::array<MotionWave, 3> waves{};    ///< of the breathing
  std::array<MotionWave, 3> swallow{};  ///< of the swallow
  double mean_attenuation = 0;          ///< of the mask, nepers
  double most_photons = 0;              ///< expected at a pixel of the mask
};

/// Returns an X-ray sequence of a procedural body with true motion: mask frames at rest, then
/// frames with contrast agent in vessels, over a body that moves. Throws UsageError as check()
/// does.
///
/// Every value depends on (seed, number, noise seed, frame, pixel) alone and is computed without
/// functions that differ between mathematical libraries: the same values for any number of threads,
/// on any machine.
Angiogram make_angiogram(const AngiogramConfig& config, uint64_t seed, int number, int threads);

/// Returns the same with the body of an X-ray picture, whose attenuation in nepers may have any
/// offset. Throws UsageError if its size is not config.size.
Angiogram make_angiogram(const AngiogramConfig& config, Plane nepers, uint64_t seed, int number,
                         int threads);

/// Shares of the whole motion in a frame, counted from 0: that of the breathing, translation and
/// rotation, and that of the swallow.
struct MotionShares {
  double breathing = 0, swallow = 0;
};
MotionShares motion_shares(const AngiogramConfig& config, int frame);

/// Returns the stored values of a frame, counted from 0, columns first. Contrast agent lowers them.
std::vector<uint16_t> stored_frame(const Angiogram& angiogram, int frame, int threads);

/// Returns the true motion of a frame in pixels, which pulls: the body that is at x in this frame
/// is at x + d(x) in the mask. By pixel, columns first; z is 0.
std::vector<Vec3f> true_field_px(const Angiogram& angiogram, int frame, int threads);

/// 1 where the vessels attenuate by more than `least` nepers in a frame, else 0.
std::vector<uint8_t> vessel_labels(const Angiogram& angiogram, int frame, double least,
                                   int threads);

}  // namespace larch::phantom
