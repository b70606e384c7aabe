// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <filesystem>
#include <fstream>
#include <functional>
#include <string>

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "larch/app/outputs/file_set.h"
#include "larch/app/outputs/growing_output.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/records/shared_folder.h"
#include "larch/app/records/sidecar.h"
#include "larch/app/records/sidecar_commit.h"
#include "larch/files/atomic_file.h"
#include "larch/files/temporaries.h"
#include "tests/unit/failure.h"
#include "tests/unit/folder.h"

namespace {
std::atomic<int> flushes{0};
}

/// In place of the C library's, so that a test can count.
extern "C" int fsync(int file) {
  ++flushes;
  return static_cast<int>(syscall(SYS_fsync, file));
}

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using test::content;
using test::failure_from;
using test::Folder;

TEST_CASE("files of a set appear together or not at all") {
  const Folder folder;
  const Context context;
  {
    FileSet files(false, context);
    files.write(folder / "a.txt", text_writer("a"));
    files.write(folder / "b.txt", text_writer("b"));
    CHECK_FALSE(fs::exists(folder / "a.txt"));
    files.commit();
    CHECK(content(folder / "a.txt") == "a");
    CHECK(content(folder / "b.txt") == "b");
  }
  {
    FileSet files(true, context);
    files.write(folder / "a.txt", text_writer("new"));
    const Writer broken = [](const std::string& path) {
      std::ofstream(path) << "half";
      throw std::runtime_error("broke at " + path);
    };
    const Failure failure = failure_from([&] { files.write(folder / "c.txt", broken); });
    CHECK(failure.code == ExitCode::kOutput);
    CHECK(failure.chain == std::vector<std::string>{"cannot write '" + (folder / "c.txt") + "'",
                                                    "broke at " + (folder / "c.txt")});
  }
  CHECK(content(folder / "a.txt") == "a");
  CHECK(folder.count() == 2);
}

TEST_CASE("an output grows under its temporary name and appears with the set, or not at all") {
  const Folder folder;
  const Context context;
  const std::string path = folder / "grown.txt";
  {
    const GrowingOutput output(path, context);
    std::ofstream file(output.temporary());
    output.fill([&] { file << "one " << std::flush; });
    output.fill([&] { file << "two" << std::flush; });
    CHECK_FALSE(fs::exists(path));
    Outputs outputs;
    outputs.add(output, "output").add(GrowingOutput(), "field");
    REQUIRE(outputs.files.size() == 1);
    CHECK(outputs.files[0].path == path);
    FileSet files(/*replace=*/false, context);
    files.take(outputs.files[0].filled);
    files.commit();
  }
  CHECK(content(path) == "one two");
  {
    const GrowingOutput output((folder / "failed.txt"), context);
    const auto full = [&] { throw OutputError("'" + output.temporary() + "' is full"); };
    CHECK_THROWS_WITH(output.fill(full), "cannot write '" + (folder / "failed.txt") + "'");
  }
  CHECK(folder.count() == 1);
}

TEST_CASE("a name that is taken during the run is not replaced, and the others are taken back") {
  const Folder folder;
  const Context context;
  FileSet files(false, context);
  files.write(folder / "a.txt", text_writer("a"));
  files.write(folder / "b.txt", text_writer("b"));
  std::ofstream(folder / "b.txt") << "of someone else";
  CHECK_THROWS_AS(files.commit(), OutputError);
  CHECK_FALSE(fs::exists(folder / "a.txt"));
  CHECK(content(folder / "b.txt") == "of someone else");
}

TEST_CASE("a stop request keeps files from being written") {
  const Folder folder;
  std::atomic<int> stop{0};
  Context context;
  context.stop = &stop;
  FileSet files(false, context);
  files.write(folder / "a.txt", text_writer("a"));
  stop = 143;
  CHECK_THROWS_AS(files.write(folder / "b.txt", text_writer("b")), Stopped);
  CHECK_THROWS_AS(files.commit(), Stopped);
  CHECK_FALSE(fs::exists(folder / "a.txt"));
}

TEST_CASE("a set of more files than may be held open") {
  const Folder folder;
  const pid_t child = fork();  // the limit cannot be raised again
  if (child == 0) {
    const Context context;
    FileSet files(false, context);
    const struct rlimit few { 300, 300 };
    bool done = setrlimit(RLIMIT_NOFILE, &few) == 0;
    try {
      for (int i = 0; i < 400; ++i) files.write(folder / std::to_string(i), text_writer("x"));
      files.commit();
    } catch (const OutputError&) {
      done = false;
    }
    _exit(done ? 0 : 1);
  }
  int status = 0;
  waitpid(child, &status, 0);
  CHECK(status == 0);
  CHECK(folder.count() == 400);
}

TEST_CASE("a file of a set is flushed once, and the folder once for all of them") {
  const Folder folder;
  const Context context;
  FileSet files(false, context);
  flushes = 0;
  const Writer nested = [](const std::string& path) {
    write_atomically(path, text_writer("in the temporary itself"));
  };
  for (const char* name : {"a", "b", "c"}) files.write(folder / name, nested);
  CHECK(folder.count() == 3);
  CHECK(flushes == 3);
  files.commit();
  CHECK(flushes == 4);
  CHECK(content(folder / "b") == "in the temporary itself");
}

TEST_CASE("outputs with sidecars: a flush for each file, and one for each folder") {
  const Folder folder;
  const Context context;
  fs::create_directories(folder / "other");
  const std::string a = folder / "a", b = folder / "other/b";
  for (const bool again : {false, true}) {
    FileSet files(again, context);
    files.write(a, text_writer("a"));
    files.write(b, text_writer("b"));
    files.write(folder / "table", text_writer("t"));
    flushes = 0;
    const std::vector<Sidecar> sidecars{{a, a + ".json", "{}", false, {"a", "table"}},
                                        {b, b + ".json", "{}", false, {"b"}}};
    commit_with_sidecars(files, sidecars, "test", again, context);
    // Two sidecars, of outputs that are replaced twice two, and two folders.
    CHECK(flushes == (again ? 6 : 4));
    CHECK(content(a + ".json") == "{}");
    CHECK(content(b) == "b");
  }
  CHECK(folder.count() == 4);
}

TEST_CASE(
    "outputs that another run put there meanwhile keep their sidecar, but not that of an orphan") {
  const Folder folder;
  const Context context;
  const std::string a = folder / "a",
                    orphan = R"({"Larch": {"Status": "done", "Outputs": [{"Name": "a"}]}})";
  std::ofstream(a + ".json") << orphan;
  const std::vector<Sidecar> sidecars{{a, a + ".json", "{}", false, {"a"}}};
  FileSet files(/*replace=*/false, context);
  files.write(a, text_writer("a"));
  files.write(folder / "b", text_writer("b"));
  std::ofstream(folder / "b") << "of another run";
  CHECK_THROWS_AS(commit_with_sidecars(files, sidecars, "test", false, context), OutputError);
  CHECK_FALSE(fs::exists(a));
  CHECK_FALSE(fs::exists(a + ".json"));
  // A file of that name that is no sidecar of this output is not replaced.
  for (const char* foreign :
       {"{}", R"({"Larch": {"Status": "done", "Outputs": [{"Name": "c"}]}})"}) {
    std::ofstream(a + ".json") << foreign;
    FileSet again(/*replace=*/false, context);
    again.write(a, text_writer("a"));
    CHECK_THROWS_AS(commit_with_sidecars(again, sidecars, "test", false, context), OutputError);
    CHECK(content(a + ".json") == foreign);
    CHECK_FALSE(fs::exists(a));
  }
}

TEST_CASE("outputs get their names while no other run gives names in the folder") {
  const Folder folder;
  const Context context;
  fs::create_directories(folder / "other");
  const std::string a = folder / "a", b = folder / "other/b";
  const std::vector<Sidecar> sidecars{{a, a + ".json", "{}", false, {"a"}},
                                      {b, b + ".json", "{}", false, {"b"}}};
  const std::string where = folder / "other";
  std::optional<FolderLock> held(std::in_place, where, 0, FolderLock::On::kFolder);
  REQUIRE(held->state() == FolderLock::State::kTaken);
  FileSet files(/*replace=*/true, context);
  files.write(a, text_writer("a"));
  files.write(b, text_writer("b"));
  const auto commit = [&] {
    commit_with_sidecars(files, sidecars, "test", true, context, nullptr, 0.05);
  };
  CHECK_THROWS_WITH(commit(), Catch::Contains("another run holds the lock"));
  for (const std::string& path : {a, b, a + ".json", b + ".json"}) CHECK_FALSE(fs::exists(path));
  held.reset();
  commit();
  CHECK(content(b) == "b");
}

TEST_CASE("without --force only the output that was seen is replaced") {
  const Folder folder;
  const Context context;
  const std::string a = folder / "a", b = folder / "b";
  std::ofstream(a) << "old";
  SeenOutputs seen;
  seen.note(a);
  seen.note(b);
  const auto commit = [&] {
    FileSet files(/*replace=*/true, context);
    files.write(a, text_writer("new"));
    files.write(b, text_writer("new"));
    commit_with_sidecars(files, {{a, a + ".json", "{}", false, {"a"}}}, "test", true, context,
                         &seen);
  };
  std::ofstream(b) << "of another run";
  CHECK_THROWS_AS(commit(), OutputAppeared);
  CHECK(content(a) == "old");
  CHECK(content(b) == "of another run");
  CHECK_FALSE(fs::exists(a + ".json"));
  fs::remove(b);
  commit();
  CHECK(content(a) == "new");
  CHECK_THROWS_AS(commit(), OutputAppeared);  // the run's own are no others
}

TEST_CASE("an output without a sidecar takes away that of its own name only") {
  const Folder folder;
  const Context context;
  const std::string a = folder / "a", record = a + ".json";
  for (const bool is_own : {false, true}) {
    std::ofstream(record) << R"({"Larch": {"Status": "done", "Outputs": [{"Name": ")"
                          << (is_own ? "a" : "c") << R"("}]}})";
    FileSet files(/*replace=*/true, context);
    files.write(a, text_writer("a"));
    commit_with_sidecars(files, {{a, record}}, "test", true, context);
    CHECK(fs::exists(record) == !is_own);
  }
}

TEST_CASE("a writer that writes nothing is an error") {
  const Folder folder;
  const Context context;
  FileSet files(true, context);
  CHECK_THROWS_AS(files.write(folder / "y", [](const std::string&) {}), OutputError);
}

}  // namespace
}  // namespace larch::detail
