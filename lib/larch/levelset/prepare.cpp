// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <atomic>
#include <cmath>
#include <span>
#include <string>
#include <tuple>

#include "larch/core/error.h"
#include "larch/core/parallel.h"
#include "larch/levelset/initial/first_surfaces.h"
#include "larch/levelset/initial/spheres.h"
#include "larch/levelset/segment.h"
#include "larch/levelset/speed/data_speed.h"
#include "larch/levelset/speed/edges.h"
#include "larch/levelset/step/time_step.h"

namespace larch::levelset {
namespace {

void check_request(const SegmentRequest& request) {
  const Grid& grid = request.image.grid();
  if (request.image.empty()) throw InputError("the image has no voxels");
  const auto check = [&](const auto& volume, const char* what) {
    if (!volume.empty()) require_on_grid(what, volume.grid(), "the image", grid);
  };
  check(request.initial_labels, "the labelmap to start from");
  for (const InitialPhi& phi : request.initial_phi) {
    require_on_grid("the level-set function to start from", phi.phi_mm.grid(), "the image", grid);
  }
  check(request.speed, "the speed image");
  check(request.mask, "the mask");
  check(request.frozen, "the labelmap that is frozen");
  const LevelsetConfig& config = request.config;
  if (config.lower && config.upper && !(*config.lower < *config.upper)) {
    throw UsageError("levelset.lower " + number(*config.lower) + " is not below levelset.upper " +
                     number(*config.upper));
  }
  for (const LabelWindow& window : request.windows) {
    const auto same = std::ranges::count(request.windows, window.label, &LabelWindow::label);
    if (same > 1) {
      throw UsageError("there are " + std::to_string(same) + " windows of label " +
                       std::to_string(window.label) + "; give one");
    }
    if (!(window.lower < window.upper)) {
      throw UsageError("window of label " + std::to_string(window.label) + ": its lower end " +
                       number(window.lower) + " is not below its upper end " +
                       number(window.upper));
    }
  }
}

/// Tells whether the window of a label comes from its seeds.
bool is_automatic(const SegmentRequest& request, int32_t label) {
  const bool is_given = std::ranges::count(request.windows, label, &LabelWindow::label) > 0;
  return !is_given && !(request.config.lower && request.config.upper);
}

Window window_of(const SegmentRequest& request, int32_t label, const SeedIntensities& seed) {
  for (const LabelWindow& window : request.windows) {
    if (window.label == label) return {window.lower, window.upper, false};
  }
  const auto& [lower, upper] = std::tie(request.config.lower, request.config.upper);
  if (lower && upper) return {*lower, *upper, false};
  Window window = automatic_window(seed);
  if (lower || upper) {
    const double half = lower ? seed.middle - *lower : *upper - seed.middle;
    if (!(half > 0)) {
      throw UsageError(std::string("levelset.") + (lower ? "lower " : "upper ") +
                       number(lower ? *lower : *upper) + " is not " + (lower ? "below" : "above") +
                       " the median intensity of the seeds, " + number(seed.middle) +
                       "; give both ends, or seeds in the structure");
    }
    window = {seed.middle - half, seed.middle + half, true};
  }
  return window;
}

/// The voxels in each ball of the background.
using Background = std::vector<std::vector<int64_t>>;

Background background_of(const SegmentRequest& request, int threads) {
  const Grid& grid = request.image.grid();
  Background background;
  for (const Sphere& sphere : request.background) {
    background.emplace_back();
    const std::string name = "background " + std::to_string(background.size());
    const Ball ball = ball_of(sphere, grid, name);
    const Volume<float> distance_mm =
        distance_to_balls({&ball, 1}, grid, grid.spacing_mm.x, threads);
    for (int64_t i = 0; i < grid.voxels(); ++i) {
      if (distance_mm[i] < 0) background.back().push_back(i);
    }
  }
  return background;
}

/// Marks the voxels that a label never takes. The volume is empty if there are none.
Volume<uint8_t> pinned_voxels(const SegmentRequest& request, const Background& background,
                              const Volume<float>& reach_mm) {
  const double limit_mm = request.config.max_distance_mm;
  if (request.mask.empty() && request.frozen.empty() && background.empty() && !(limit_mm > 0)) {
    return {};
  }
  Volume<uint8_t> pinned(request.image.grid());
  for (int64_t i = 0; i < pinned.voxels(); ++i) {
    const bool is_pinned = (!request.mask.empty() && request.mask[i] == 0) ||
                           (!request.frozen.empty() && request.frozen[i] != 0) ||
                           (limit_mm > 0 && static_cast<double>(reach_mm[i]) > limit_mm);
    pinned[i] = is_pinned ? 1 : 0;
  }
  for (const std::vector<int64_t>& voxels : background) {
    for (const int64_t i : voxels) pinned[i] = 1;
  }
  return pinned;
}

/// Returns what D is made of: the speed image where there is one, or the intensities.
const Volume<float>& speed_values(const SegmentRequest& request) {
  return request.speed.empty() ? request.image : request.speed;
}

SpeedRule speed_rule(const SegmentRun& run, size_t f) {
  return {run.resolved.labels[f].window.value_or(Window{}), !run.request->speed.empty(),
          run.resolved.speed_scale};
}

/// Returns the voxels for which D has no number.
int64_t count_without_number(const Volume<float>& values, int threads) {
  std::atomic<int64_t> count{0};
  parallel_for(threads, values.voxels(), int64_t{1} << 14, [&](int64_t begin, int64_t end) {
    int64_t here = 0;
    for (int64_t i = begin; i < end; ++i) here += is_finite(values[i]) ? 0 : 1;
    count += here;
  });
  return count;
}

/// Statistics of the voxels in the first surface.
void describe_seed(SegmentRun& run, size_t f, const Volume<float>& phi, int threads) {
  const Volume<float>&image = run.request->image, &values = speed_values(*run.request);
  const SpeedRule rule = speed_rule(run, f);
  const auto is_outwards = [&](int64_t i) {
    return (rule.is_given ? stored_data_speed<true>(rule, values[i])
                          : stored_data_speed<false>(rule, values[i])) > 0;
  };
  struct Slice {
    double sum = 0;
    int64_t inside = 0, finite = 0, good = 0;
  };
  const Vec3i size = phi.size();
  std::vector<Slice> slices(static_cast<size_t>(size.z));
  const int64_t in_slice = int64_t{size.x} * size.y;
  parallel_for(threads, size.z, 1, [&](int64_t begin, int64_t end) {
    for (int64_t i = begin * in_slice; i < end * in_slice; ++i) {
      if (!(phi[i] < 0)) continue;
      Slice& slice = slices[static_cast<size_t>(i / in_slice)];
      ++slice.inside;
      if (std::isfinite(image[i])) slice.sum += static_cast<double>(image[i]), ++slice.finite;
      slice.good += is_outwards(i) ? 1 : 0;
    }
  });
  // In the order of slices, so that the mean does not depend on the number of threads.
  Slice all;
  for (const Slice& slice : slices) {
    all.sum += slice.sum;
    all.inside += slice.inside, all.finite += slice.finite, all.good += slice.good;
  }
  ResolvedLabel& label = run.resolved.labels[f];
  label.seed_voxels = all.inside;
  label.seed_not_a_number = all.inside - all.finite;
  if (all.finite > 0) label.seed_mean = all.sum / static_cast<double>(all.finite);
  if (label.seed_voxels > 0) {
    label.seed_fraction = static_cast<double>(all.good) / static_cast<double>(all.inside);
  }
}

void warn_of_seed(SegmentRun& run, const ResolvedLabel& label) {
  const std::string name = "label " + std::to_string(label.label) + ": ";
  if (label.seed_voxels == 0) {
    run.warnings.push_back(name +
                           "nothing is left to start from, so it stays empty; see what mask, "
                           "frozen labels and max_distance_mm leave");
  } else if (label.seed_fraction < 0.5) {
    std::string text = name + "only " + number(100 * label.seed_fraction) +
                       " % of what it starts from moves outwards (mean intensity " +
                       number(label.seed_mean);
    if (label.seed_not_a_number > 0) {
      text += ", " + std::to_string(label.seed_not_a_number) + " voxels that are not a number";
    }
    if (label.window) {
      text += ", window " + number(label.window->lower) + " to " + number(label.window->upper);
    }
    run.warnings.push_back(text + "); put the seeds into the structure or choose another window");
  }
}

/// The smallest balls against the curvature, which pulls with a * 2 / r, or a / r in an image of
/// one slice.
void warn_of_small_balls(SegmentRun& run) {
  const SegmentRequest& request = *run.request;
  const double a = request.config.curvature_weight, unit_mm = run.resolved.unit_mm;
  int axes = 0;
  for (int axis = 0; axis < 3; ++axis) axes += request.image.size()[axis] > 1 ? 1 : 0;
  for (size_t s = 0; s < request.spheres.size(); ++s) {
    const Sphere& sphere = request.spheres[s];
    const double voxels = sphere.is_index ? sphere.radius : sphere.radius / unit_mm;
    const std::string name = "seed " + std::to_string(s + 1) + ": ";
    if ((axes - 1) * a / voxels > 1 - a) {
      run.warnings.push_back(name + "a ball of radius " + number(voxels) +
                             " voxels vanishes at this curvature_weight; take a larger one");
    } else if (voxels < 2) {
      run.warnings.push_back(name + "its radius is " + number(voxels) +
                             " voxels; below two the ball is hardly one");
    }
  }
}

/// Along an axis of long voxels the snap holds slow fronts back: see slowest_front.
void warn_of_long_voxels(SegmentRun& run) {
  const SegmentRequest& request = *run.request;
  const Grid& grid = request.image.grid();
  const double fastest = (1 - request.config.curvature_weight) * run.resolved.bounds.data;
  for (int axis = 0; axis < 3; ++axis) {
    if (grid.size[axis] == 1 || !(fastest > 0)) continue;
    const double times = grid.spacing_mm[axis] / run.resolved.unit_mm;
    const double part = slowest_front(run.resolved.time_step, times) / fastest;
    if (times < 2 || part < 0.1) continue;
    run.warnings.push_back("voxels are " + number(times) + " times as long along " + "xyz"[axis] +
                           " as along the shortest axis: where D is below " + number(part) +
                           " the surface does not get from one to the next; resample the "
                           "image");
  }
}

/// Pins what the limits forbid, and lets the front of arrival times run.
void finish_surface(const SegmentRequest& request, const Volume<uint8_t>& pinned,
                    const Volume<int16_t>& speed, double most_mm, int threads,
                    Volume<float>& phi_mm) {
  const auto pin = [&] {
    for (int64_t i = 0; i < pinned.voxels(); ++i) {
      if (pinned[i] != 0) phi_mm[i] = static_cast<float>(most_mm);
    }
  };
  pin();
  if (!(request.arrival_mm > 0)) return;
  const Volume<float> times = arrival_times(phi_mm, speed, request.arrival_mm);
  const auto reached = mapped<uint8_t>(times, [](float time) { return std::isfinite(time); });
  phi_mm = distance_to_faces(reached, most_mm, threads);
  pin();
}

void resolve_numbers(SegmentRun& run, const Step& step) {
  const SegmentRequest& request = *run.request;
  const Grid& grid = request.image.grid();
  Resolved& resolved = run.resolved;
  resolved.time_step = static_cast<double>(step.time);
  resolved.largest_stable_step =
      largest_stable_step(request.config, resolved.bounds, grid.spacing_mm, grid.size);
  const LevelsetConfig& config = request.config;
  resolved.slowest_front = slowest_front(resolved.time_step, 1);
  if (config.max_volume_ml > 0) {
    const double voxels = 1000 * config.max_volume_ml / grid.voxel_volume_mm3();
    resolved.most_voxels = static_cast<int64_t>(std::clamp(voxels, 1.0, 9e18));
  }
  run.job.tracker = config.tracker;
  run.job.stops = {config.max_iterations, config.unchanged_labels, resolved.most_voxels};
}

/// The scale of a speed image, and the bounds that follow from it.
void resolve_speed_image(SegmentRun& run) {
  const Volume<float>& speed = run.request->speed;
  if (speed.empty()) return;
  float largest = 0;
  bool is_finite = true;
  for (const float value : speed) {
    if (std::isfinite(value)) {
      largest = std::max(largest, std::abs(value));
    } else {
      is_finite = false;
    }
  }
  if (largest > 1) {
    run.resolved.speed_scale = static_cast<double>(largest);
    run.warnings.push_back("the speed image reaches " + number(run.resolved.speed_scale) +
                           ", and was divided by it: speeds are from -1 to 1");
    return;
  }
  if (largest > 0 && largest < 0.01F) {
    run.warnings.push_back("the speed image reaches only " + number(static_cast<double>(largest)) +
                           ", and speeds are stored in steps of " + number(1.0 / kSpeedOne) +
                           "; multiply it by a number that makes its largest speed about 1");
  }
  // A voxel without a speed moves inwards at 1.
  if (is_finite) {
    run.resolved.bounds.data =
        static_cast<double>(stored_speed(static_cast<double>(largest))) / kSpeedOne;
  }
}

Edges resolve_edges(SegmentRun& run, int threads) {
  const LevelsetConfig& config = run.request->config;
  if (config.advection_weight == 0) return {};
  Edges edges = find_edges(run.request->image, config.edge_scale_mm, config.edge_contrast,
                           run.resolved.unit_mm, threads);
  run.resolved.edge_contrast = edges.contrast;
  run.resolved.bounds.advection = edges.largest_advection;
  return edges;
}

/// Returns up to which distance from the first surfaces windows and limits look.
double reach_mm(const SegmentRequest& request) {
  const LevelsetConfig& config = request.config;
  double reach = config.max_distance_mm > 0 ? config.max_distance_mm * 1.001 + 1 : 0;
  if (request.speed.empty() && !(config.lower && config.upper)) {
    reach = std::max(reach, kWindowReachMm * 1.001 + 1);
  }
  return reach;
}

/// The window of a label, unless a speed image is given.
void resolve_window(SegmentRun& run, const FirstSurface& surface, const Background& background,
                    int threads) {
  const SegmentRequest& request = *run.request;
  run.resolved.labels.push_back({.label = surface.label});
  if (!request.speed.empty()) return;
  SeedIntensities seed;
  const bool is_from_seed = is_automatic(request, surface.label);
  if (is_from_seed) seed = seed_intensities(request.image, surface.reach_mm, threads);
  if (is_from_seed && seed.voxels == 0) {
    throw InputError("label " + std::to_string(surface.label) +
                     ": no voxel of its seeds has a number, so that its window cannot be found; "
                     "put the seeds elsewhere, or give lower and upper");
  }
  for (const std::vector<int64_t>& voxels : background) leave_out(seed, request.image, voxels);
  run.resolved.labels.back().window = window_of(request, surface.label, seed);
  if (!is_from_seed || (seed.contrast > 0 && seed.contrast >= 2 * seed.noise)) return;
  const std::string found = seed.contrast > 0
                                ? "differ by " + number(seed.contrast) +
                                      ", less than twice the noise (" + number(seed.noise) + ")"
                                : "have no border";
  run.warnings.push_back("label " + std::to_string(surface.label) +
                         ": the structure and what is around it " + found +
                         ", so the window is a guess; give lower and upper, or --smooth-mm");
}

/// Warns of windows that are not used and of axes that are not at right angles.
void warn_of_request(SegmentRun& run, const std::vector<FirstSurface>& surfaces) {
  const SegmentRequest& request = *run.request;
  for (const LabelWindow& window : request.windows) {
    if (std::ranges::count(surfaces, window.label, &FirstSurface::label) > 0) continue;
    run.warnings.push_back("window of label " + std::to_string(window.label) +
                           ": nothing starts from this label, so the window is not used; give "
                           "the label a seed, or the window of another label");
  }
  const Grid& grid = request.image.grid();
  double largest = 0;
  for (int a = 0; a < 3; ++a) {
    for (int b = a + 1; b < 3; ++b) {
      if (grid.size[a] == 1 || grid.size[b] == 1) continue;
      const double cosine = dot(grid.direction.column(a), grid.direction.column(b));
      largest = std::max(largest, std::abs(cosine));
    }
  }
  constexpr double kTolerance = 1e-3;
  if (largest > kTolerance) {
    run.warnings.push_back(
        "axes of the image are off the right angle by " +
        number(std::asin(std::min(largest, 1.0)) * 180 / M_PI) +
        " degrees, and lengths are measured as if they were not; resample it to upright axes");
  }
}

/// Lengths in units of the smallest spacing.
void divide(Volume<float>& lengths_mm, double unit_mm, int threads) {
  const auto unit = static_cast<float>(unit_mm);
  if (unit == 1) return;
  parallel_for_each(threads, lengths_mm.voxels(), int64_t{1} << 16,
                    [&](int64_t i) { lengths_mm[i] /= unit; });
}

/// Makes D of a field. `values`: speed_values on the device of the context.
void make_speed(SegmentRun& run, size_t f, const float* values, const Volume<uint8_t>& pinned,
                const Context& context) {
  LevelsetField& field = run.job.fields[f];
  const Buffer<uint8_t> placed(context.device,
                               std::span(pinned.data(), static_cast<size_t>(pinned.voxels())));
  field.speed = Buffer<int16_t>(context.device, static_cast<size_t>(field.layout.stored_voxels()));
  make_data_speed(
      {field.layout, speed_rule(run, f), values, placed.empty() ? nullptr : placed.data()},
      field.speed.data(), context);
}

/// Makes the field of a label, but for its phi, from its first surface, which it finishes in units
/// of the smallest spacing.
void add_field(SegmentRun& run, FirstSurface& surface, const Step& step, const float* values,
               const Background& background, const Context& context) {
  const SegmentRequest& request = *run.request;
  Resolved& resolved = run.resolved;
  const size_t f = run.job.fields.size();
  resolve_window(run, surface, background, context.threads);
  LevelsetField& field = run.job.fields.emplace_back();
  field.layout = make_brick_layout(request.image.size());
  field.step = step;
  const Volume<uint8_t> pinned = pinned_voxels(request, background, surface.reach_mm);
  surface.reach_mm = {};
  resolved.pinned_voxels =
      std::max<int64_t>(resolved.pinned_voxels, std::count(pinned.begin(), pinned.end(), 1));
  make_speed(run, f, values, pinned, context);
  Volume<int16_t> speed;
  if (request.arrival_mm > 0) {
    speed = stored_volume(field, field.speed, request.image.grid(), context);
  }
  finish_surface(request, pinned, speed, kClamp * resolved.unit_mm, context.threads,
                 surface.phi_mm);
  divide(surface.phi_mm, resolved.unit_mm, context.threads);
  describe_seed(run, f, surface.phi_mm, context.threads);
  warn_of_seed(run, resolved.labels[f]);
}

/// Makes the fields, each from its first surface. On a CUDA device phi takes the place of what D
/// was made of.
void add_fields(SegmentRun& run, std::vector<FirstSurface>& surfaces, const Step& step,
                const Edges& edges, const Context& context) {
  const SegmentRequest& request = *run.request;
  const Background background = background_of(request, context.threads);
  {
    const Volume<float>& values = speed_values(request);
    Buffer<float> copy;
    if (context.device.is_cuda()) {
      copy = Buffer<float>(context.device,
                           std::span(values.data(), static_cast<size_t>(values.voxels())));
    }
    const float* placed = copy.empty() ? values.data() : copy.data();
    for (FirstSurface& surface : surfaces) {
      add_field(run, surface, step, placed, background, context);
    }
  }
  for (size_t f = 0; f < surfaces.size(); ++f) {
    LevelsetField& field = run.job.fields[f];
    for (size_t axis = 0; axis < 3 && request.config.advection_weight > 0; ++axis) {
      field.advection[axis] = by_brick(edges.advection[axis], context);
    }
    set_phi(field, surfaces[f].phi_mm, context);
    surfaces[f] = {};
  }
}

}  // namespace

SegmentRun start_segmentation(const SegmentRequest& request, const Context& context) {
  check_request(request);
  SegmentRun run;
  run.request = &request;
  const Grid& grid = request.image.grid();
  Resolved& resolved = run.resolved;
  resolved.unit_mm = smallest_spacing_mm(grid.spacing_mm, grid.size);
  resolved.voxels_not_a_number = count_without_number(speed_values(request), context.threads);
  std::vector<FirstSurface> surfaces =
      first_surfaces(request, kClamp * resolved.unit_mm, reach_mm(request), context.threads);
  warn_of_request(run, surfaces);
  resolve_speed_image(run);
  const Edges edges = resolve_edges(run, context.threads);
  const Step step = make_step(request.config, resolved.bounds, grid.spacing_mm, grid.size);
  resolve_numbers(run, step);
  add_fields(run, surfaces, step, edges, context);
  run.job.history.resize(run.job.fields.size());
  const bool is_any = std::ranges::any_of(resolved.labels,
                                          [](const ResolvedLabel& l) { return l.seed_voxels > 0; });
  if (!is_any) {
    throw InputError(
        "nothing is left to start from: mask, frozen labels or max_distance_mm take all "
        "voxels of the first surfaces; choose others");
  }
  warn_of_small_balls(run);
  warn_of_long_voxels(run);
  if (resolved.voxels_not_a_number > 0) {
    run.warnings.push_back(
        std::to_string(resolved.voxels_not_a_number) +
        " voxels are NaN or infinite: the surface moves inwards there (data speed -1), and "
        "windows and edges pass them over");
  }
  return run;
}

}  // namespace larch::levelset
