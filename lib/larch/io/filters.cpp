// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/io/filters.h"

#include <algorithm>
#include <string>

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

// Runs `filter<D>` with D = 2 for single slices, so that neighbours across slices do not count.
template <class F>
auto by_dimension(const Volume<uint8_t>& mask, F&& filter) {
  return mask.size().z == 1 ? filter.template operator()<2>() : filter.template operator()<3>();
}

}  // namespace

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
