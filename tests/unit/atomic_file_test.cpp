// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The one writer of files: names, locks, links, streams, and what killed runs leave behind.
#include "larch/files/atomic_file.h"

#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <thread>

#include <catch2/catch.hpp>
#include <sys/wait.h>
#include <unistd.h>

#include "larch/files/temporaries.h"
#include "tests/unit/folder.h"

namespace larch {
namespace {

namespace fs = std::filesystem;
using test::content;
using test::Folder;

void put(const std::string& path, const std::string& text) {
  std::ofstream(path) << text;
}

void make_two_hours_old(const std::string& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
}

TEST_CASE("a temporary that was put in another's place is neither renamed nor believed") {
  const Folder folder;
  const auto careless = [&](const std::string& temporary) {
    fs::remove(temporary);
    put(temporary, "of another patient");
  };
  CHECK_THROWS_WITH(write_atomically(folder / "x", careless), Catch::Contains("replaced"));
  CHECK_FALSE(fs::exists(folder / "x"));
}

TEST_CASE("a file that appears under a free name is not replaced, not even in between") {
  const Folder folder;
  AtomicFile file(folder / "x");
  put(file.temporary(), "mine");
  file.flush();
  put(folder / "x", "of someone else");
  CHECK(file.commit(/*replace=*/false) == EEXIST);
  CHECK(content(folder / "x") == "of someone else");
}

TEST_CASE("taking back spares a file that another process put there since") {
  const Folder folder;
  AtomicFile file(folder / "x");
  put(file.temporary(), "mine");
  REQUIRE(file.commit(/*replace=*/false) == 0);
  put(folder / "y", "of someone else");
  fs::rename(folder / "y", folder / "x");
  file.take_back();
  CHECK(content(folder / "x") == "of someone else");
}

TEST_CASE("a file that is being written is no leftover, however long it takes") {
  const Folder folder;
  const AtomicFile file(folder / "x");
  const pid_t other = fork();
  if (other == 0) {
    make_two_hours_old(file.temporary());
    const Leftovers found = remove_leftovers(folder.path.string());
    _exit(found.removed.empty() && found.doubtful.empty() ? 0 : 1);
  }
  int status = 0;
  waitpid(other, &status, 0);
  CHECK(status == 0);
  CHECK(fs::exists(file.temporary()));
}

TEST_CASE(
    "the end of a process that cannot unwind removes more temporaries than there were slots") {
  const Folder folder;
  const pid_t child = fork();
  if (child == 0) {
    std::vector<std::unique_ptr<AtomicFile>> files;
    for (int i = 0; i < 700; ++i) {
      files.push_back(std::make_unique<AtomicFile>(folder / std::to_string(i)));
      files.back()->release();
    }
    remove_own_temporaries();
    _exit(0);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(folder.count() == 0);
}

}  // namespace
}  // namespace larch
