// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <vector>

#include "larch/core/parallel.h"
#include "larch/dsa/field/field_row.h"
#include "larch/dsa/field/warp.h"
#include "larch/dsa/field/warp_math.h"

namespace larch::dsa::cpu {
namespace {

/// Differences, validity and field of a row, counted over all frames.
void subtract_row(const SubtractJob& job, int64_t row, const std::vector<AxisWeights>& columns) {
  const Vec3i& size = job.size;
  const int64_t rows = static_cast<int64_t>(size.y) * size.z;
  const int64_t frame = row / rows;
  Vec3i at{0, static_cast<int32_t>(row % size.y), static_cast<int32_t>(row % rows / size.y)};
  FieldRow field(view_of(job, frame), columns);
  field.move_to(at.y, at.z);
  for (at.x = 0; at.x < size.x; ++at.x) {
    const Vec3i d = field.units_at(at.x);
    const DifferenceAt difference = difference_at(job, frame, at, d);
    const int64_t i = row * size.x + at.x;
    job.differences[i] = difference.value;
    job.validity[i] = static_cast<uint8_t>(difference.validity);
    if (job.field_px != nullptr) job.field_px[i] = field_in_pixels(d);
  }
}

/// What is taken from the differences of a frame.
int32_t mode_of_frame(const int32_t* differences, const uint8_t* validity, int64_t pixels,
                      std::vector<uint32_t>& counts) {
  counts.assign(kModeBins, 0);
  for (int64_t i = 0; i < pixels; ++i) {
    if (validity[i] == 0) ++counts[static_cast<size_t>(mode_bin(differences[i]))];
  }
  return mode_of(counts.data());
}

void finish_frame(const SubtractJob& job, int64_t frame, std::vector<uint32_t>& counts) {
  const Vec3i& size = job.size;
  const int64_t pixels = static_cast<int64_t>(size.x) * size.y * size.z;
  const int32_t* differences = job.differences + frame * pixels;
  const uint8_t* validity = job.validity + frame * pixels;
  SubtractFigures figures;
  if (job.takes_mode) figures.mode = mode_of_frame(differences, validity, pixels, counts);
  for (int64_t i = 0; i < pixels; ++i) {
    const GreyValue grey = grey_value(differences[i], figures.mode, job.sign, job.shift);
    job.out[frame * pixels + i] = grey.value;
    figures.clipped += grey.is_clipped ? 1 : 0;
    ++figures.pixels[validity[i]];
  }
  job.figures[frame] = figures;
}

}  // namespace

void subtract(const SubtractJob& job, const Context& context) {
  const Vec3i& size = job.size;
  const int64_t rows = job.frames * size.y * size.z;
  std::vector<AxisWeights> columns;
  columns.reserve(static_cast<size_t>(size.x));
  for (int32_t x = 0; x < size.x; ++x) {
    columns.push_back(axis_weights(job.axes[0], job.border, x));
  }
  parallel_for(context.threads, rows, 16, [&](int64_t begin, int64_t end) {
    for (int64_t row = begin; row < end; ++row) subtract_row(job, row, columns);
  });
  parallel_for(context.threads, job.frames, 1, [&](int64_t begin, int64_t end) {
    std::vector<uint32_t> counts;
    for (int64_t frame = begin; frame < end; ++frame) finish_frame(job, frame, counts);
  });
}

}  // namespace larch::dsa::cpu
