// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <span>
#include <string>
#include <vector>

#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/data/pose.h"
#include "larch/data/volume.h"
#include "larch/models.h"

// Meshes that are drawn to the learned boundary of a structure.
namespace larch {

/// The place where a refinement starts; one of pose and mesh is given. Both are in LPS mm.
struct BoundaryStart {
  std::optional<Pose> pose{};      ///< of the structure, as find_poses or pose_of_labels give it
  Mesh mesh{};                     ///< of an earlier refinement by a model of this structure
  std::string structure{};         ///< of the model; empty: the only one that it has
  std::string name = "the start";  ///< for messages
};

/// A refined mesh. Vertex i is the same place of the structure in all meshes of a model.
struct RefinedBoundary {
  Mesh start{}, mesh{};                  ///< LPS mm
  std::vector<float> probability{};      ///< by vertex: of the boundary where it went last
  std::vector<float> displacement_mm{};  ///< by vertex: from the start, outwards positive
  double volume_mm3 = 0, area_mm2 = 0;   ///< of the mesh
  std::string status{};                  ///< "found", "uncertain", "not found"
  double confidence = -1;                ///< that the structure is there; below 0: not known
  double without_boundary = 0;           ///< share of the vertices that find no boundary
  int flipped_triangles = 0;
  double displacement_voxels = 0;  ///< their mean, in voxels of the model
  std::string remark{};            ///< about the start; empty: there is nothing to say
  StepSeconds seconds{};
};

/// Draws the mean shape of a structure of a model, or a mesh, to the boundary of the structure in
/// an image (Birkbeck, Sofka, Zhou 2011, section 4.3; Cootes et al. 1995). Where the model is less
/// sure than of what counts as found, it tries starts near the given one. The result does not
/// depend on the device or the number of threads. `name`: of the image, for messages. Throws
/// UsageError for a model of another kind or without the structure, InputError for a start that
/// lies outside of the image or is a mesh of another kind, MemoryError, and Stopped. The image is
/// let go as soon as it has been resampled.
RefinedBoundary refine_boundary(const Model& model, Volume<float> image, const BoundaryStart& start,
                                const Context& context, const std::string& name = "the image");

/// Does the same for several structures, each as if it were alone; the image is resampled once.
std::vector<RefinedBoundary> refine_boundaries(const Model& model, Volume<float> image,
                                               std::span<const BoundaryStart> starts,
                                               const Context& context,
                                               const std::string& name = "the image");

/// Fits the mean shape to a structure in a label map, on any grid, and returns its pose in LPS mm.
/// `structure`: of the model; where that has no other one, and the map none of its labels, all
/// labels but 0 are the structure. `name`: of the map, for messages. Throws UsageError, and
/// InputError where there are fewer than 8 voxels.
Pose pose_of_labels(const Model& model, const std::string& structure, const LabelVolume& labels,
                    const std::string& name);

/// Returns the labels of the voxels whose centres a mesh (LPS mm) encloses: `label`, or else 0.
LabelVolume labels_of(const Mesh& mesh, const Grid& grid, int32_t label, const Context& context);

/// Checks a start for a refinement on a grid before it runs, and returns RefinedBoundary::remark.
/// Throws as refine_boundary does because of a start.
std::string check_start(const Model& model, const BoundaryStart& start, const Grid& grid);

}  // namespace larch
