// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <filesystem>
#include <string>

#include <itkGDCMImageIO.h>
#include <itkGDCMSeriesFileNames.h>
#include <itkImageFileReader.h>
#include <itkImageFileWriter.h>
#include <itkImageSeriesReader.h>
#include <itkJPEGImageIO.h>
#include <itkMetaImageIO.h>
#include <itkNiftiImageIO.h>
#include <itkNrrdImageIO.h>
#include <itkPNGImageIO.h>
#include <itkTIFFImageIO.h>

#include "larch/data/volume.h"
#include "larch/files/file.h"

namespace larch::test {

/// ITK's own reader and writer of a file, by its ending: the factory would give Larch's.
inline itk::ImageIOBase::Pointer stock_io(const std::string& path) {
  const std::string ending = file_extension(path);
  const auto is = [&](const char* words) {
    return std::string(words).find(ending + " ") != std::string::npos;
  };
  if (is(".nii .nii.gz .hdr .img ")) return itk::NiftiImageIO::New().GetPointer();
  if (is(".nrrd .nhdr ")) return itk::NrrdImageIO::New().GetPointer();
  if (is(".mha .mhd ")) return itk::MetaImageIO::New().GetPointer();
  if (is(".png ")) return itk::PNGImageIO::New().GetPointer();
  if (is(".jpg ")) return itk::JPEGImageIO::New().GetPointer();
  if (is(".tif ")) return itk::TIFFImageIO::New().GetPointer();
  return itk::GDCMImageIO::New().GetPointer();
}

/// The image that ITK's own readers make of a file, or of a folder of slices.
template <class Image>
typename Image::Pointer read_file_by_itk(const std::string& path) {
  const auto output_of = [](auto reader, const itk::ImageIOBase::Pointer& io) {
    reader->SetImageIO(io);
    reader->Update();
    return typename Image::Pointer(reader->GetOutput());
  };
  if (std::filesystem::is_directory(path)) {
    auto names = itk::GDCMSeriesFileNames::New();
    names->SetDirectory(path);
    auto series = itk::ImageSeriesReader<Image>::New();
    series->SetFileNames(names->GetInputFileNames());
    return output_of(series, itk::GDCMImageIO::New().GetPointer());
  }
  auto reader = itk::ImageFileReader<Image>::New();
  reader->SetFileName(path);
  return output_of(reader, stock_io(path));
}

/// Writes a volume by ITK's own writer.
template <class T>
void write_file_by_itk(const std::string& path, const Volume<T>& volume) {
  using Image = itk::Image<T, 3>;
  auto image = Image::New();
  typename Image::SizeType size;
  typename Image::SpacingType spacing;
  typename Image::PointType origin;
  typename Image::DirectionType direction;
  for (unsigned i = 0; i < 3; ++i) {
    const int axis = static_cast<int>(i);
    size[i] = static_cast<itk::SizeValueType>(volume.size()[axis]);
    spacing[i] = volume.grid().spacing_mm[axis];
    origin[i] = volume.grid().origin_mm[axis];
    for (unsigned row = 0; row < 3; ++row) direction(row, i) = volume.grid().direction.m[row][i];
  }
  image->SetRegions(size);
  image->SetSpacing(spacing);
  image->SetOrigin(origin);
  image->SetDirection(direction);
  image->Allocate();
  std::copy(volume.begin(), volume.end(), image->GetBufferPointer());
  auto writer = itk::ImageFileWriter<Image>::New();
  writer->SetImageIO(stock_io(path));
  writer->SetFileName(path);
  writer->SetInput(image);
  writer->Update();
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
