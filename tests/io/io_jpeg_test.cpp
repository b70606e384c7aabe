// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// JPEG where memory is short.
#include <fstream>

#include "io_test_util.h"
#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include "larch/io/file.h"
#include "larch/io/image.h"

using namespace larch;
using namespace larch::test;

namespace {

std::string segment(int marker, const std::string& body) {
  const size_t length = body.size() + 2;
  return std::string{'\xff', static_cast<char>(marker), static_cast<char>(length >> 8),
                     static_cast<char>(length & 255)} +
         body;
}

/// A scan of coefficients `first` to `last`, from which bit `high` was known, down to bit `low`.
std::string scan(int first, int last, int high, int low, size_t bytes) {
  const std::string band{static_cast<char>(first), static_cast<char>(last),
                         static_cast<char>(high << 4 | low)};
  return segment(0xda, std::string("\1\1\0", 3) + band) + std::string(bytes, '\0');
}

/// A grey progressive picture: all coefficients are held until its two scans are read. In both, the
/// code of "nothing here" has zero bits alone. `bits`: in so many scans per coefficient, if given.
std::string progressive_jpeg(int edge, int bits = 0) {
  const auto blocks = static_cast<size_t>(edge / 8) * static_cast<size_t>(edge / 8);
  const std::string size{static_cast<char>(edge >> 8), static_cast<char>(edge & 255)};
  const std::string none(14, '\0');
  std::string rest = bits == 0 ? scan(1, 63, 0, 0, blocks / 8) : "";
  for (int k = 1; bits > 0 && k < 64; ++k) {
    rest += scan(k, k, 0, bits - 1, blocks / 8);
    for (int low = bits - 2; low >= 0; --low) rest += scan(k, k, low + 1, low, blocks / 8);
  }
  return "\xff\xd8" + segment(0xdb, std::string(1, '\0') + std::string(64, '\x10')) +
         segment(0xc2, "\x08" + size + size + std::string("\1\1\x11\0", 4)) +
         segment(0xc4, std::string("\0\0\2", 3) + none + std::string("\0\4", 2)) +
         segment(0xc4, std::string("\x10\1\0", 3) + none + std::string(1, '\0')) +
         scan(0, 0, 0, 0, blocks * 2 / 8) + rest + "\xff\xd9";
}

rlim_t address_space() {
  size_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  return pages * static_cast<size_t>(::sysconf(_SC_PAGESIZE));
}

/// The exit code that a program would have that reads `path` with so much more address space.
int code_within(rlim_t bytes, const std::string& path) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlim_t limit = address_space() + bytes;
    const rlimit both{limit, limit};
    int code = ::setrlimit(RLIMIT_AS, &both) == 0 ? 0 : 100;
    try {
      read_volume<float>(path);
    } catch (const Error& error) {
      code = static_cast<int>(error.code());
    } catch (const std::bad_alloc&) {
      code = static_cast<int>(ExitCode::kMemory);
    }
    ::_exit(code);
  }
  int status = 0;
  REQUIRE(::waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

}  // namespace

#ifndef __SANITIZE_ADDRESS__  // which takes more address space than there is
TEST_CASE("a JPEG for which memory is missing is not called damaged") {
  const TemporaryFolder folder;
  const std::string path = folder / "large.jpg";
  write_file(path, progressive_jpeg(3200));
  CHECK(read_volume<float>(path)[0] == 128);
  bool fails = false, succeeds = false;
  for (rlim_t mebibytes = 4; mebibytes <= 128; mebibytes += 4) {
    INFO(mebibytes);
    const int code = code_within(mebibytes << 20, path);
    CHECK((code == 0 || code == static_cast<int>(ExitCode::kMemory)));
    fails = fails || code != 0;
    succeeds = succeeds || code == 0;
  }
  CHECK(fails);
  CHECK(succeeds);
}
#endif

// Each scan of a byte goes through all coefficients of the picture.
TEST_CASE("a JPEG of hundreds of scans is refused") {
  const TemporaryFolder folder;
  write_file(folder / "some.jpg", progressive_jpeg(32, 7));
  CHECK(read_volume<float>(folder / "some.jpg")[0] == 128);
  write_file(folder / "many.jpg", progressive_jpeg(32, 8));
  CHECK_THAT(message_of<InputError>([&] { read_volume<float>(folder / "many.jpg"); }),
             Catch::Contains("more than 500 scans"));
}
