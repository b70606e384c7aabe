// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/phantom/angiogram.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <string>
#include <utility>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/core/portable_math.h"
#include "larch/phantom/anatomy.h"
#include "larch/phantom/noise_math.h"

namespace larch::phantom {
namespace {

constexpr double kBreath = 24;         // frames
constexpr double kBolusPeak = 6;       // frames from arrival to the peak
constexpr double kBloodSpeed = 60;     // pixels per frame in a picture of 512
constexpr double kCollimated = 0.003;  // share of the photons that pass the collimator
constexpr double kHeadroom = 0.25;     // nepers between the brightest pixel of the mask and white

struct Place {
  double x = 0, y = 0;
};

std::array<MotionWave, 3> draw_waves(const Angiogram& a, uint64_t stream) {
  std::array<MotionWave, 3> waves;
  uint64_t drawn = 0;
  const auto draw = [&] {
    return hash_unit(a.seed, 3000000 + static_cast<uint64_t>(a.number) * 10 + stream, drawn++);
  };
  for (MotionWave& wave : waves) {
    const double turns = draw(), length = a.config.wavelength_px * (1 + draw());
    wave = {cosine_of_turns(turns) / length, sine_of_turns(turns) / length, draw(), draw()};
  }
  return waves;
}

/// The mean of three waves at a place, which lies in [-1, 1] along each axis.
Place wave_at(const std::array<MotionWave, 3>& waves, double x, double y) {
  Place d;
  for (const MotionWave& wave : waves) {
    const double phase = wave.x * x + wave.y * y;
    d.x += sine_of_turns(phase + wave.phase_x) / 3;
    d.y += sine_of_turns(phase + wave.phase_y) / 3;
  }
  return d;
}

/// The motion of one frame.
struct FrameMotion {
  MotionShares shares{};
  double cos = 1, sin = 0;  ///< of the rotation
};
FrameMotion motion_of(const AngiogramConfig& config, int frame) {
  FrameMotion motion{motion_shares(config, frame)};
  const double turns = motion.shares.breathing * config.rotation_deg / 360;
  motion.cos = cosine_of_turns(turns);
  motion.sin = sine_of_turns(turns);
  return motion;
}

/// Where the body that is at (x, y) in a frame was in the mask, less (x, y).
Place displacement(const Angiogram& a, const FrameMotion& motion, double x, double y) {
  const AngiogramConfig& config = a.config;
  const MotionShares& shares = motion.shares;
  Place d;
  if (shares.breathing != 0) {
    const double u = x - 0.5 * (config.size[0] - 1), v = y - 0.5 * (config.size[1] - 1);
    const Place wave = config.amplitude_px > 0 ? wave_at(a.waves, x, y) : Place{};
    d.x = shares.breathing * (config.translation_px[0] + config.amplitude_px * wave.x) +
          (motion.cos * u - motion.sin * v - u);
    d.y = shares.breathing * (config.translation_px[1] + config.amplitude_px * wave.y) +
          (motion.sin * u + motion.cos * v - v);
  }
  if (shares.swallow != 0) {
    const Place wave = wave_at(a.swallow, x, y);
    d.x += shares.swallow * config.amplitude_px * wave.x;
    d.y += shares.swallow * config.amplitude_px * wave.y;
  }
  return d;
}

/// How full of contrast agent a vessel is, `along` pixels from the root: a gamma variate that has
/// its peak of 1 some frames after the blood from the root arrives.
double filling(const AngiogramConfig& config, int frame, double along) {
  if (frame < config.mask_frames) return 0;
  if (config.course == Course::kConstant) return 1;
  const double speed = kBloodSpeed * std::min(config.size[0], config.size[1]) / 512.0;
  const double t = (frame - config.mask_frames + 1 - along / speed) / kBolusPeak;
  return t > 0 ? t * t * t * exp_of(3 - 3 * t) : 0;
}

/// Attenuation by the vessels at a pixel, in nepers.
double vessel_attenuation(const Angiogram& a, const FrameMotion& motion, int frame, double x,
                          double y) {
  if (a.vessels.pieces.empty() || frame < a.config.mask_frames) return 0;
  const Place d = a.config.vessel_motion ? displacement(a, motion, x, y) : Place{};
  const VesselHit hit = meet_vessels(a.vessels, x + d.x, y + d.y);
  if (hit.chord == 0) return 0;
  return a.config.vessel_attenuation * hit.chord * filling(a.config, frame, hit.along);
}

/// Calls body(x, y, pixel) for every pixel.
void for_pixels(const AngiogramConfig& config, int threads,
                const std::function<void(int x, int y, size_t pixel)>& body) {
  const int width = config.size[0];
  parallel_for_each(threads, config.size[1], 8, [&](int64_t y) {
    for (int x = 0; x < width; ++x) {
      body(x, static_cast<int>(y), static_cast<size_t>(y * width + x));
    }
  });
}

size_t pixels_of(const AngiogramConfig& config) {
  return static_cast<size_t>(config.size[0]) * static_cast<size_t>(config.size[1]);
}

/// Photons that are expected at each pixel of a frame.
Plane expected_photons(const Angiogram& a, int frame, int threads) {
  const AngiogramConfig& config = a.config;
  Plane photons{config.size[0], config.size[1], std::vector<double>(pixels_of(config))};
  const FrameMotion motion = motion_of(config, frame);
  for_pixels(config, threads, [&](int x, int y, size_t pixel) {
    const Place d = displacement(a, motion, x, y);
    const double nepers =
        a.anatomy.at(x + d.x, y + d.y) + vessel_attenuation(a, motion, frame, x, y);
    const double primary = config.photons * exp_of(a.mean_attenuation - nepers);
    photons.values[pixel] = (1 - config.scatter) * primary + config.scatter * config.photons;
  });
  if (config.detector_blur_px > 0) blur(photons, config.detector_blur_px, threads);
  const int edge = config.collimator_px;
  if (edge == 0) return photons;
  for_pixels(config, threads, [&](int x, int y, size_t pixel) {
    const bool is_open =
        x >= edge && y >= edge && x < config.size[0] - edge && y < config.size[1] - edge;
    if (!is_open) photons.values[pixel] *= kCollimated;
  });
  return photons;
}

/// Adds the noise of photons and detector.
void add_noise(const Angiogram& a, int frame, int threads, Plane& photons) {
  const AngiogramConfig& config = a.config;
  const uint64_t seed = hash64(a.seed, 4000000 + static_cast<uint64_t>(a.number),
                               static_cast<uint64_t>(config.noise_seed));
  const auto stream = 2 * static_cast<uint64_t>(frame);
  Plane noise = photons;
  for_pixels(config, threads, [&](int, int, size_t pixel) {
    const double mean = photons.values[pixel];
    noise.values[pixel] = draw_poisson(mean, seed, stream, pixel) - mean;
    if (config.electronic > 0) {
      noise.values[pixel] += config.electronic * draw_normal(seed, stream + 1, pixel);
    }
  });
  double strength = 1;
  if (config.noise_blur_px > 0) {
    strength /= std::sqrt(blur(noise, config.noise_blur_px, threads));
  }
  for (size_t pixel = 0; pixel < noise.values.size(); ++pixel) {
    photons.values[pixel] += strength * noise.values[pixel];
  }
}

int margin_of(const AngiogramConfig& config) {
  const double turn =
      std::fabs(config.rotation_deg) / 57 * std::max(config.size[0], config.size[1]);
  const double most =
      std::max(std::fabs(config.translation_px[0]), std::fabs(config.translation_px[1]));
  return 4 + static_cast<int>(std::ceil(most + 2 * config.amplitude_px + turn));
}

/// Means and extremes of the mask: the body at rest.
void measure_mask(Angiogram& a, int threads) {
  const AngiogramConfig& config = a.config;
  std::vector<double> nepers(pixels_of(config));
  for_pixels(config, threads,
             [&](int x, int y, size_t pixel) { nepers[pixel] = a.anatomy.at(x, y); });
  double sum = 0, least = nepers.front();
  for (const double value : nepers) {
    sum += value;
    least = std::min(least, value);
  }
  a.mean_attenuation = sum / static_cast<double>(nepers.size());
  a.most_photons = (1 - config.scatter) * config.photons * exp_of(a.mean_attenuation - least) +
                   config.scatter * config.photons;
}

Angiogram with_body(const AngiogramConfig& config, uint64_t seed, int number, SplineImage body,
                    int threads) {
  Angiogram a{config, seed, number, std::move(body), {}, {}, {}, 0, 0};
  a.vessels = grow_vessels(config.size[0], config.size[1], config.vessels, config.vessel_radius_px,
                           seed, number);
  a.waves = draw_waves(a, 0);
  a.swallow = draw_waves(a, 1);
  measure_mask(a, threads);
  return a;
}

}  // namespace

void check(const AngiogramConfig& config) {
  if (config.frames <= config.mask_frames) {
    throw UsageError("angiography.frames: " + std::to_string(config.frames) + ", of which " +
                     std::to_string(config.mask_frames) +
                     " are of the mask; give at least one more");
  }
  if (2 * config.collimator_px >= std::min(config.size[0], config.size[1])) {
    throw UsageError("angiography.collimator_px: " + std::to_string(config.collimator_px) +
                     " leaves nothing of the picture; give less than half of its shorter side");
  }
}

MotionShares motion_shares(const AngiogramConfig& config, int frame) {
  const int after = frame - config.mask_frames;
  if (after < 0) return {};
  if (config.course == Course::kConstant) return {1, 0};
  const int swallow = 2 * (config.frames - config.mask_frames) / 3;
  return {sine_of_turns((after + 1) / kBreath), after >= swallow && swallow > 0 ? 0.5 : 0.0};
}

Angiogram make_angiogram(const AngiogramConfig& config, uint64_t seed, int number, int threads) {
  check(config);
  return with_body(config, seed, number,
                   make_anatomy(config.size[0], config.size[1], margin_of(config), config.contrast,
                                seed, number, threads),
                   threads);
}

Angiogram make_angiogram(const AngiogramConfig& config, Plane nepers, uint64_t seed, int number,
                         int threads) {
  check(config);
  if (nepers.width != config.size[0] || nepers.height != config.size[1]) {
    throw UsageError("angiography.size: " + std::to_string(config.size[0]) + "x" +
                     std::to_string(config.size[1]) + ", but the picture has " +
                     std::to_string(nepers.width) + "x" + std::to_string(nepers.height) +
                     " pixels");
  }
  for (double& value : nepers.values) value *= config.contrast;
  return with_body(config, seed, number, body_of_picture(nepers, margin_of(config), threads),
                   threads);
}

std::vector<uint16_t> stored_frame(const Angiogram& a, int frame, int threads) {
  const AngiogramConfig& config = a.config;
  Plane photons = expected_photons(a, frame, threads);
  add_noise(a, frame, threads, photons);
  const double white = (1 << config.bits) - 1;
  const double top = log_of(a.most_photons) + kHeadroom;
  const double scale = config.log_scale * (1 << config.bits) / 4096.0;
  const double gain = white / (a.most_photons * exp_of(kHeadroom));
  std::vector<uint16_t> stored(photons.values.size());
  for_pixels(config, threads, [&](int, int, size_t pixel) {
    const double seen = photons.values[pixel];
    const double value = config.stored == Stored::kLinear
                             ? gain * seen
                             : white + scale * (log_of(std::max(seen, 1.0)) - top);
    stored[pixel] = static_cast<uint16_t>(std::nearbyint(std::clamp(value, 0.0, white)));
  });
  return stored;
}

std::vector<Vec3f> true_field_px(const Angiogram& a, int frame, int threads) {
  std::vector<Vec3f> field(pixels_of(a.config));
  const FrameMotion motion = motion_of(a.config, frame);
  for_pixels(a.config, threads, [&](int x, int y, size_t pixel) {
    const Place d = displacement(a, motion, x, y);
    field[pixel] = {static_cast<float>(d.x), static_cast<float>(d.y), 0};
  });
  return field;
}

std::vector<uint8_t> vessel_labels(const Angiogram& a, int frame, double least, int threads) {
  std::vector<uint8_t> labels(pixels_of(a.config));
  const FrameMotion motion = motion_of(a.config, frame);
  for_pixels(a.config, threads, [&](int x, int y, size_t pixel) {
    labels[pixel] = vessel_attenuation(a, motion, frame, x, y) > least ? 1 : 0;
  });
  return labels;
}

}  // namespace larch::phantom
