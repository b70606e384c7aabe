// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/metrics/mesh_scores.h"

#include <limits>
#include <vector>

#include "larch/mesh/marching_cubes.h"
#include "larch/mesh/voxelise.h"
#include "larch/metrics/overlap.h"
#include "larch/metrics/surface_distance.h"

namespace larch::metrics {

StructureScores score_mesh(const Mesh& prediction, const Mesh& reference, const Context& context) {
  const MeshDistance d = mesh_distance(prediction, reference, context);
  StructureScores out{
      "surface",
      {{"mssd_mm", d.mssd_mm}, {"rms_mm", d.rms_mm}, {"hd95_mm", d.hd95_mm}, {"hd_mm", d.hd_mm}}};
  const std::vector<Score> pooled = named_scores(surface_distance(prediction, reference, context));
  out.scores.insert(out.scores.end(), pooled.begin(), pooled.end());
  for (const Score& score :
       detection_scores(!reference.triangles.empty(), !prediction.triangles.empty())) {
    out.scores.push_back(score);
  }
  out.scores.push_back({"dice", std::numeric_limits<double>::quiet_NaN()});
  return out;
}

StructureScores score_mesh(const Mesh& prediction, const Volume<uint8_t>& reference,
                           const Context& context) {
  StructureScores out = score_mesh(prediction, mesh::marching_cubes(reference, context), context);
  const Volume<uint8_t> voxels = mesh::voxelise(prediction, reference.grid(), context);
  out.scores.back().value = overlap(voxels, reference).dice;
  return out;
}

}  // namespace larch::metrics
