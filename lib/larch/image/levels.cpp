// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/image/levels.h"

#include <cmath>

#include "larch/core/dispatch.h"
#include "larch/core/parallel.h"

namespace larch::image {
namespace cpu {

void make_level(const LevelJob& job, const Context& context) {
  const auto rows = [&](const Vec3i& size, const auto& voxel) {
    parallel_for(context.threads, size.z, 1, [&](int64_t begin, int64_t end) {
      for (int z = static_cast<int>(begin); z < end; ++z)
        for (int y = 0; y < size.y; ++y)
          for (int x = 0; x < size.x; ++x) voxel(Vec3i{x, y, z});
    });
  };
  if (job.coarse.data != nullptr) {
    rows(job.coarse.size,
         [&](const Vec3i& v) { job.coarse(v) = pyramid_voxel(job.fine, v.x, v.y, v.z); });
  }
  if (job.texels != nullptr) {
    rows(job.fine.size,
         [&](const Vec3i& v) { job.texels[job.fine.linear(v)] = texel_at(job.fine, v); });
  }
}

}  // namespace cpu

namespace {

constexpr Dispatch<void(const LevelJob&, const Context&)> kMakeLevel{
    "image::make_levels", cpu::make_level, LARCH_CUDA_FN(cuda::make_level)};

}  // namespace

void make_level(const LevelJob& job, const Context& context) {
  kMakeLevel(context.device, job, context);
}

ImageExtent extent_of(const Grid& image, const Grid& model) {
  constexpr double kParallel = 1e-6;  // voxels over the whole grid
  ImageExtent extent;
  extent.first = index_from_world(image, model.origin_mm);
  extent.size = image.size.cast<double>();
  for (int axis = 0; axis < 3; ++axis) {
    const Vec3d along = model.direction.column(axis);
    extent.step[axis] = index_from_world(image, model.origin_mm + along) - extent.first;
    int moved = 0;
    for (int a = 0; a < 3; ++a) {
      const double way = extent.step[axis][a] * model.spacing_mm[axis] * model.size[axis];
      moved += std::abs(way) > kParallel ? 1 : 0;
    }
    if (moved > 1) extent.is_part = 1;
  }
  return extent;
}

std::vector<LevelImage> make_levels(VolumeView<const int16_t> voxels, int halvings,
                                    int first_texels, const Context& context,
                                    const ImageExtent& extent) {
  std::vector<LevelImage> levels(static_cast<size_t>(halvings) + 1);
  const auto count = [](const Vec3i& s) { return static_cast<size_t>(int64_t{s.x} * s.y * s.z); };
  levels[0].size = voxels.size;
  levels[0].voxels = {context.device, std::span(voxels.data, count(voxels.size))};
  for (size_t l = 0; l < levels.size(); ++l) {
    LevelImage& fine = levels[l];
    fine.extent = extent;
    LevelJob job{{fine.voxels.data(), fine.size}, {}, nullptr};
    if (static_cast<int>(l) >= first_texels) {
      fine.texels = Buffer<Texel>(context.device, count(fine.size) + 1);
      job.texels = fine.texels.data();
    }
    if (l + 1 < levels.size()) {
      LevelImage& coarse = levels[l + 1];
      coarse.size = pyramid_size(fine.size);
      coarse.voxels = Buffer<int16_t>(context.device, count(coarse.size));
      job.coarse = {coarse.voxels.data(), coarse.size};
    }
    make_level(job, context);
  }
  return levels;
}

}  // namespace larch::image
