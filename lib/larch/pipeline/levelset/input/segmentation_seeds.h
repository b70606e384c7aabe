// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "larch/app/outputs/paths.h"
#include "larch/app/program.h"
#include "larch/config/fields.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/levelset/segment.h"
#include "larch/pipeline/levelset/input/itk_scalings.h"

namespace larch::pipeline {

/// Where the structures of an image start, what moves them beside the image, and what they must
/// leave alone: a group of flags (larch/cases/images.h).
struct SegmentationSeeds {
  std::vector<std::vector<double>> sphere_mm{}, sphere_index{};
  InputImage init_labelmap{}, init_level_set{};
  double init_level_mm = 0, init_arrival_mm = 0;
  std::vector<std::vector<double>> window{};
  ItkScalings itk{};
  InputImage speed{}, mask{}, frozen{};

  template <class F>
  void fields(F&& f) {
    f(Field{"sphere-mm", sphere_mm, "seed: x,y,z in LPS mm, radius in mm, and its label if not 1"},
      Field{"sphere-index", sphere_index,
            "seed: voxel i,j,k from 0, radius in voxels of the smallest spacing, and its label"},
      Field{"init-labelmap", init_labelmap, "label map or mask to start from"},
      Field{"init-level-set", init_level_set, "level set in mm to start from, negative inside"},
      Field{"init-level-mm", init_level_mm, "with --init-level-set: inside is what is below", -1e6,
            1e6},
      Field{"init-arrival-mm", init_arrival_mm,
            "start from all that a front at the data's speed reaches within this path; 0: no front",
            0.0, 1e6},
      Field{"window", window, "label,lower,upper: intensities of one label of several"});
    itk.fields(f);
    f(Field{"speed-image", speed, "speed in place of that of the intensities, positive: outwards"},
      Field{"mask", mask, "the structures stay where it is not 0"},
      Field{"frozen", frozen, "label map of structures that are left as they are"});
  }
  /// Throws UsageError for lists of the wrong length, values that cannot be, and a level without
  /// its level set.
  void check() const;
  /// Whether anything to start from is given.
  bool has_start() const;
  /// Throws UsageError unless there is.
  void require_start() const;
  /// Whether a file is given: of one image, not of many.
  bool has_files() const;
  std::vector<levelset::Sphere> spheres() const;
  /// The images that are given, with the flags that name them.
  std::vector<std::pair<std::string, std::string>> images() const;
};

/// Throws UsageError unless the numbers are those of one sphere.
void check_sphere(const std::vector<double>& numbers, bool is_index);

/// Throws UsageError for settings that contradict each other, whatever the image, and for flags
/// that were given and would be passed over.
void check_levelset_config(const levelset::LevelsetConfig& config, const SegmentationSeeds& seeds,
                           const GivenFlags& given);

/// What is known of the seeds before voxels are read: spheres in the image, images on its grid,
/// the time step unless a speed image decides on it. Throws what the segmentation would throw.
void check_on_grid(const SegmentationSeeds& seeds, const levelset::LevelsetConfig& config,
                   const std::string& image, const Grid& grid, const ReadOptions& read);

/// The image. Voxels that are not finite stay, unless read.nan_value replaces them: the level set
/// has a rule for them.
Volume<float> read_image(const std::string& image, ReadOptions read);

/// The image and all that the seeds name. Throws InputError; also where grids differ, or a label
/// map to start from is empty.
levelset::SegmentRequest read_segmentation(const std::string& image, const SegmentationSeeds& seeds,
                                           const levelset::LevelsetConfig& config,
                                           const ReadOptions& read);

/// The labels that a segmentation starts with, ascending.
std::vector<int32_t> labels_of(const levelset::SegmentRequest& request);

/// What a case of a list starts from: `for_all`, the label map in the column `label`, and the
/// spheres in the columns `sphere_mm` and `sphere_index`, each "x,y,z,radius" with a label as 5th
/// number if it is not 1, several parted by semicolons. Cells that are empty or "n/a" hold none.
/// Throws InputError, which names the case and the column, for what is no such list.
SegmentationSeeds seeds_of_case(SegmentationSeeds for_all, const Case& c);

}  // namespace larch::pipeline
