// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// JPEG where memory is short, or time would be.
#include <fstream>

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/wait.h>

#include "larch/files/file.h"
#include "larch/io/image/image.h"
#include "tests/io/io_test_util.h"
#include "tests/io/jpeg_maker.h"

using namespace larch;
using namespace larch::test;

namespace {

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
