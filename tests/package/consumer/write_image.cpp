// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Writes what read_by_itk.cpp reads, and prints what Larch's own functions read of it.
#include <filesystem>
#include <iostream>
#include <limits>

#include "larch/image.h"

using namespace larch;

namespace {

void print(const char* path) {
  ReadOptions options;
  options.keeps_not_finite = true;
  const Volume<float> volume = read_volume<float>(path, options);
  const auto shown = [](const Vec3d& v) {
    std::cout << "[" << v.x << ", " << v.y << ", " << v.z << "]";
  };
  const Grid& grid = volume.grid();
  shown(grid.origin_mm);
  std::cout << " ";
  shown(grid.spacing_mm);
  std::cout << "\n";
  for (const auto& row : grid.direction.m) {
    std::cout << row[0] << " " << row[1] << " " << row[2] << "\n";
  }
  std::cout << volume[0] << "\n";
}

}  // namespace

int main() {
  Grid grid{.size = {2, 3, 4}, .spacing_mm = {1.5, 2, 2.5}, .origin_mm = {-10, 20, 30}};
  Volume<float> floats(grid, 1.5F);
  floats[0] = std::numeric_limits<float>::quiet_NaN();
  write_volume("nan.nii.gz", floats);
  grid.direction = {{{0.8, 0, -0.6}, {0.6, 0, 0.8}, {0, -1, 0}}};
  const Volume<int16_t> slices(grid, -7);
  std::filesystem::create_directory("series");
  for (int k = 0; k < 4; ++k) {
    write_dicom_slice("series/" + std::to_string(k) + ".dcm", slices, k,
                      {"Doe^Jane", "1", "oblique", "2.25.1", "2.25.2", "2.25.3"});
  }
  print("nan.nii.gz");
  print("series");
}
