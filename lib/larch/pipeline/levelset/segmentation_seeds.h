// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "larch/app/outputs/paths.h"
#include "larch/app/program.h"
#include "larch/cases/case_list.h"
#include "larch/config/fields.h"
#include "larch/io/image/image.h"
#include "larch/levelset.h"

namespace larch::pipeline {

/// Where the structures of an image start, what moves them beside the image, and what they must
/// leave alone: a group of flags (larch/cases/images.h).
struct SegmentationSeeds {
  std::vector<std::vector<double>> sphere_mm{}, sphere_index{};
  InputPoints points{}, background{};
  double point_radius_mm = 4;
  InputImage init_labelmap{}, init_level_set{};
  double init_level_mm = 0, init_arrival_mm = 0;
  std::vector<std::vector<double>> window{};
  std::optional<double> propagation{}, curvature{};  ///< see `weighted`
  double curvature_mm = 0, smooth_mm = 0;
  InputImage speed{}, probability{}, mask{}, frozen{};

  template <class F>
  void fields(F&& f) {
    f(Field{"sphere-mm", sphere_mm,
            "seed: x,y,z in LPS mm, radius in mm, and its label if not 1; 0: background"},
      Field{"sphere-index", sphere_index,
            "seed: voxel i,j,k from 0, radius in voxels of the smallest spacing, and its label"},
      Field{"points", points,
            "seeds: points of 3D Slicer (.mrk.json), each the centre of a sphere"},
      Field{"background", background,
            "points of 3D Slicer (.mrk.json) that are outside, with what is around them"},
      Field{"point-radius-mm", point_radius_mm, "radius of the spheres of points", 0.0, 1e6},
      Field{"init-labelmap", init_labelmap,
            "label map or mask to start from; with --list the folder of a run that made them"},
      Field{"init-level-set", init_level_set, "level set in mm to start from, negative inside"},
      Field{"init-level-mm", init_level_mm, "with --init-level-set: inside is what is below", -1e6,
            1e6},
      Field{"init-arrival-mm", init_arrival_mm,
            "start from all that a front at the data's speed reaches within this path; 0: no front",
            0.0, 1e6},
      Field{"window", window, "label,lower,upper: intensities of one label of several"},
      Field{"propagation", propagation,
            "with --curvature, lower and upper: propagation scaling of ITK's threshold level set",
            0.0, 1e6},
      Field{"curvature", curvature,
            "with --propagation: curvature scaling of ITK's; both stand for curvature_weight", 0.0,
            1e6},
      Field{"curvature-mm", curvature_mm,
            "radius of the smallest ball that survives; 0: curvature_weight counts", 0.0, 1e6},
      Field{"smooth-mm", smooth_mm, "Gaussian before the intensities are looked at; 0: none", 0.0,
            100.0},
      Field{"speed-image", speed, "speed in place of that of the intensities, positive: outwards"},
      Field{"probability", probability,
            "probability of the structure, such as pbt-detect writes: the speed is 2 p - 1"},
      Field{"mask", mask, "the structures stay where it is not 0"},
      Field{"frozen", frozen, "label map of structures that are left as they are"});
  }
  /// Throws UsageError for lists of the wrong length, values that cannot be, settings that
  /// contradict each other, and flags that were given and would be passed over.
  void check(const levelset::LevelsetConfig& config, const GivenFlags& given) const;
  /// Tells whether there is anything to start from.
  bool has_start() const;
  /// Tells whether an image gives the speed, in place of the intensities.
  bool has_speed() const { return speed || probability; }
  /// With label 0 those of the background. Throws UsageError, and InputError for a file of points
  /// that cannot be read or has none.
  std::vector<levelset::Sphere> spheres() const;
  /// Returns the images that are given, with the flags that name them.
  std::vector<std::pair<std::string, std::string>> images() const;

  /// Returns the configuration with the curvature_weight that the scalings of ITK's
  /// ThresholdSegmentationLevelSetImageFilter, or the smallest ball that survives, stand for.
  levelset::LevelsetConfig weighted(levelset::LevelsetConfig config, const Grid& grid) const;
};

/// Returns what the seeds ask for on this grid, without volumes, after a look at the headers of all
/// images: spheres lie in the image, images on its grid, and the time step is stable unless a speed
/// image decides on it. Throws what the segmentation would throw.
levelset::SegmentRequest request_on_grid(const SegmentationSeeds& seeds,
                                         const levelset::LevelsetConfig& config,
                                         const std::string& image, const Grid& grid,
                                         const ReadOptions& read);

/// Returns the image, smoothed by smooth_mm. Voxels that are not finite stay, unless read.nan_value
/// replaces them: the level set has a rule for them.
Volume<float> read_image(const std::string& image, const SegmentationSeeds& seeds, ReadOptions read,
                         int threads);

/// Returns the image and all that the seeds name. Throws InputError; also where grids differ, or a
/// label map to start from is empty.
levelset::SegmentRequest read_segmentation(const std::string& image, const SegmentationSeeds& seeds,
                                           const levelset::LevelsetConfig& config,
                                           const ReadOptions& read, int threads);

/// Returns the seeds of a case of a list: `for_all`, the label map in the column `label`, and the
/// spheres in the columns `sphere_mm` and `sphere_index`, each "x,y,z,radius" with a label as 5th
/// number if it is not 1 (0: background), several parted by semicolons. Cells that are empty or
/// "n/a" hold none. Throws InputError, which names the case and the column, for what is no such
/// list.
SegmentationSeeds seeds_of_case(const SegmentationSeeds& for_all, const Case& c);

}  // namespace larch::pipeline
