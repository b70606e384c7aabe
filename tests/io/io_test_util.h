// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <random>
#include <string>

#include "catch2/catch.hpp"
#include <unistd.h>

#include "larch/core/error.h"
#include "larch/data/volume.h"
#include "larch/files/file.h"
#include "tests/unit/folder.h"

namespace larch::test {
namespace fs = std::filesystem;

/// A folder in memory if possible: these tests write thousands of small files.
struct TemporaryFolder : Folder {
  TemporaryFolder()
      : Folder(::access("/dev/shm", W_OK) == 0 ? fs::path("/dev/shm") : fs::temp_directory_path()) {
  }
};

/// The folder with real data that the variable LARCH_TEST_DATA names; empty, with a warning, if it
/// names none. Fails the test if there is no such folder.
inline std::string data_folder() {
  const char* given = std::getenv("LARCH_TEST_DATA");
  if (given == nullptr || *given == '\0') {
    WARN("skipped: LARCH_TEST_DATA names no folder with real data");
    return "";
  }
  INFO("LARCH_TEST_DATA is " << given);
  REQUIRE(fs::is_directory(given));
  return given;
}

/// The message of the error of type E that the action throws; fails the test if it does not.
template <class E, class F>
std::string message_of(F&& action) {
  try {
    action();
  } catch (const E& error) {
    return error.what();
  }
  FAIL("no error of the expected type was thrown");
  return "";
}

/// An oblique grid, left-handed on request.
inline Grid oblique_grid(const Vec3i& size, bool left_handed = false) {
  Grid grid;
  grid.size = size;
  grid.spacing_mm = {0.75, 1.25, 2.5};
  grid.origin_mm = {-12.5, 37.25, -101.75};
  const double a = 0.3, b = -0.7;  // rotations about z and x
  const Mat3 z{{{std::cos(a), -std::sin(a), 0}, {std::sin(a), std::cos(a), 0}, {0, 0, 1}}};
  const Mat3 x{{{1, 0, 0}, {0, std::cos(b), -std::sin(b)}, {0, std::sin(b), std::cos(b)}}};
  grid.direction = z * x;
  if (left_handed) {
    for (auto& row : grid.direction.m) row[1] = -row[1];
  }
  return grid;
}

template <class T>
Volume<T> random_volume(const Grid& grid, double lowest, double highest) {
  std::mt19937 generator(7);
  std::uniform_real_distribution<double> distribution(lowest, highest);
  Volume<T> volume(grid);
  for (T& value : volume) value = static_cast<T>(distribution(generator));
  return volume;
}

template <class A, class B>
bool same_values(const Volume<A>& a, const Volume<B>& b) {
  if (a.size() != b.size()) return false;
  for (int64_t i = 0; i < a.voxels(); ++i)
    if (static_cast<double>(a[i]) != static_cast<double>(b[i])) return false;
  return true;
}

/// Runs a command of the shell; true if it returned 0.
inline bool shell(const std::string& command) {
  return std::system(command.c_str()) == 0;
}

/// True if Python with nibabel is there; the reader of other people's that outputs are checked
/// with.
inline bool has_nibabel() {
  static const bool there = shell("/usr/bin/python3 -c 'import nibabel' 2>/dev/null");
  return there;
}

}  // namespace larch::test
