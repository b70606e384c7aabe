// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "larch/config/fields.h"
#include "larch/core/context.h"
#include "larch/data/mesh.h"
#include "larch/mesh/marching_cubes.h"

namespace larch::mesh {

struct SmoothConfig {
  int iterations = 10;
  double lambda = 0.5;
  double pass_band = 0.1;
  template <class F>
  void fields(F&& f) {
    f(Field{"iterations", iterations,
            "pairs of a smoothing and an inflating step; 0 leaves the surface as it is", 0, 1000},
      Field{"lambda", lambda, "share of the way to the neighbours' mean in a smoothing step", 0.01,
            0.99},
      Field{"pass_band", pass_band,
            "frequencies of the surface below this are kept; smaller is smoother", 0.001, 0.9});
  }
};

/// Smoothing without shrinkage (Taubin, "A signal processing approach to fair surface design",
/// SIGGRAPH 1995): each iteration moves every vertex by `lambda` of the way to the mean of its
/// neighbours and then by mu < 0 of that way, 1/mu = pass_band - 1/lambda. Triangles stay as they
/// are. The result does not depend on context.threads.
Mesh smooth(Mesh surface, const SmoothConfig& config, const Context& context);

/// Upper bound for the bytes that smoothing takes for a surface of this size that is moved into it,
/// the mesh included.
int64_t smooth_bytes(const SurfaceSize& size, const SmoothConfig& config);

}  // namespace larch::mesh
