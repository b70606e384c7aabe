// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Geometries: what the check of a header lets through makes a working grid that the memory holds
// and that covers the image, or is refused.
#include <algorithm>
#include <cmath>

#include "larch/image/preprocess.h"
#include "larch/io/formats/image_file.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

// Mostly what headers hold; one byte in 16 takes any double instead.
double number(fuzz::Source& in, double unit) {
  const auto kind = in.take<uint8_t>();
  if (kind % 16 == 15) return in.take<double>();
  return unit * in.take<int16_t>() * (kind % 16 == 14 ? 1e4 : 1);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Source in(data, size);
  Grid grid;
  image::ModelSpace space;
  const auto choice = in.take<uint8_t>();
  space.orientation = choice % 2 == 0 ? image::Orientation::kWorld : image::Orientation::kOwn;
  for (int axis = 0; axis < 3; ++axis) grid.size[axis] = 1 + in.take<uint16_t>() % 1024;
  for (int axis = 0; axis < 3; ++axis) grid.spacing_mm[axis] = number(in, 0.01);
  for (int axis = 0; axis < 3; ++axis) {
    // The bounds of the configuration key space.spacing_mm.
    space.spacing_mm[axis] = std::clamp(0.01 * in.take<uint16_t>(), 0.01, 1000.0);
  }
  for (int axis = 0; axis < 3; ++axis) grid.origin_mm[axis] = number(in, 1);
  for (int axis = 0; axis < 3 && choice >= 64; ++axis) {
    Vec3d column{number(in, 1e-4), number(in, 1e-4), number(in, 1e-4)};
    if (choice % 8 != 7) column = column / norm(column);  // as readers of most formats do
    for (int row = 0; row < 3; ++row) grid.direction.m[row][axis] = column[row];
  }
  if (!fuzz::accepts({ExitCode::kInput}, "case.nii", [&] { io::check_geometry(grid, "case.nii"); }))
    return 0;
  fuzz::require_sound(grid);
  Grid working;
  if (!fuzz::accepts({ExitCode::kInput}, "case.nii",
                     [&] { working = image::model_grid(grid, space, "case.nii"); })) {
    return 0;
  }
  fuzz::require_sound(working);
  const double voxels = static_cast<double>(working.size.x) * working.size.y * working.size.z;
  fuzz::require(voxels <= std::max(512.0 * static_cast<double>(grid.voxels()), 16777216.0),
                "a working grid that is out of proportion to the image");
  return 0;
}
