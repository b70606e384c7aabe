// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/filters.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include <itkBinaryFillholeImageFilter.h>
#include <itkConnectedComponentImageFilter.h>
#include <itkImportImageFilter.h>
#include <itkSignedMaurerDistanceMapImageFilter.h>

#include "larch/core/error.h"

namespace larch {
namespace {

template <class T, unsigned D>
using Image = itk::Image<T, D>;

Volume<uint8_t> binary(const Volume<uint8_t>& mask) {
  Volume<uint8_t> out(mask.grid());
  std::transform(mask.begin(), mask.end(), out.begin(),
                 [](uint8_t value) { return static_cast<uint8_t>(value != 0 ? 1 : 0); });
  return out;
}

// An ITK image of dimension D with a copy of the voxels. Only the spacing matters to these filters.
template <unsigned D>
typename Image<uint8_t, D>::Pointer to_itk(const Volume<uint8_t>& mask) {
  auto image = Image<uint8_t, D>::New();
  typename Image<uint8_t, D>::SizeType size;
  typename Image<uint8_t, D>::SpacingType spacing;
  for (unsigned axis = 0; axis < D; ++axis) {
    size[axis] = static_cast<itk::SizeValueType>(mask.size()[static_cast<int>(axis)]);
    spacing[axis] = mask.grid().spacing_mm[static_cast<int>(axis)];
  }
  image->SetRegions(size);
  image->SetSpacing(spacing);
  image->Allocate();
  std::copy(mask.begin(), mask.end(), image->GetBufferPointer());
  return image;
}

template <class T, unsigned D>
Volume<T> from_itk(const Image<T, D>& image, const Grid& grid) {
  Volume<T> out(grid);
  std::copy_n(image.GetBufferPointer(), out.voxels(), out.data());
  return out;
}

// The box [lo, hi) around the voxels that are not 0, one voxel wider where the volume goes on. What
// components and holes are inside is the same as in the volume: all voxels outside of it are
// background that is connected to the border.
struct Box {
  Vec3i lo, hi;
};

Box box_of(const Volume<uint8_t>& mask) {
  Box box{mask.size(), {0, 0, 0}};
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (mask[i] == 0) continue;
    const Vec3i at = mask.grid().voxel(i);
    for (int axis = 0; axis < 3; ++axis) {
      box.lo[axis] = std::min(box.lo[axis], std::max(0, at[axis] - 1));
      box.hi[axis] = std::max(box.hi[axis], std::min(mask.size()[axis], at[axis] + 2));
    }
  }
  return box;
}

// Calls row(index in the volume, index in the box, voxels) for each row of the box.
template <class F>
void for_rows(const Box& box, const Grid& grid, F&& row) {
  int64_t inside = 0;
  for (int z = box.lo.z; z < box.hi.z; ++z) {
    for (int y = box.lo.y; y < box.hi.y; ++y) {
      const int64_t voxels = box.hi.x - box.lo.x;
      row(grid.linear({box.lo.x, y, z}), inside, voxels);
      inside += voxels;
    }
  }
}

// filter(mask), computed in the box of the mask alone.
template <class F>
Volume<uint8_t> in_box(const Volume<uint8_t>& mask, F&& filter) {
  Volume<uint8_t> out(mask.grid());
  const Box box = box_of(mask);
  if (box.hi.x == 0) return out;  // nothing is set
  Grid grid = mask.grid();
  grid.size = box.hi - box.lo;
  Volume<uint8_t> part(grid);
  for_rows(box, mask.grid(), [&](int64_t from, int64_t to, int64_t voxels) {
    std::copy_n(mask.data() + from, voxels, part.data() + to);
  });
  part = filter(part);
  for_rows(box, mask.grid(), [&](int64_t to, int64_t from, int64_t voxels) {
    std::copy_n(part.data() + from, voxels, out.data() + to);
  });
  return out;
}

// Runs `filter<D>` with D = 2 for single slices, so that neighbours across slices do not count.
template <class F>
auto by_dimension(const Volume<uint8_t>& mask, F&& filter) {
  return mask.size().z == 1 ? filter.template operator()<2>() : filter.template operator()<3>();
}

Volume<uint32_t> components(const Volume<uint8_t>& mask) {
  return by_dimension(mask, [&]<unsigned D>() {
    using Filter = itk::ConnectedComponentImageFilter<Image<uint8_t, D>, Image<uint32_t, D>>;
    auto filter = Filter::New();
    filter->SetInput(to_itk<D>(binary(mask)));
    filter->SetFullyConnected(false);
    filter->Update();
    return from_itk<uint32_t, D>(*filter->GetOutput(), mask.grid());
  });
}

Volume<uint8_t> largest_components(const Volume<uint8_t>& mask, int n) {
  Volume<uint8_t> out(mask.grid());
  const Volume<uint32_t> labels = components(mask);
  const size_t count = *std::max_element(labels.begin(), labels.end()) + size_t{1};
  std::vector<int64_t> voxels(count, 0), first(count, -1);
  for (int64_t i = 0; i < labels.voxels(); ++i) {
    if (first[labels[i]] < 0) first[labels[i]] = i;
    ++voxels[labels[i]];
  }
  std::vector<size_t> order(count - 1);
  std::iota(order.begin(), order.end(), size_t{1});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) {
    return voxels[a] != voxels[b] ? voxels[a] > voxels[b] : first[a] < first[b];
  });
  std::vector<uint8_t> keep(count, 0);
  for (size_t i = 0; i < order.size() && i < static_cast<size_t>(n); ++i) keep[order[i]] = 1;
  for (int64_t i = 0; i < out.voxels(); ++i) out[i] = keep[labels[i]];
  return out;
}

Volume<uint8_t> without_holes(const Volume<uint8_t>& mask) {
  return by_dimension(mask, [&]<unsigned D>() {
    auto filter = itk::BinaryFillholeImageFilter<Image<uint8_t, D>>::New();
    filter->SetInput(to_itk<D>(binary(mask)));
    filter->SetForegroundValue(1);
    filter->SetFullyConnected(false);
    filter->Update();
    return from_itk<uint8_t, D>(*filter->GetOutput(), mask.grid());
  });
}

}  // namespace

int64_t count_components(const Volume<uint8_t>& mask) {
  if (mask.empty()) return 0;
  const Volume<uint32_t> labels = components(mask);
  return *std::max_element(labels.begin(), labels.end());
}

Volume<uint8_t> keep_largest_component(const Volume<uint8_t>& mask, int n) {
  if (n < 0) throw UsageError("the number of components to keep must not be negative");
  return in_box(mask, [n](const Volume<uint8_t>& part) { return largest_components(part, n); });
}

Volume<uint8_t> fill_holes(const Volume<uint8_t>& mask) {
  return in_box(mask, without_holes);
}

Volume<float> signed_distance_mm(const Volume<uint8_t>& mask) {
  const int64_t inside = std::count_if(mask.begin(), mask.end(), [](uint8_t v) { return v != 0; });
  if (inside == 0 || inside == mask.voxels()) {
    throw InputError(std::string("the mask is ") + (inside == 0 ? "empty" : "full") +
                     ", so it has no boundary to measure distances from");
  }
  return by_dimension(mask, [&]<unsigned D>() {
    using Filter = itk::SignedMaurerDistanceMapImageFilter<Image<uint8_t, D>, Image<float, D>>;
    auto filter = Filter::New();
    filter->SetInput(to_itk<D>(binary(mask)));
    filter->SetUseImageSpacing(true);
    filter->SetSquaredDistance(false);
    filter->SetInsideIsPositive(false);
    filter->SetBackgroundValue(0);
    filter->Update();
    return from_itk<float, D>(*filter->GetOutput(), mask.grid());
  });
}

}  // namespace larch
