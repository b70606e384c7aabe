// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <iostream>

#include <itkImageFileReader.h>

#include "larch/io/itk/register_image_io.h"

int main(int /*count*/, char** arguments) {
  larch::register_image_io();
  const auto reader = itk::ImageFileReader<itk::Image<float, 3>>::New();
  reader->SetFileName(arguments[1]);  // a NIfTI file, or a folder with a DICOM series
  reader->Update();
  const auto* image = reader->GetOutput();
  std::cout << image->GetOrigin() << " " << image->GetSpacing() << "\n"
            << image->GetDirection() << image->GetPixel({{0, 0, 0}}) << "\n";
}
