// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <optional>
#include <set>
#include <utility>

#include "larch/core/text.h"
#include "larch/io/bytes/message.h"
#include "larch/io/dicom/dicom_object.h"

namespace larch::io {
namespace {

constexpr double kSameDirection = 1e-3;  // of unit vectors, about 0.06 degrees
constexpr double kSamePositionMm = 1e-3;
constexpr double kIrregular = 0.05;  // of the slice distance
constexpr double kIrregularMm = 0.01;

std::string mm(double value) {
  return number_text(value, 4) + " mm";
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

// Throws, or warns, unless each plane has a spacing; an aspect ratio stands for one.
void check_spacing(std::vector<DicomPlane>& planes, const std::string& path,
                   const ReadOptions& options) {
  bool is_told = false;
  for (DicomPlane& plane : planes) {
    if (plane.has_spacing) continue;
    if (plane.aspect_y != plane.aspect_x) {
      plane.spacing_y_mm = plane.aspect_y;
      plane.spacing_x_mm = plane.aspect_x;
      if (options.warn && !std::exchange(is_told, true)) {
        options.warn("'" + path + "': '" + plane.name +
                     "' has no pixel spacing; its PixelAspectRatio is taken for it, in mm");
      }
      continue;
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

// The step of slices whose positions a writer rounded to tenths of a mm, if there is one that all
// of them can be rounded from: the middle of all such steps. Nothing for others, and for steps so
// small that a missing slice could pass for rounding.
std::optional<Vec3d> rounded_step(const std::vector<DicomPlane>& planes, const Vec3d& normal) {
  constexpr double kRoundedMm = 0.1, kMinimumStepMm = 0.5, kExact = 1e-6;
  constexpr size_t kMaximum = 10000;  // each of which is compared with all others
  if (planes.size() > kMaximum) return std::nullopt;
  Vec3d step{};
  for (int axis = 0; axis < 3; ++axis) {
    const bool is_rounded = std::ranges::all_of(planes, [&](const DicomPlane& plane) {
      const double tenths = plane.position_mm[axis] / kRoundedMm;
      return std::abs(tenths - std::round(tenths)) < kExact;
    });
    const double off = (is_rounded ? kRoundedMm : 0) + kExact;
    double least = -INFINITY, most = INFINITY;
    for (size_t i = 1; i < planes.size(); ++i) {
      for (size_t k = 0; k < i; ++k) {
        const double way = planes[i].position_mm[axis] - planes[k].position_mm[axis];
        least = std::max(least, (way - off) / static_cast<double>(i - k));
        most = std::min(most, (way + off) / static_cast<double>(i - k));
      }
    }
    if (least > most) return std::nullopt;
    step[axis] = (least + most) / 2;
  }
  const Vec3d along = normal * dot(step, normal);
  if (norm(along) < kMinimumStepMm) return std::nullopt;
  const bool is_tilted =
      norm(step - along) * static_cast<double>(planes.size() - 1) > 2 * kRoundedMm;
  return is_tilted ? step : along;
}

// Throws unless the planes are one step apart, which is corrected for positions that are rounded.
void check_regular(const std::vector<DicomPlane>& planes, Vec3d& step, const Vec3d& normal,
                   const std::string& path, const ReadOptions& options) {
  const double allowed = std::max(kIrregular * norm(step), kIrregularMm);
  for (size_t i = 0; i < planes.size(); ++i) {
    const Vec3d expected = planes[0].position_mm + step * static_cast<double>(i);
    if (norm(planes[i].position_mm - expected) <= allowed) continue;
    if (const std::optional<Vec3d> rounded = rounded_step(planes, normal)) {
      step = *rounded;
      if (!options.warn) return;
      return options.warn("'" + path + "': the positions of the slices are rounded to 0.1 mm; " +
                          mm(norm(step)) + " between them agree with all");
    }
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
  if (object.frames < 2 || object.is_segmentation()) return false;
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
    check_regular(planes, step, normal, path, options);
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

Grid arrange_segments(std::vector<DicomPlane>& planes, const std::string& path,
                      const ReadOptions& options) {
  constexpr double kMaximumSlices = 1e4;
  for (DicomPlane& plane : planes) clean_axes(plane, path);
  check_alike(planes, path);
  if (std::ranges::any_of(planes, is_placed)) check_placed(planes, path);
  const Vec3d normal = cross(planes[0].row, planes[0].column);
  const auto depth = [&](const DicomPlane& plane) { return dot(plane.position_mm, normal); };
  std::ranges::stable_sort(planes, {}, depth);
  std::vector<double> gaps(planes.size(), 0);  // before each frame; 0: it is of the slice before
  double least = INFINITY;
  for (size_t i = 1; i < planes.size(); ++i) {
    const double gap = depth(planes[i]) - depth(planes[i - 1]);
    if (gap > kSamePositionMm) least = std::min(least, gaps[i] = gap);
  }
  const bool is_one = least == INFINITY;
  const auto is_step = [&](double step) {
    return step > 0 && std::ranges::all_of(gaps, [&](double gap) {
             return std::abs(gap / step - std::round(gap / step)) <= kIrregular;
           });
  };
  double step = planes[0].between_slices_mm, slice = 0;
  if (!is_step(step)) step = is_one ? planes[0].thickness_mm : least;
  const bool is_even = is_step(step);
  std::set<std::pair<double, int>> taken;  // slices and segments
  for (size_t i = 0; i < planes.size(); ++i) {
    slice += std::round(gaps[i] / step);
    if (slice > kMaximumSlices) bad(path, "its frames lie too far apart; it is damaged");
    planes[i].slice = static_cast<int>(slice);
    if (taken.emplace(slice, planes[i].segment).second) continue;
    bad(path, "frames of it are of one segment at one position, for example '" + planes[i].name +
                  "'; write one time and source alone");
  }
  Vec3d along = normal * step;
  if (!is_one) along = (planes.back().position_mm - planes.front().position_mm) / slice;
  double first = 0, last = slice;
  for (int end = 0; end < 2 && options.label_grid && is_placed(planes[0]); ++end) {
    const Vec3d at =
        world_from_index(*options.label_grid, {0, 0, end * (options.label_grid->size.z - 1.0)});
    const double number = (dot(at, normal) - depth(planes[0])) / dot(along, normal);
    if (std::abs(number - std::round(number)) > 0.1 || std::abs(number) > kMaximumSlices) continue;
    first = std::min(first, std::round(number));
    last = std::max(last, std::round(number));
  }
  std::vector<DicomPlane> slices(static_cast<size_t>(last - first) + 1, planes[0]);
  for (size_t i = 0; i < slices.size(); ++i) {
    slices[i].position_mm += along * (first + static_cast<double>(i));
    slices[i].thickness_mm = step;
  }
  for (DicomPlane& plane : planes) {
    plane.slice -= static_cast<int>(first);
    const Vec3d& expected = slices[static_cast<size_t>(plane.slice)].position_mm;
    const double aside = norm(plane.position_mm - expected);
    if (is_even && aside <= std::max(kIrregular * step, kIrregularMm)) continue;
    bad(path, "'" + plane.name + "' lies beside the line of the evenly spaced slices that the " +
                  "other frames make; it is damaged");
  }
  return arrange_planes(slices, path, options);
}

}  // namespace larch::io
