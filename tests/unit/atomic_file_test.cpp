// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
// The one writer of files: names, locks, links, streams, and what killed runs leave behind.
#include "larch/files/atomic_file.h"

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
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

TEST_CASE("what a link names is replaced and the link stays") {
  const Folder folder;
  fs::create_directory(folder / "deep");
  put(folder / "deep/target", "old");
  fs::create_symlink("deep/target", folder / "link");
  fs::create_symlink("link", folder / "second");
  fs::create_symlink("deep/new", folder / "dangling");
  fs::create_symlink("loop", folder / "loop");
  write_text(folder / "second", "1");
  CHECK(content(folder / "deep/target") == "1");
  write_text(folder / "dangling", "2");
  CHECK(content(folder / "deep/new") == "2");
  for (const char* name : {"link", "second", "dangling"}) {
    CHECK(fs::is_symlink(folder / name));
  }
  CHECK_THROWS_AS(write_text(folder / "loop", ""), OutputError);
  CHECK_THROWS_AS(write_text(folder / std::string(300, 'n'), ""), OutputError);
}

TEST_CASE("pipes, devices and descriptors are refused and stay what they are") {
  const Folder folder;
  const std::string pipe = folder / "pipe.nii.gz";
  REQUIRE(mkfifo(pipe.c_str(), 0600) == 0);
  fs::create_symlink("pipe.nii.gz", folder / "link");
  const int file = open((folder / "redirected").c_str(), O_RDWR | O_CREAT, 0600);
  const std::string descriptor = "/dev/fd/" + std::to_string(file);
  for (const std::string& name : {pipe, folder / "link", descriptor, std::string("/dev/null")}) {
    CHECK_THROWS_AS(write_text(name, "text"), OutputError);
  }
  close(file);
  CHECK(fs::is_fifo(pipe));
  CHECK(fs::is_character_file("/dev/null"));
  CHECK(content(folder / "redirected").empty());
  CHECK(folder.count() == 3);
}

TEST_CASE("leftovers of this host go when they are old and their writer is gone") {
  const Folder folder;
  const auto leftover = [&](const std::string& name) {
    put(folder / name, "half");
    make_two_hours_old(folder / name);
    return folder / name;
  };
  const std::string old = leftover(new_temporary_name(".nii.gz"));
  const std::string young = folder / new_temporary_name(".nii.gz");
  put(young, "half");
  const std::string held = leftover(new_temporary_name(".tsv"));
  const int lock = open(held.c_str(), O_RDWR);
  REQUIRE(flock(lock, LOCK_EX) == 0);
  std::string elsewhere = new_temporary_name("");
  elsewhere[8] = elsewhere[8] == '0' ? '1' : '0';
  const std::string other_host = leftover(elsewhere);
  const std::string former = leftover(".larch-1-0.nii.gz");
  fs::create_symlink("target", folder / new_temporary_name(""));
  put(folder / "target", "a result");
  make_two_hours_old(folder / "target");

  const Leftovers found = remove_leftovers(folder.path.string());
  CHECK(found.removed == std::vector<std::string>{old});
  std::vector<std::string> doubtful = found.doubtful;
  std::sort(doubtful.begin(), doubtful.end());
  std::vector<std::string> expected{other_host, former};
  std::sort(expected.begin(), expected.end());
  CHECK(doubtful == expected);
  CHECK_FALSE(fs::exists(old));
  CHECK(folder.count() == 6);
  close(lock);
  CHECK(remove_leftovers(folder.path.string()).removed == std::vector<std::string>{held});
  CHECK(remove_leftovers(folder / "none").doubtful.empty());
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

TEST_CASE("a leftover under any name does not stop a run") {
  const Folder folder;
  put(folder / (".larch-" + std::to_string(getpid()) + "-0.txt"), "of another container");
  put(folder / (".larch-" + std::to_string(getpid()) + "-1.txt"), "of another container");
  write_text(folder / "a.txt", "1");
  write_text(folder / "b.txt", "2");
  CHECK(content(folder / "b.txt") == "2");
  CHECK(folder.count() == 4);
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
