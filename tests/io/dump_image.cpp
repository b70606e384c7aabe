// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// Usage: dump-image IMAGE OUT.raw [FLAG OF --allow]...
// Reads an image as the programs do, writes its values as float32 and prints size, spacing and the
// world positions of its eight corner voxels as JSON; for comparison with other people's readers.
// Errors go to stderr, warnings too, with the exit codes of the programs.
#include <iostream>

#include <nlohmann/json.hpp>

#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/io/image/image.h"

using namespace larch;

namespace {

void dump(const std::string& path, const std::string& out, const ReadOptions& options) {
  const Volume<float> volume = read_volume<float>(path, options);
  const Grid& grid = volume.grid();
  const Vec3d& mm = grid.spacing_mm;
  nlohmann::json corners;
  for (int corner = 0; corner < 8; ++corner) {
    const Vec3d index{corner & 1 ? grid.size.x - 1.0 : 0, corner & 2 ? grid.size.y - 1.0 : 0,
                      corner & 4 ? grid.size.z - 1.0 : 0};
    const Vec3d at = world_from_index(grid, index);
    corners.push_back({at.x, at.y, at.z});
  }
  const auto* bytes = reinterpret_cast<const char*>(volume.data());
  write_file(out, {bytes, static_cast<size_t>(volume.voxels()) * sizeof(float)});
  std::cout << nlohmann::json{{"size", {grid.size.x, grid.size.y, grid.size.z}},
                              {"spacing", {mm.x, mm.y, mm.z}},
                              {"corners", corners}}
            << "\n";
}

}  // namespace

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  try {
    ReadOptions options;
    options.warn = [](const std::string& text) { std::cerr << "warning: " << text << "\n"; };
    for (int i = 3; i < argc; ++i) {
      for (const auto& [value, name] : enum_names(static_cast<Allow*>(nullptr))) {
        if (std::string(argv[i]) == name) options.allow.push_back(value);
      }
    }
    dump(argv[1], argv[2], options);
    return 0;
  } catch (const Error& error) {
    std::cerr << "error: " << error.what() << "\n";
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    std::cerr << "unexpected: " << error.what() << "\n";
    return 1;
  }
}
