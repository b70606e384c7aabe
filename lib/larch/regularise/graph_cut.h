// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/volume.h"

namespace larch::regularise {

/// Says what a cut edge costs: area alone, or area that is cheaper where the image has an edge.
enum class EdgeCost { kArea, kContrast };
constexpr auto enum_names(EdgeCost*) {
  return std::to_array<EnumName<EdgeCost>>(
      {{EdgeCost::kArea, "area"}, {EdgeCost::kContrast, "contrast"}});
}

/// Fits all voxels whose edges are 1 mm or longer, and is more than anybody needs: balls of up to
/// 3 lambda_mm in radius vanish. Of smaller voxels check_lambda knows.
constexpr double kMaximumLambdaMm = 32;

struct GraphCutConfig {
  double lambda_mm = 0.5;
  EdgeCost weights = EdgeCost::kArea;
  double sigma = 0;
  int neighbours = 26;
  double band_low = 0.05;
  double band_high = 0.95;
  int band_voxels = 3;
  int64_t max_band_voxels = 8'000'000;
  template <class F>
  void fields(F&& f) {
    f(Field{"lambda_mm", lambda_mm, "weight of the surface's area; 0 = threshold at 0.5", 0,
            kMaximumLambdaMm},
      Field{"weights", weights,
            "area, or contrast: area that is cheaper where the image has an edge"},
      Field{
          "sigma", sigma,
          "contrast: intensity difference that counts as an edge; 0 = root mean square difference "
          "of neighbours in the band",
          0, 1e9},
      Field{"neighbours", neighbours, "6, or 26, which follows oblique surfaces better"}.one_of(
          {6, 26}),
      Field{"band_low", band_low, "voxels with a lower probability are background", 0, 0.5},
      Field{"band_high", band_high, "voxels with a higher probability are foreground", 0.5, 1},
      Field{"band_voxels", band_voxels,
            "voxels this close to the surface at 0.5 are free whatever their probability", 0, 100},
      Field{"max_band_voxels", max_band_voxels,
            "most voxels to optimise over; a wider band is narrowed, with a warning", 1,
            100000000});
  }
};

/// Labels l in {0, 1} that minimise
///
///   E(l) = sum over voxels |p - l| dV  +  lambda * area of the surface of l        [mm^3]
///
/// (the energy of Birkbeck, Sofka, Zhou 2011, section 4), with the area by cuts of a grid graph
/// (Boykov, Kolmogorov, "Computing geodesics and minimal surfaces via graph cuts", ICCV 2003): an
/// edge along e_k, in mm, costs
///
///   w_k = dV * phi_k / (pi * |e_k|)                                               [mm^2]
///
/// when it is cut, where dV is the volume of a voxel and phi_k the solid angle of the directions
/// that are nearer to the line of e_k than to any other edge's (sum over k = 2 pi). This is the
/// Cauchy-Crofton formula with one family of lines per direction of edges; it holds for anisotropic
/// spacing and sheared grids, since e_k is the edge in world space. Where one axis has a single
/// voxel the edges lie in the plane (4 or 8 neighbours) and w_k = dV * phi_k / (2 * |e_k|) with
/// plane angles (sum = pi): the length of the contour times the thickness. Surface on the border of
/// the volume is free. weights = contrast multiplies an edge by exp(-(I_a - I_b)^2 / (2 sigma^2)).
///
/// Only voxels in the band are free: those with probability in [band_low, band_high] or within
/// band_voxels (in each axis) of the surface at 0.5; the others keep l = (p > 0.5) and act on their
/// free neighbours. The result minimises E over the free voxels; among several minimisers it is
/// the one with the fewest foreground voxels. Costs are integers (2^-20 of dV), the band falls into
/// connected components that are solved one by one (maximum flow: Boykov, Kolmogorov, PAMI 26(9),
/// 2004), so the result does not depend on context.threads or the machine.
///
/// A voxel of the band whose own term outweighs all of its edges has the same label in every
/// minimiser. It acts as voxels outside the band do, which may decide its neighbours in turn: the
/// maximum flow is for the others alone.
///
/// Memory: 4 bytes for each voxel of the volume, and for each free voxel with 26 neighbours at most
/// 97, with contrast 149; with 6 neighbours 57 and 69. The log (debug) says how many. Above
/// max_band_voxels the probability criterion is dropped and band_voxels is lowered until the band
/// fits, with a warning; if it does not fit at 1, or the memory is not there, MemoryError.
///
/// `image` is on the same grid and needed for contrast only; may be null otherwise. Throws
/// UsageError (contrast without image, neighbours other than 6 or 26, lambda_mm too large for the
/// voxel size), InputError (a probability outside 0..1 or not finite, grids differ).
Volume<uint8_t> graph_cut(const Volume<float>& probability, const Volume<float>* image,
                          const GraphCutConfig& config, const Context& context);

/// Throws UsageError, as graph_cut does, if config.lambda_mm is too large for voxels of this grid:
/// the costs of their edges would not fit into integers.
void check_lambda(const GraphCutConfig& config, const Grid& grid);

/// An edge direction of the grid graph; its opposite is the same direction.
struct EdgeWeight {
  Vec3i offset;
  double area_mm2;  ///< w_k above
};

/// Returns the 3 (neighbours = 6) or 13 (26) directions with their Cauchy-Crofton weights; in a
/// plane 2 or 4.
std::vector<EdgeWeight> crofton_weights(const Grid& grid, int neighbours);

}  // namespace larch::regularise
