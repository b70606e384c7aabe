// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cmath>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <new>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "catch2/catch.hpp"
#include <sys/resource.h>
#include <sys/wait.h>
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

/// What is wrong with an input, and a part of the message that says so.
struct Refusal {
  std::string input, message;
};

/// Checks that the error of each input, which `error` gives, says what is wrong.
template <class F>
void check_refusals(F&& error, const std::vector<Refusal>& rows) {
  for (const auto& [input, message] : rows) {
    CHECK_THAT(error(input), Catch::Contains(message));
  }
}

/// Reads the file at `path` with each of its bytes, every `step`-th, flipped by each mask, and
/// counts the errors, which are of the input or of memory. `read` gives whether what it got is
/// sound.
template <class F>
int errors_of_flipped_bytes(const std::string& path, const std::vector<int>& masks, size_t step,
                            F&& read) {
  const std::string bytes = read_file(path);
  int errors = 0;
  for (size_t at = 0; at < bytes.size(); at += step) {
    for (const int mask : masks) {
      std::string flipped = bytes;
      flipped[at] = static_cast<char>(flipped[at] ^ mask);
      write_file(path, flipped);
      try {
        const bool sound = read();
        CHECK(sound);
      } catch (const Error& error) {
        ++errors;
        CHECK((error.code() == ExitCode::kInput || error.code() == ExitCode::kMemory));
      }
    }
  }
  return errors;
}

/// How a process of its own ends, as waitpid tells it, whose exit code `action` gives.
template <class F>
int status_of_child(F&& action) {
  const pid_t child = ::fork();
  if (child == 0) ::_exit(action());
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return status;
}

/// The exit code that a program would have that does `action` with so much of a resource: that of
/// the error; 100 for any other exception, -1 for none because it crashed.
template <class F>
int code_within(decltype(RLIMIT_AS) resource, rlim_t most, F&& action) {
  const int status = status_of_child([&] {
    const rlimit limit{most, most};
    std::signal(SIGXFSZ, SIG_IGN);
    try {
      if (::setrlimit(resource, &limit) != 0) return 100;
      action();
    } catch (const Error& error) {
      return static_cast<int>(error.code());
    } catch (const std::bad_alloc&) {
      return static_cast<int>(ExitCode::kMemory);
    } catch (...) {
      return 100;
    }
    return 0;
  });
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

/// The bytes of address space that this process has.
inline rlim_t address_space() {
  rlim_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<rlim_t>(::sysconf(_SC_PAGESIZE));
}

/// The lines of apps/reading-images.md in the sections whose headings `counts` takes.
template <class F>
std::vector<std::string> lines_of_page(F&& counts) {
  const char* source = std::getenv("LARCH_SOURCE_DIR");
  std::ifstream page(std::string(source != nullptr ? source : ".") + "/apps/reading-images.md");
  std::vector<std::string> lines;
  bool here = false;
  for (std::string line; std::getline(page, line);) {
    if (line.starts_with("## ")) here = counts(line);
    if (here) lines.push_back(line);
  }
  REQUIRE_FALSE(lines.empty());
  return lines;
}

/// The messages that such lines promise: the code that the last column of a table is.
inline std::set<std::string> promised_messages(const std::vector<std::string>& lines) {
  std::set<std::string> messages;
  for (const std::string& line : lines) {
    const size_t end = line.rfind("` |"), begin = line.rfind('`', end - 1);
    if (end == std::string::npos || end + 3 != line.size()) continue;
    if (line.rfind('|', begin) + 2 == begin) {
      messages.insert(line.substr(begin + 1, end - begin - 1));
    }
  }
  return messages;
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

/// True if Python with nibabel is there, the reader of other people's that outputs are checked
/// with; warns otherwise.
inline bool has_nibabel() {
  static const bool there = shell("/usr/bin/python3 -c 'import nibabel' 2>/dev/null");
  if (!there) WARN("skipped: python3-nibabel is not installed");
  return there;
}

}  // namespace larch::test
