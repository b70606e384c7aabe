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

#include "larch/core/error.h"
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

void write_text(const std::string& path, const std::string& text) {
  write_atomically(path, [&](const std::string& temporary) { put(temporary, text); });
}

void make_two_hours_old(const std::string& path) {
  fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(2));
}

TEST_CASE("names of temporaries differ and keep the ending") {
  const std::string name = new_temporary_name(".nii.gz");
  CHECK(name.rfind(".larch-", 0) == 0);
  CHECK(is_temporary_name(name));
  CHECK(fs::path(name).extension() == ".gz");
  CHECK(name.substr(name.find('.', 1)) == ".nii.gz");
  CHECK(name.size() >= std::string(".larch--.nii.gz").size() + 32);
  CHECK(name != new_temporary_name(".nii.gz"));
  const Folder folder;
  const auto ending = [&](const std::string& path) {
    const AtomicFile file(folder / path);
    const std::string temporary = fs::path(file.temporary()).filename().string();
    CHECK(folder_of(file.temporary()) == folder.path);
    CHECK(fs::exists(file.temporary()));
    const size_t dot = temporary.find('.', 1);
    return dot == std::string::npos ? "" : temporary.substr(dot);
  };
  CHECK(ending("seg.nii.gz") == ".nii.gz");
  CHECK(ending("x.y.vtk") == ".vtk");
  CHECK(ending("plain").empty());
  CHECK(ending("a." + std::string(250, 'b')).empty());
  CHECK(folder.count() == 0);
}

TEST_CASE("whole files are replaced; the old one stays on failure") {
  const Folder folder;
  write_text(folder / "x.pbt", "1");
  write_text(folder / "x.pbt", "2");
  const auto failing = [&](const std::string& temporary) {
    put(temporary, "3");
    throw OutputError("cannot write '" + temporary + "'");
  };
  CHECK_THROWS_WITH(write_atomically(folder / "x.pbt", failing),
                    "cannot write '" + (folder / "x.pbt") + "'");
  CHECK(content(folder / "x.pbt") == "2");
  CHECK(folder.count() == 1);
  CHECK_THROWS_WITH(write_text(folder / "none/x", ""), Catch::Contains("make the folder first"));
  CHECK_THROWS_WITH(write_text(folder.path.string(), ""), Catch::Contains("is a folder"));
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

TEST_CASE("a try tells why a file cannot be written, and leaves nothing") {
  const Folder folder;
  AtomicFile(folder / "x").flush(/*may_be_empty=*/true);
  CHECK(folder.count() == 0);
  CHECK_THROWS_WITH(AtomicFile(folder / "none/x"), Catch::Contains("No such file or directory"));
}

}  // namespace
}  // namespace larch
