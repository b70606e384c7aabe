// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <vector>

#include "larch/boundary/model.h"
#include "larch/boundary/refine_math.h"
#include "larch/core/buffer.h"
#include "larch/core/context.h"
#include "larch/image/levels.h"
#include "larch/tree/flat_tree.h"

namespace larch::boundary {

/// The levels of a model on one device; its stages have no trees any more.
struct ResidentModel {
  Model model;
  struct Level {
    Buffer<mesh::Ring> rings;
    Buffer<uint16_t> parents;
    Buffer<Vec3d> duals;
    tree::ResidentTrees trees;
    Buffer<features::SteerableFeature> features;
  };
  std::vector<Level> levels;
  Buffer<Vec3d> mean, modes;
  Buffer<double> deviations;
};
ResidentModel make_resident(Model model, const Device& device);
using ResidentModels = std::vector<ResidentModel>;  ///< the structures of a file

/// Returns the image at all resolutions that the levels of the models see, on context.device. No
/// boundary is looked for outside of `extent`.
std::vector<image::LevelImage> make_images(std::span<const ResidentModel> models,
                                           const Volume<int16_t>& voxels,
                                           const image::ImageExtent& extent,
                                           const Context& context);

/// The beginning of a refinement, in mm along the axes of the grid, from its first voxel. With
/// vertices, those of the first level that runs, or of the one before.
struct Start {
  Pose pose{};  ///< where the mean is placed if there are no vertices
  std::vector<Vec3d> vertices_mm{};
};

/// The mean shape at a pose, with the vertices of the model's finest level.
std::vector<Vec3d> placed_mean(const Model& model, const Pose& pose);

struct Refined {
  std::vector<Vec3d> vertices_mm;
  std::vector<float> probability;  ///< of the boundary where each vertex went last
};

/// Levels `first` to `last` of a refinement (Birkbeck, Sofka, Zhou 2011, section 4.3): on each,
/// several times, probabilities of places on the normals, smooth displacements to the best ones,
/// the nearest shape of the model, fairing. Level 0 begins with a search for the first shape where
/// the model says so and the start has no vertices. `images`: make_images. On a device all is
/// queued before the one read-back. The result does not depend on device and threads.
Refined refine(const ResidentModel& resident, const std::vector<image::LevelImage>& images,
               const Start& start, int first, int last, const Context& context);

/// The best place on the normal of each vertex, before anything is smoothed, where `level` begins
/// with these vertices.
std::vector<Vec3d> best_places(const ResidentModel& resident,
                               const std::vector<image::LevelImage>& images,
                               const std::vector<Vec3d>& vertices_mm, int level,
                               const Context& context);

/// The arrays of a mesh on one device.
struct MeshBuffers {
  Buffer<Vec3d> vectors;  ///< begins with vertices, then the best probabilities
  Buffer<double> numbers;
  Buffer<float> probabilities;
  Buffer<features::SteerableFrame> frames;
  Buffer<shape::ShapeFit> fit;
  Buffer<Mat3> turn;
  MeshState state;

  explicit MeshBuffers(const Device& device);
};

/// The steps on one device.
namespace cuda {
void begin_level(const LevelView& level, const MeshState& state, const Context& context);
void score(const LevelView& level, const MeshState& state, double range, const Context& context);
void update(const LevelView& level, const MeshState& state, double range, const Context& context);
void search_shape(const LevelView& level, const SearchView& search, const MeshState& state,
                  const Context& context);
}  // namespace cuda

}  // namespace larch::boundary
