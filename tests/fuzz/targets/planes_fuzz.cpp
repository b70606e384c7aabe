// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The planes of a DICOM series, put in order. A regular stack is made from the first numbers of the
// input and disturbed by the rest: no order of the files may change the grid, and every plane must
// lie where the grid says.
#include <algorithm>
#include <cmath>
#include <vector>

#include "larch/data/vec.h"
#include "larch/io/dicom/dicom_object.h"
#include "tests/fuzz/fuzz.h"

namespace {
using namespace larch;

// Tenths, so that short inputs make sensible numbers; one byte in 16 takes any double instead.
double number(fuzz::Source& in) {
  const auto kind = in.take<uint8_t>();
  if (kind % 16 == 15) return in.take<double>();
  return 0.1 * in.take<int16_t>();
}

std::vector<io::DicomPlane> planes_of(fuzz::Source& in) {
  io::DicomPlane first;
  first.size = {4, 3, 1};
  first.has_position = first.has_orientation = first.has_spacing = true;
  const double angle = number(in);
  first.row = {std::cos(angle), std::sin(angle), 0};
  first.column = {-std::sin(angle), std::cos(angle), 0};
  first.spacing_x_mm = number(in);
  first.spacing_y_mm = number(in);
  first.thickness_mm = number(in);
  for (int axis = 0; axis < 3; ++axis) first.position_mm[axis] = number(in);
  const Vec3d step{number(in), number(in), number(in)};
  std::vector<io::DicomPlane> planes(1 + in.take<uint8_t>() % 12, first);
  for (size_t i = 0; i < planes.size(); ++i) {
    planes[i].name = "slice " + std::to_string(i);
    planes[i].object = static_cast<int>(i);
    planes[i].position_mm = first.position_mm + step * static_cast<double>(i);
  }
  while (!in.empty()) {
    io::DicomPlane& plane = planes[in.take<uint8_t>() % planes.size()];
    const auto what = in.take<uint8_t>();
    const int axis = what / 16 % 3;
    switch (what % 8) {
      case 0:
        plane.position_mm[axis] += 0.01 * in.take<int8_t>();
        break;
      case 1:
        plane.position_mm[axis] = number(in);
        break;
      case 2:
        plane.row[axis] = number(in);
        break;
      case 3:
        plane.column[axis] += 0.001 * in.take<int8_t>();
        break;
      case 4:
        plane.size[axis % 2] = 1 + in.take<uint16_t>() % 65535;
        break;
      case 5:
        (what < 128 ? plane.spacing_x_mm : plane.between_slices_mm) = number(in);
        break;
      case 6:
        plane.has_position = plane.has_orientation = what < 128;
        plane.has_spacing = what < 64;
        break;
      default:
        plane.thickness_mm = number(in);
    }
  }
  return planes;
}

bool parallel(const std::vector<io::DicomPlane>& planes) {
  return std::all_of(planes.begin(), planes.end(), [&](const io::DicomPlane& plane) {
    return plane.row == planes[0].row && plane.column == planes[0].column;
  });
}

// Whether the files are named one way or the other is no matter. A limit may be met by a hair in
// one order and missed in the other; then one of them is refused.
void require_any_order(const std::vector<io::DicomPlane>& given,
                       const std::vector<io::DicomPlane>& sorted) {
  std::vector<io::DicomPlane> reversed(given.rbegin(), given.rend());
  if (!fuzz::accepts({ExitCode::kInput}, "series", [&] { io::arrange_planes(reversed, "series"); }))
    return;
  for (size_t k = 0; k < sorted.size(); ++k) {
    fuzz::require(sorted[k].object == reversed[k].object,
                  "the order of the files changed the volume");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  fuzz::Source in(data, size);
  const std::vector<io::DicomPlane> given = planes_of(in);
  std::vector<io::DicomPlane> planes = given;
  Grid grid;
  if (!fuzz::accepts({ExitCode::kInput}, "series",
                     [&] { grid = io::arrange_planes(planes, "series"); })) {
    return 0;
  }
  fuzz::require_sound(grid);
  fuzz::require(grid.size.z == static_cast<int32_t>(given.size()), "a plane was lost");
  for (size_t k = 0; k < planes.size() && planes.size() > 1; ++k) {
    const Vec3d at = world_from_index(grid, {0, 0, static_cast<double>(k)});
    const double allowed = 0.1 * grid.spacing_mm.z + 0.02;
    fuzz::require(norm(at - planes[k].position_mm) <= allowed,
                  "a plane is not where its grid says");
  }
  if (parallel(given)) require_any_order(given, planes);
  return 0;
}
