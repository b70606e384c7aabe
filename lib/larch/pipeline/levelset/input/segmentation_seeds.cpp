// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/levelset/input/segmentation_seeds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>

#include "larch/core/error.h"
#include "larch/levelset/step/time_step.h"

namespace larch::pipeline {
namespace {

using levelset::Sphere;

/// Labels fit into the files that hold them.
constexpr double kMostLabel = 65535;

int32_t label_of(double value, const std::string& flag) {
  if (!(value >= 1 && value <= kMostLabel) || value != std::floor(value)) {
    throw UsageError(flag + "a label is a whole number from 1 to 65535");
  }
  return static_cast<int32_t>(value);
}

Sphere sphere_of(const std::vector<double>& numbers, bool is_index, const std::string& flag) {
  if (numbers.size() != 4 && numbers.size() != 5) {
    throw UsageError(flag + "takes " + (is_index ? "i,j,k" : "x,y,z") +
                     ",radius or one number more, the label; found " +
                     std::to_string(numbers.size()) + " numbers");
  }
  if (!(numbers[3] > 0)) throw UsageError(flag + "the radius, its 4th number, is not above 0");
  return {{numbers[0], numbers[1], numbers[2]},
          numbers[3],
          is_index,
          numbers.size() == 5 ? label_of(numbers[4], flag) : 1};
}

levelset::LabelWindow window_of(const std::vector<double>& numbers) {
  if (numbers.size() != 3) {
    throw UsageError("--window: takes label,lower,upper; found " + std::to_string(numbers.size()) +
                     " numbers");
  }
  if (!(numbers[1] < numbers[2])) {
    throw UsageError("--window: the lower end has to be less than the upper one");
  }
  return {label_of(numbers[0], "--window: "), numbers[1], numbers[2]};
}

void require_same_grid(const std::string& path, const Grid& grid, const std::string& image,
                       const Grid& of_image) {
  const std::string difference = describe_difference(grid, of_image, 1e-2);
  if (difference.empty()) return;
  throw InputError("'" + path + "' is not on the grid of '" + image + "': " + difference +
                   "; resample it");
}

/// Voxels that are not finite are kept.
Volume<float> read_beside(const std::string& path, const std::string& image, const Grid& grid,
                          const ReadOptions& read) {
  ReadOptions options = label_options(read);
  options.keeps_not_finite = true;
  Volume<float> volume = read_volume<float>(path, options);
  require_same_grid(path, volume.grid(), image, grid);
  volume.set_geometry(grid);
  return volume;
}

LabelVolume read_labels_beside(const std::string& path, const std::string& image, const Grid& grid,
                               const ReadOptions& read) {
  LabelVolume labels = read_labels(path, label_options(read));
  require_same_grid(path, labels.grid(), image, grid);
  labels.set_geometry(grid);
  return labels;
}

/// An infinite distance is a distance.
Volume<float> read_level_set(const std::string& path, const std::string& image, const Grid& grid,
                             const ReadOptions& read) {
  Volume<float> phi_mm = read_beside(path, image, grid, read);
  const auto bad =
      std::count_if(phi_mm.begin(), phi_mm.end(), [](float value) { return std::isnan(value); });
  if (bad == 0) return phi_mm;
  throw InputError("'" + path + "': " + std::to_string(bad) +
                   " voxels are NaN; every voxel of a level set has a distance: write it again");
}

void check_initial_labels(const std::string& path, const LabelVolume& labels) {
  bool is_empty = true;
  for (const int32_t value : labels) {
    if (value < 0 || value > static_cast<int32_t>(kMostLabel)) {
      throw InputError("'" + path + "' has the label " + std::to_string(value) +
                       "; labels to start from are 0 to 65535");
    }
    is_empty = is_empty && value == 0;
  }
  if (is_empty) {
    throw InputError("'" + path +
                     "' is empty: there is nothing to start from; give a label map with voxels "
                     "that are not 0, or seeds by --sphere-mm");
  }
}

std::set<int32_t> values_of(const LabelVolume& volume) {
  std::set<int32_t> labels;
  int32_t last = 0;
  for (const int32_t label : volume) {
    if (label == last) continue;  // most voxels have the label of the one before
    last = label;
    if (label != 0) labels.insert(label);
  }
  return labels;
}

/// A column of spheres, which may be written as its flag is.
struct SphereColumn {
  const char *name, *flag;
  bool is_index;
};
constexpr SphereColumn kSphereColumns[] = {{"sphere_mm", "sphere-mm", false},
                                           {"sphere_index", "sphere-index", true}};

/// The cell of a case, without what stands for nothing.
std::string cell_of(const Case& c, const char* name) {
  const auto found = c.further.find(name);
  if (found == c.further.end() || found->second == "n/a") return "";
  return found->second;
}

std::string_view without_blanks(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

/// Calls f(part) for each part between separators.
template <class F>
void for_parts(std::string_view text, char separator, const F& f) {
  while (true) {
    const size_t end = std::min(text.find(separator), text.size());
    f(without_blanks(text.substr(0, end)));
    if (end == text.size()) return;
    text.remove_prefix(end + 1);
  }
}

double number_of(std::string_view text) {
  if (text.starts_with('+')) text.remove_prefix(1);
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc{} || end != text.data() + text.size() || !std::isfinite(value)) {
    throw UsageError("'" + std::string(text) + "' is not a number");
  }
  return value;
}

std::vector<std::vector<double>> spheres_of(const std::string& cell, const SphereColumn& column) {
  std::vector<std::vector<double>> spheres;
  for_parts(cell, ';', [&](std::string_view sphere) {
    spheres.emplace_back();
    for_parts(sphere, ',',
              [&](std::string_view number) { spheres.back().push_back(number_of(number)); });
    check_sphere(spheres.back(), column.is_index);
  });
  return spheres;
}

}  // namespace

void SegmentationSeeds::check() const {
  spheres();
  for (const std::vector<double>& numbers : window) window_of(numbers);
  if (init_level_mm != 0 && !init_level_set) {
    throw UsageError("--init-level-mm goes with --init-level-set");
  }
  if (speed && !window.empty()) {
    throw UsageError("--speed-image stands in place of the intensities; leave --window out");
  }
  if (itk.are_given() && (speed || !window.empty())) {
    throw UsageError(
        "--propagation and --curvature are weights for one window of intensities; leave --window "
        "and --speed-image out");
  }
}

bool SegmentationSeeds::has_start() const {
  return !sphere_mm.empty() || !sphere_index.empty() || init_labelmap || init_level_set;
}

void SegmentationSeeds::require_start() const {
  if (has_start()) return;
  throw UsageError(
      "there is no seed: give --sphere-mm x,y,z,r or --sphere-index i,j,k,r with a place in the "
      "structure and a radius, --init-labelmap or --init-level-set");
}

bool SegmentationSeeds::has_files() const {
  return !images().empty();
}

std::vector<Sphere> SegmentationSeeds::spheres() const {
  std::vector<Sphere> all;
  for (const std::vector<double>& numbers : sphere_mm) {
    all.push_back(sphere_of(numbers, false, "--sphere-mm: "));
  }
  for (const std::vector<double>& numbers : sphere_index) {
    all.push_back(sphere_of(numbers, true, "--sphere-index: "));
  }
  return all;
}

std::vector<std::pair<std::string, std::string>> SegmentationSeeds::images() const {
  std::vector<std::pair<std::string, std::string>> all;
  for (const auto& [flag, path] :
       {std::pair("init-labelmap", init_labelmap), std::pair("init-level-set", init_level_set),
        std::pair("speed-image", speed), std::pair("mask", mask), std::pair("frozen", frozen)}) {
    if (path) all.emplace_back(flag, path.path);
  }
  return all;
}

void check_sphere(const std::vector<double>& numbers, bool is_index) {
  sphere_of(numbers, is_index, "");
}

namespace {

/// 3D Slicer gives every flag, so that one with its default asks for nothing.
void check_effects(const levelset::LevelsetConfig& config, const GivenFlags& given) {
  const levelset::LevelsetConfig usual;
  const bool has_edges = config.edge_stop || config.advection_weight > 0;
  const bool has_regions = config.region_weight > 0;
  const char *edges = "--edge_stop or --advection_weight", *regions = "--region_weight";
  for (const auto& [flag, is_usual, has_effect, what] :
       {std::tuple("--edge_scale_mm", config.edge_scale_mm == usual.edge_scale_mm, has_edges,
                   edges),
        std::tuple("--edge_contrast", config.edge_contrast == usual.edge_contrast, has_edges,
                   edges),
        std::tuple("--region_every", config.region_every == usual.region_every, has_regions,
                   regions),
        std::tuple("--region_band_mm", config.region_band_mm == usual.region_band_mm, has_regions,
                   regions)}) {
    if (has_effect || is_usual || !given.has(flag)) continue;
    throw UsageError(std::string(flag) + " has no effect without " + what +
                     "; give that too, or leave it out");
  }
}

}  // namespace

void check_levelset_config(const levelset::LevelsetConfig& config, const SegmentationSeeds& seeds,
                           const GivenFlags& given) {
  if (config.lower && config.upper && !(*config.lower < *config.upper)) {
    throw UsageError("lower " + std::to_string(*config.lower) + " is not less than upper " +
                     std::to_string(*config.upper) +
                     ": they are the lowest and the highest intensity of the structure");
  }
  if (seeds.speed && (config.lower || config.upper)) {
    throw UsageError(
        "--speed-image stands in place of the intensities; leave --lower and --upper out");
  }
  seeds.itk.check(config, given.has("--curvature_weight"));
  check_effects(config, given);
}

void check_on_grid(const SegmentationSeeds& seeds, const levelset::LevelsetConfig& config,
                   const std::string& image, const Grid& grid, const ReadOptions& read) {
  int number = 0;
  for (const Sphere& sphere : seeds.spheres()) {
    levelset::ball_of(sphere, grid, "seed " + std::to_string(++number));
  }
  ReadOptions options = label_options(read);
  options.warn = nullptr;  // the reading itself will say it
  for (const auto& [flag, path] : seeds.images()) {
    require_same_grid(path, probe_image(path, options).grid, image, grid);
  }
  // How fast a speed image is, is known when it is read: the run checks its time step then.
  if (seeds.speed) return;
  levelset::make_step(seeds.itk.applied(config, grid), {}, grid.spacing_mm, grid.size);
}

Volume<float> read_image(const std::string& image, ReadOptions read) {
  read.keeps_not_finite = true;
  return read_volume<float>(image, read);
}

levelset::SegmentRequest read_segmentation(const std::string& image, const SegmentationSeeds& seeds,
                                           const levelset::LevelsetConfig& config,
                                           const ReadOptions& read) {
  levelset::SegmentRequest request;
  request.image = read_image(image, read);
  const Grid& grid = request.image.grid();
  request.config = seeds.itk.applied(config, grid);
  check_on_grid(seeds, config, image, grid, read);
  request.spheres = seeds.spheres();
  for (const std::vector<double>& numbers : seeds.window) {
    request.windows.push_back(window_of(numbers));
  }
  request.initial_level_mm = seeds.init_level_mm;
  request.arrival_mm = seeds.init_arrival_mm;
  if (seeds.init_labelmap) {
    request.initial_labels = read_labels_beside(seeds.init_labelmap, image, grid, read);
    check_initial_labels(seeds.init_labelmap, request.initial_labels);
  }
  if (seeds.init_level_set) {
    request.initial_phi.push_back({1, read_level_set(seeds.init_level_set, image, grid, read)});
  }
  if (seeds.speed) request.speed = read_beside(seeds.speed, image, grid, read);
  if (seeds.mask) {
    const LabelVolume mask = read_labels_beside(seeds.mask, image, grid, read);
    request.mask = Volume<uint8_t>(grid);
    std::transform(mask.begin(), mask.end(), request.mask.begin(),
                   [](int32_t value) { return static_cast<uint8_t>(value != 0); });
  }
  if (seeds.frozen) request.frozen = read_labels_beside(seeds.frozen, image, grid, read);
  return request;
}

std::vector<int32_t> labels_of(const levelset::SegmentRequest& request) {
  std::set<int32_t> labels = values_of(request.initial_labels);
  for (const Sphere& sphere : request.spheres) labels.insert(sphere.label);
  for (const levelset::InitialPhi& phi : request.initial_phi) labels.insert(phi.label);
  return {labels.begin(), labels.end()};
}

SegmentationSeeds seeds_of_case(SegmentationSeeds for_all, const Case& c) {
  SegmentationSeeds seeds = std::move(for_all);
  if (!c.label.empty()) seeds.init_labelmap = c.label;
  for (const SphereColumn& column : kSphereColumns) {
    auto& all = column.is_index ? seeds.sphere_index : seeds.sphere_mm;
    for (const char* name : {column.name, column.flag}) {
      const std::string cell = cell_of(c, name);
      if (cell.empty()) continue;
      try {
        for (auto& sphere : spheres_of(cell, column)) all.push_back(std::move(sphere));
      } catch (const UsageError& error) {
        throw InputError("case '" + c.id + "', column '" + name + "', '" + cell +
                         "': " + error.what() + "; several spheres are parted by semicolons");
      }
    }
  }
  return seeds;
}

}  // namespace larch::pipeline
