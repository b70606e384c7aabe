// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// ITK as referee: components, holes and distances of random masks and of real label maps.
#include <algorithm>
#include <map>
#include <random>
#include <set>

#include <itkBinaryFillholeImageFilter.h>
#include <itkConnectedComponentImageFilter.h>
#include <itkSignedMaurerDistanceMapImageFilter.h>

#include "larch/filters/components.h"
#include "larch/filters/distance.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"

using namespace larch;
using namespace larch::test;

namespace {

template <unsigned D>
using Mask = itk::Image<uint8_t, D>;

template <unsigned D>
typename Mask<D>::Pointer to_itk(const Volume<uint8_t>& mask) {
  auto image = Mask<D>::New();
  typename Mask<D>::SizeType size;
  typename Mask<D>::SpacingType spacing;
  for (unsigned axis = 0; axis < D; ++axis) {
    size[axis] = static_cast<itk::SizeValueType>(mask.size()[static_cast<int>(axis)]);
    spacing[axis] = mask.grid().spacing_mm[static_cast<int>(axis)];
  }
  image->SetRegions(size);
  image->SetSpacing(spacing);
  image->Allocate();
  std::transform(mask.begin(), mask.end(), image->GetBufferPointer(),
                 [](uint8_t voxel) { return voxel != 0; });
  return image;
}

template <unsigned D>
void compare_in(const Volume<uint8_t>& mask) {
  using Labels = itk::Image<uint32_t, D>;
  auto connected = itk::ConnectedComponentImageFilter<Mask<D>, Labels>::New();
  connected->SetInput(to_itk<D>(mask));
  connected->SetFullyConnected(false);
  connected->Update();
  const uint32_t* labels = connected->GetOutput()->GetBufferPointer();
  std::map<uint32_t, int64_t> sizes;
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (labels[i] != 0) ++sizes[labels[i]];
  }
  // Of equal sizes there may be several: what is kept is one of the components of the largest.
  int64_t largest = 0;
  for (const auto& [label, size] : sizes) largest = std::max(largest, size);
  const Volume<uint8_t> kept = filters::keep_largest_component(mask, 1, 2);
  CHECK(std::count(kept.begin(), kept.end(), uint8_t{1}) == largest);
  std::set<uint32_t> kept_labels;
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    if (kept[i] != 0) kept_labels.insert(labels[i]);
  }
  CHECK(kept_labels.size() == (largest > 0 ? 1 : 0));

  auto fill = itk::BinaryFillholeImageFilter<Mask<D>>::New();
  fill->SetInput(to_itk<D>(mask));
  fill->SetForegroundValue(1);
  fill->SetFullyConnected(false);
  fill->Update();
  const Volume<uint8_t> filled = filters::fill_holes(mask, 2);
  CHECK(std::equal(filled.begin(), filled.end(), fill->GetOutput()->GetBufferPointer()));

  const int64_t inside = std::count_if(mask.begin(), mask.end(), [](uint8_t v) { return v != 0; });
  if (inside == 0 || inside == mask.voxels()) return;
  auto maurer = itk::SignedMaurerDistanceMapImageFilter<Mask<D>, itk::Image<float, D>>::New();
  maurer->SetInput(to_itk<D>(mask));
  maurer->SetUseImageSpacing(true);
  maurer->SetSquaredDistance(false);
  maurer->SetInsideIsPositive(false);
  maurer->SetBackgroundValue(0);
  maurer->Update();
  const float* wanted = maurer->GetOutput()->GetBufferPointer();
  const Volume<float> distance = filters::signed_distance_mm(mask, 2);
  double worst = 0;
  for (int64_t i = 0; i < mask.voxels(); ++i) {
    worst = std::max(worst, std::abs(static_cast<double>(distance[i]) - wanted[i]) /
                                (1 + std::abs(static_cast<double>(wanted[i]))));
  }
  CHECK(worst < 1e-5);  // ITK keeps squares in single precision
}

void compare(const Volume<uint8_t>& mask) {
  mask.size().z == 1 ? compare_in<2>(mask) : compare_in<3>(mask);
}

}  // namespace

TEST_CASE("components, holes and distances of random masks are those of ITK") {
  std::mt19937 random(2);
  const auto below = [&](int n) { return static_cast<int>(random() % static_cast<unsigned>(n)); };
  for (int round = 0; round < 60; ++round) {
    Grid grid;
    grid.size = {2 + below(20), 2 + below(20), round % 4 == 0 ? 1 : 2 + below(20)};
    grid.spacing_mm = {0.5 + below(5) / 3.0, 1, 0.7 + below(3)};
    Volume<uint8_t> mask(grid);
    const int share = 1 + below(9);
    for (uint8_t& voxel : mask) voxel = below(10) < share ? 3 : 0;
    compare(mask);
  }
}

TEST_CASE("components, holes and distances of real label maps are those of ITK") {
  const std::string folder = data_folder() + "/hippocampus/labels";
  int seen = 0;
  if (fs::is_directory(folder)) {
    std::set<fs::path> paths;
    for (const auto& entry : fs::directory_iterator(folder)) {
      if (entry.path().filename().string()[0] != '.') paths.insert(entry.path());
    }
    for (const fs::path& path : paths) {
      if (++seen > 5) break;
      const LabelVolume labels = read_labels(path.string());
      for (const int32_t wanted : {1, 2}) {
        Volume<uint8_t> mask(labels.grid());
        std::transform(labels.begin(), labels.end(), mask.begin(),
                       [&](int32_t label) { return label == wanted; });
        compare(mask);
      }
    }
  }
  if (seen == 0) WARN("no label maps of LARCH_TEST_DATA: left out");
}
