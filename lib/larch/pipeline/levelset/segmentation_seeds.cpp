// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/segmentation_seeds.h"

#include <algorithm>
#include <cmath>
#include <string_view>
#include <utility>

#include "larch/cases/images.h"
#include "larch/config/flags.h"
#include "larch/core/error.h"
#include "larch/io/markups/markups.h"

namespace larch::pipeline {
namespace {

using levelset::Sphere;

/// The largest label that files of label maps hold.
constexpr double kMaximumLabel = 65535;
constexpr int kMaximumTogether = 255;  ///< labels of one map

int32_t label_of(double value, const std::string& flag, int least) {
  if (!(value >= least && value <= kMaximumLabel) || value != std::floor(value)) {
    throw UsageError(flag + ": a label is a whole number from " + std::to_string(least) +
                     " to 65535");
  }
  return static_cast<int32_t>(value);
}

Sphere sphere_of(const std::vector<double>& numbers, bool is_index, const std::string& flag) {
  if (numbers.size() != 4 && numbers.size() != 5) {
    throw UsageError(flag + ": takes " + (is_index ? "i,j,k" : "x,y,z") +
                     ",radius or one number more, the label; found " +
                     std::to_string(numbers.size()) + " numbers");
  }
  if (!(numbers[3] > 0)) throw UsageError(flag + ": the radius, its 4th number, is not above 0");
  return {{numbers[0], numbers[1], numbers[2]},
          numbers[3],
          is_index,
          numbers.size() == 5 ? label_of(numbers[4], flag, 0) : 1};
}

levelset::LabelWindow window_of(const std::vector<double>& numbers) {
  if (numbers.size() != 3) {
    throw UsageError("--window: takes label,lower,upper; found " + std::to_string(numbers.size()) +
                     " numbers");
  }
  if (!(numbers[1] < numbers[2])) {
    throw UsageError("--window: the lower end has to be less than the upper one");
  }
  return {label_of(numbers[0], "--window", 1), numbers[1], numbers[2]};
}

std::string quoted(const std::string& path) {
  return "'" + path + "'";
}

/// Reads what lies beside the image; of floats, voxels that are not finite are kept.
template <class T>
Volume<T> read_beside(const std::string& path, const std::string& image, const Grid& grid,
                      const ReadOptions& read) {
  ReadOptions options = label_options(read, grid);
  Volume<T> volume;
  if constexpr (std::is_same_v<T, float>) {
    options.keeps_not_finite = true;
    volume = read_volume<float>(path, options);
  } else {
    volume = read_labels(path, options);
  }
  cases::require_same_grid(path, volume.grid(), image, grid);
  volume.set_geometry(grid);
  return volume;
}

/// Throws InputError for NaN. Infinite values are taken, because they are valid distances.
void check_level_set(const std::string& path, const Volume<float>& phi_mm) {
  const auto bad = std::ranges::count_if(phi_mm, [](float value) { return std::isnan(value); });
  if (bad == 0) return;
  throw InputError("'" + path + "': " + std::to_string(bad) +
                   " voxels are NaN; every voxel of a level set has a distance: write it again");
}

void check_initial_labels(const std::string& path, const LabelVolume& labels) {
  const auto [least, most] = std::minmax_element(labels.begin(), labels.end());
  if (*least < 0 || *most > kMaximumLabel) {
    throw InputError("'" + path + "' has the label " + std::to_string(*least < 0 ? *least : *most) +
                     "; labels to start from are 0 to 65535");
  }
  std::vector<bool> is_there(static_cast<size_t>(*most) + 1);
  for (const int32_t label : labels) is_there[static_cast<size_t>(label)] = true;
  const auto count = std::count(is_there.begin() + 1, is_there.end(), true);
  if (count > kMaximumTogether) {
    throw InputError("'" + path + "' has " + std::to_string(count) + " labels, and at most " +
                     std::to_string(kMaximumTogether) +
                     " grow together, since each meets all others; keep those that are meant");
  }
  if (*most > 0) return;
  throw InputError("'" + path +
                   "' is empty: there is nothing to start from; give a label map with voxels that "
                   "are not 0, or seeds by --sphere-mm");
}

/// Throws UsageError unless ITK's scalings, which stand for curvature_weight, come with one window
/// of intensities.
void check_scalings(const SegmentationSeeds& seeds, const levelset::LevelsetConfig& config,
                    const GivenFlags& given) {
  const bool has_weight = given.has("--curvature_weight") ||
                          config.curvature_weight != levelset::LevelsetConfig{}.curvature_weight;
  if (seeds.curvature_mm > 0 && (seeds.propagation || seeds.curvature || has_weight)) {
    throw UsageError(
        "--curvature-mm stands for --curvature-weight; leave that out, and --propagation and "
        "--curvature");
  }
  if (!seeds.propagation && !seeds.curvature) return;
  if (seeds.has_speed() || !seeds.window.empty()) {
    throw UsageError(
        "--propagation and --curvature are weights for one window of intensities; leave --window, "
        "--speed-image and --probability out");
  }
  if (!seeds.propagation || !seeds.curvature) {
    throw UsageError("--propagation and --curvature go together; --curvature-weight stands alone");
  }
  if (*seeds.propagation == 0 && *seeds.curvature == 0) {
    throw UsageError("--propagation and --curvature are both 0: nothing would move");
  }
  if (!config.lower || !config.upper) {
    throw UsageError(
        "--propagation and --curvature need --lower and --upper: ITK's speed is in units of the "
        "intensity");
  }
  // A file of the configuration may hold the default, as one that --print-config wrote does.
  if (has_weight) {
    throw UsageError(
        "give either --curvature-weight or --propagation and --curvature, which stand for one: "
        "leave --curvature-weight out for ITK's scalings, or --propagation and --curvature");
  }
}

/// Throws UsageError for a flag that has no effect. Defaults pass, because 3D Slicer gives all
/// flags.
void check_effects(const levelset::LevelsetConfig& config, const GivenFlags& given) {
  if (config.advection_weight > 0) return;
  const levelset::LevelsetConfig usual;
  for (const auto& [flag, is_usual] :
       {std::pair("--edge_scale_mm", config.edge_scale_mm == usual.edge_scale_mm),
        std::pair("--edge_contrast", config.edge_contrast == usual.edge_contrast)}) {
    if (is_usual || !given.has(flag)) continue;
    throw UsageError(std::string(flag) +
                     " has no effect without --advection_weight; give that too, or leave it out");
  }
}

}  // namespace

void SegmentationSeeds::check(const levelset::LevelsetConfig& config,
                              const GivenFlags& given) const {
  spheres();
  for (const std::vector<double>& numbers : window) window_of(numbers);
  if (init_level_mm != 0 && !init_level_set) {
    throw UsageError("--init-level-mm goes with --init-level-set");
  }
  if (speed && probability) {
    throw UsageError("--speed-image and --probability are two speeds; give one");
  }
  if (has_speed() && (!window.empty() || config.lower || config.upper)) {
    throw UsageError(std::string(speed ? "--speed-image" : "--probability") +
                     " stands in place of the intensities; leave --lower and --upper out, and "
                     "--window");
  }
  if (config.lower && config.upper && !(*config.lower < *config.upper)) {
    throw UsageError("lower " + std::to_string(*config.lower) + " is not less than upper " +
                     std::to_string(*config.upper) +
                     ": they are the lowest and the highest intensity of the structure");
  }
  check_scalings(*this, config, given);
  check_effects(config, given);
}

bool SegmentationSeeds::has_start() const {
  const auto is_seed = [](const std::vector<double>& s) { return s.size() < 5 || s[4] != 0; };
  return std::ranges::any_of(sphere_mm, is_seed) || std::ranges::any_of(sphere_index, is_seed) ||
         points || init_labelmap || init_level_set;
}

std::vector<Sphere> SegmentationSeeds::spheres() const {
  std::vector<Sphere> all;
  for (const auto& numbers : sphere_mm) all.push_back(sphere_of(numbers, false, "--sphere-mm"));
  for (const auto& numbers : sphere_index) {
    all.push_back(sphere_of(numbers, true, "--sphere-index"));
  }
  for (const auto& [file, label] : {std::pair(points, 1), std::pair(background, 0)}) {
    if (!file) continue;
    const PointSet set = read_points(file);
    if (set.points_mm.empty()) {
      throw InputError("'" + std::string(file) + "' has no points; put them " +
                       (label == 0 ? "beside" : "into") + " the structure");
    }
    for (const Vec3d& at : set.points_mm) {
      all.push_back(sphere_of({at.x, at.y, at.z, point_radius_mm, static_cast<double>(label)},
                              false, label == 0 ? "--background" : "--points"));
    }
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> SegmentationSeeds::images() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [flag, path] :
       {std::pair("init-labelmap", init_labelmap), std::pair("init-level-set", init_level_set),
        std::pair("speed-image", speed), std::pair("probability", probability),
        std::pair("mask", mask), std::pair("frozen", frozen)}) {
    if (path) all.emplace_back(flag, path.path);
  }
  return all;
}

levelset::LevelsetConfig SegmentationSeeds::weighted(levelset::LevelsetConfig config,
                                                     const Grid& grid) const {
  if (curvature_mm > 0) config.curvature_weight = levelset::weight_of_ball(curvature_mm, grid);
  if (propagation && curvature) {
    const double half_width = (config.upper.value() - config.lower.value()) / 2;
    config.curvature_weight = levelset::weight_of_itk(*propagation, *curvature, half_width, grid);
  }
  return config;
}

levelset::SegmentRequest request_on_grid(const SegmentationSeeds& seeds,
                                         const levelset::LevelsetConfig& config,
                                         const std::string& image, const Grid& grid,
                                         const ReadOptions& read) {
  levelset::SegmentRequest request;
  request.name = image;
  for (const Sphere& sphere : seeds.spheres()) {
    (sphere.label == 0 ? request.background : request.spheres).push_back(sphere);
  }
  for (const auto& numbers : seeds.window) request.windows.push_back(window_of(numbers));
  request.initial_level_mm = seeds.init_level_mm;
  request.arrival_mm = seeds.init_arrival_mm;
  request.config = seeds.weighted(config, grid);
  ReadOptions options = label_options(read, grid);
  options.warn = nullptr;  // They are given when the images are read.
  for (const auto& [flag, path] : seeds.images()) {
    cases::require_same_grid(path, probe_image(path, options).grid, image, grid);
  }
  levelset::check_on_grid(request, grid, seeds.has_speed());
  return request;
}

Volume<float> read_image(const std::string& image, const SegmentationSeeds& seeds, ReadOptions read,
                         int threads) {
  read.keeps_not_finite = true;
  Volume<float> volume = read_volume<float>(image, read);
  if (!(seeds.smooth_mm > 0)) return volume;
  return levelset::smoothed_image(volume, seeds.smooth_mm, threads);
}

levelset::SegmentRequest read_segmentation(const std::string& image, const SegmentationSeeds& seeds,
                                           const levelset::LevelsetConfig& config,
                                           const ReadOptions& read, int threads) {
  Volume<float> volume = read_image(image, seeds, read, threads);
  const Grid& grid = volume.grid();
  levelset::SegmentRequest request = request_on_grid(seeds, config, image, grid, read);
  if (seeds.init_labelmap) {
    request.initial_labels = read_beside<int32_t>(seeds.init_labelmap, image, grid, read);
    check_initial_labels(seeds.init_labelmap, request.initial_labels);
  }
  if (seeds.init_level_set) {
    request.initial_phi.push_back({1, read_beside<float>(seeds.init_level_set, image, grid, read)});
    check_level_set(seeds.init_level_set, request.initial_phi[0].phi_mm);
  }
  if (seeds.speed) request.speed = read_beside<float>(seeds.speed, image, grid, read);
  if (seeds.probability) {
    request.speed = read_beside<float>(seeds.probability, image, grid, read);
    for (float& p : request.speed) {
      if (p < 0 || p > 1) {
        throw InputError("'" + std::string(seeds.probability) + "' has the value " +
                         levelset::number(double{p}) + "; a probability is from 0 to 1");
      }
      p = 2 * p - 1;
    }
  }
  if (seeds.mask) {
    request.mask = mapped<uint8_t>(read_beside<int32_t>(seeds.mask, image, grid, read),
                                   [](int32_t label) { return label != 0; });
  }
  if (seeds.frozen) request.frozen = read_beside<int32_t>(seeds.frozen, image, grid, read);
  request.image = std::move(volume);
  return request;
}

SegmentationSeeds seeds_of_case(const SegmentationSeeds& for_all, const Case& c) {
  SegmentationSeeds seeds = for_all;
  if (!c.label.empty()) seeds.init_labelmap = c.label;
  for (const char* column : {"sphere_mm", "sphere-mm", "sphere_index", "sphere-index"}) {
    const auto found = c.further.find(column);
    if (found == c.further.end() || found->second.empty() || found->second == "n/a") continue;
    const std::string& cell = found->second;
    const bool is_index = std::string_view(column).ends_with("index");
    // Each part of the cell is read as one value of the flag.
    std::vector<std::vector<double>> spheres;
    config::Leaf leaf{config::describe(spheres), quoted(cell)};
    for (size_t begin = 0; begin <= cell.size();) {
      const size_t end = std::min(cell.find(';', begin), cell.size());
      leaf.given.push_back(cell.substr(begin, end - begin));
      begin = end + 1;
    }
    try {
      config::apply_flags({leaf});
      for (const auto& sphere : spheres) sphere_of(sphere, is_index, quoted(cell));
    } catch (const UsageError& error) {
      throw InputError("case '" + c.id + "', column '" + column + "', " + error.what() +
                       "; several spheres are parted by semicolons");
    }
    auto& all = is_index ? seeds.sphere_index : seeds.sphere_mm;
    all.insert(all.end(), spheres.begin(), spheres.end());
  }
  return seeds;
}

}  // namespace larch::pipeline
