// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstdio>

#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_object.h"

namespace larch::io {
namespace {

constexpr double kSameDirection = 1e-3;  // of unit vectors, about 0.06 degrees
constexpr double kSamePositionMm = 1e-3;
constexpr double kIrregular = 0.05;  // of the slice distance
constexpr double kIrregularMm = 0.01;

std::string mm(double value) {
  char text[32];
  std::snprintf(text, sizeof text, "%.4g mm", value);
  return text;
}

std::string quoted(const DicomPlane& a, const DicomPlane& b) {
  return "'" + a.name + "' and '" + b.name + "'";
}

void check_alike(const std::vector<DicomPlane>& planes, const std::string& path) {
  const DicomPlane& a = planes.front();
  const double tolerance = 1e-3 * a.spacing_x_mm;
  const auto size = [](const DicomPlane& plane) {
    return std::to_string(plane.size.x) + "x" + std::to_string(plane.size.y);
  };
  for (const DicomPlane& b : planes) {
    std::string difference;
    if (a.size != b.size) {
      difference = "size (" + size(a) + " against " + size(b) + ")";
    } else if (norm(a.row - b.row) > kSameDirection || norm(a.column - b.column) > kSameDirection) {
      difference = "orientation (mixed planes, perhaps localizers)";
    } else if (std::abs(a.spacing_x_mm - b.spacing_x_mm) > tolerance ||
               std::abs(a.spacing_y_mm - b.spacing_y_mm) > tolerance) {
      difference = "pixel spacing (" + mm(a.spacing_x_mm) + " against " + mm(b.spacing_x_mm) + ")";
    } else {
      continue;
    }
    bad(path, quoted(a, b) + " differ in " + difference + "; move one kind to another folder");
  }
}

bool is_placed(const DicomPlane& plane) {
  return plane.has_position && plane.has_orientation;
}

/// Throws unless each plane has a place: no volume can be made of them otherwise.
void check_placed(const std::vector<DicomPlane>& planes, const std::string& path) {
  for (const DicomPlane& plane : planes) {
    if (is_placed(plane)) continue;
    bad(path, "'" + plane.name +
                  "' has no position or orientation in space (ImagePositionPatient, "
                  "ImageOrientationPatient), so that its " +
                  std::to_string(planes.size()) + " slices make no volume; give a single slice");
  }
}

void check_spacing(const std::vector<DicomPlane>& planes, const std::string& path,
                   const ReadOptions& options) {
  for (const DicomPlane& plane : planes) {
    if (plane.has_spacing) continue;
    if (!plane.is_square) {
      bad(path, "'" + plane.name +
                    "' has a PixelAspectRatio that is not 1, but no pixel spacing; give it a "
                    "PixelSpacing");
    }
    require_allowed(options, Allow::kMissingSpacing,
                    "'" + path + "': '" + plane.name +
                        "' has no PixelSpacing and no ImagerPixelSpacing, so that its size in mm "
                        "is not known",
                    "pixels are taken as 1 mm");
    return;
  }
}

// Several planes at one place: tell time points from a single stray copy.
void check_distinct(const std::vector<DicomPlane>& planes, const Vec3d& normal,
                    const std::string& path) {
  size_t places = 1, first_pair = 0;
  for (size_t i = 1; i < planes.size(); ++i) {
    const double step = dot(planes[i].position_mm - planes[i - 1].position_mm, normal);
    if (step > kSamePositionMm) {
      ++places;
    } else if (first_pair == 0) {
      first_pair = i;
    }
  }
  if (first_pair == 0) return;
  bad(path, std::to_string(planes.size()) + " slices or frames stand at " + std::to_string(places) +
                " positions along the normal, for example " +
                quoted(planes[first_pair - 1], planes[first_pair]) +
                ": several stacks, time points, echoes or copies; keep one per position");
}

void check_regular(const std::vector<DicomPlane>& planes, const Vec3d& step, const Vec3d& normal,
                   const std::string& path) {
  const double allowed = std::max(kIrregular * norm(step), kIrregularMm);
  for (size_t i = 0; i < planes.size(); ++i) {
    const Vec3d expected = planes[0].position_mm + step * static_cast<double>(i);
    if (norm(planes[i].position_mm - expected) <= allowed) continue;
    size_t widest = 1, narrowest = 1;
    std::vector<double> gaps(planes.size(), 0);
    for (size_t k = 1; k < planes.size(); ++k) {
      gaps[k] = dot(planes[k].position_mm - planes[k - 1].position_mm, normal);
      if (gaps[k] > gaps[widest] + kSamePositionMm) widest = k;
      if (gaps[k] < gaps[narrowest]) narrowest = k;
    }
    if (gaps[widest] - gaps[narrowest] <= allowed) {
      bad(path, "the slices do not lie on one line: '" + planes[i].name +
                    "' is shifted sideways; remove it or resample the series");
    }
    bad(path, "the slices are not evenly spaced: " + mm(gaps[widest]) + " between " +
                  quoted(planes[widest - 1], planes[widest]) + ", but " + mm(gaps[narrowest]) +
                  " between " + quoted(planes[narrowest - 1], planes[narrowest]) +
                  "; a slice may be missing");
  }
}

// Where SpacingBetweenSlices is given, positions that are a multiple of it apart are what a series
// looks like of which every other slice got lost. Two slices have nothing else to be checked by.
void check_slice_spacing(const std::vector<DicomPlane>& planes, double along_mm,
                         const std::string& path, const ReadOptions& options) {
  for (const DicomPlane& plane : planes) {
    const double given = plane.between_slices_mm;
    if (given == 0) continue;
    const double times = along_mm / given;
    const bool agrees = std::abs(times - 1) <= kIrregular;
    const bool multiple = std::round(times) >= 2 && std::abs(times - std::round(times)) <= 0.1;
    if (agrees || (planes.size() > 2 && !multiple)) continue;
    require_allowed(options, Allow::kSliceSpacing,
                    "'" + path + "': the slices are " + mm(along_mm) + " apart, but '" +
                        plane.name + "' has a SpacingBetweenSlices of " + mm(given) +
                        "; slices may be missing",
                    "the positions are believed");
    return;
  }
}

// Unit vectors, exactly perpendicular; headers have few digits.
void clean_axes(DicomPlane& plane, const std::string& path) {
  const double x = norm(plane.row), y = norm(plane.column);
  if (!(std::abs(x - 1) < 0.01 && std::abs(y - 1) < 0.01) ||
      !(std::abs(dot(plane.row, plane.column)) < 0.01)) {
    bad(path, "'" + plane.name +
                  "' has an ImageOrientationPatient that is not two perpendicular unit vectors; "
                  "repair the header");
  }
  plane.row = plane.row / x;
  plane.column = plane.column - plane.row * dot(plane.row, plane.column);
  plane.column = plane.column / norm(plane.column);
}

}  // namespace

bool is_cine(const DicomObject& object) {
  if (object.frames < 2) return false;
  const DicomPlane& first = object.planes.front();
  const auto stands_with_first = [&](const DicomPlane& plane) {
    return norm(plane.position_mm - first.position_mm) <= kSamePositionMm &&
           norm(plane.row - first.row) <= kSameDirection &&
           norm(plane.column - first.column) <= kSameDirection;
  };
  return !std::ranges::all_of(object.planes, is_placed) ||
         std::ranges::all_of(object.planes, stands_with_first);
}

Grid arrange_planes(std::vector<DicomPlane>& planes, const std::string& path,
                    const ReadOptions& options) {
  for (DicomPlane& plane : planes) clean_axes(plane, path);
  if (planes.size() > 1) check_placed(planes, path);
  check_spacing(planes, path, options);
  check_alike(planes, path);
  const Vec3d normal = cross(planes[0].row, planes[0].column);
  Vec3d step = normal * planes[0].thickness_mm;
  if (planes.size() > 1) {
    std::ranges::stable_sort(
        planes, {}, [&](const DicomPlane& plane) { return dot(plane.position_mm, normal); });
    check_distinct(planes, normal, path);
    step = (planes.back().position_mm - planes.front().position_mm) /
           static_cast<double>(planes.size() - 1);
    check_regular(planes, step, normal, path);
    // Rounded positions are no tilt.
    const double along = dot(step, normal);
    check_slice_spacing(planes, along, path, options);
    if (norm(step - normal * along) < 1e-3 * along) step = normal * along;
  }
  Grid grid;
  grid.size = {planes[0].size.x, planes[0].size.y, static_cast<int32_t>(planes.size())};
  grid.spacing_mm = {planes[0].spacing_x_mm, planes[0].spacing_y_mm, norm(step)};
  grid.origin_mm = planes[0].position_mm;
  const Vec3d axes[3] = {planes[0].row, planes[0].column, step / norm(step)};
  for (int axis = 0; axis < 3; ++axis)
    for (int row = 0; row < 3; ++row) grid.direction.m[row][axis] = axes[axis][row] + 0.0;
  check_geometry(grid, path);
  return grid;
}

}  // namespace larch::io
