// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>

#include <itkImageFileReader.h>

#include "larch/data/grid.h"

namespace larch::test {

/// The image that ITK reads from a file, by the factories that the test has registered.
template <class Image>
typename Image::Pointer read_file_by_itk(const std::string& path) {
  auto reader = itk::ImageFileReader<Image>::New();
  reader->SetFileName(path);
  reader->Update();
  return reader->GetOutput();
}

/// The grid of an image of ITK with three axes.
template <class Image>
Grid grid_of_itk(const Image& image) {
  Grid grid;
  for (unsigned i = 0; i < 3; ++i) {
    const int axis = static_cast<int>(i);
    grid.size[axis] = static_cast<int>(image.GetLargestPossibleRegion().GetSize(i));
    grid.spacing_mm[axis] = image.GetSpacing()[i];
    grid.origin_mm[axis] = image.GetOrigin()[i];
    for (unsigned row = 0; row < 3; ++row) {
      grid.direction.m[row][i] = image.GetDirection()(row, i);
    }
  }
  return grid;
}

}  // namespace larch::test
