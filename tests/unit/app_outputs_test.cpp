// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

#include <catch2/catch.hpp>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "larch/app/command_line.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/records/case_record.h"
#include "larch/files/atomic_file.h"
#include "larch/files/temporaries.h"
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
using test::Folder;

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
    outputs.add(output).add(GrowingOutput());
    REQUIRE(outputs.files.size() == 1);
    CHECK(outputs.files[0].path == path);
    FileSet files(context);
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
  FileSet files(context);
  files.write(folder / "a.txt", text_writer("a"));
  files.write(folder / "b.txt", text_writer("b"));
  std::ofstream(folder / "b.txt") << "of someone else";
  CHECK_THROWS_AS(files.commit([](const std::string&) { return false; }), OutputError);
  CHECK_FALSE(fs::exists(folder / "a.txt"));
  CHECK(content(folder / "b.txt") == "of someone else");
}

TEST_CASE("a set of more files than may be held open") {
  const Folder folder;
  const pid_t child = fork();  // the limit cannot be raised again
  if (child == 0) {
    const Context context;
    FileSet files(context);
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
  FileSet files(context);
  flushes = 0;
  const Writer nested = [](const std::string& path) {
    write_atomically(path, text_writer("in the temporary itself"));
  };
  for (const char* name : {"a", "b", "c"}) files.write(folder / name, nested);
  CHECK(folder.count() == 3);
  CHECK(flushes == 3);
  files.commit();
  files.flush_folders();
  CHECK(flushes == 4);
  CHECK(content(folder / "b") == "in the temporary itself");
}

/// A run with one input and a setting, in a folder.
struct Run {
  struct Options {
    int rounds = 1;
    template <class F>
    void fields(F&& f) {
      f(Field{"rounds", rounds, "rounds"});
    }
  };

  explicit Run(const Folder& folder, int rounds = 1, const char* flag = nullptr)
      : input(folder / "in") {
    if (!fs::exists(input)) std::ofstream(input) << "content";
    options.rounds = rounds;
    program.info = {"copy", "Copies a text."};
    program.flags = config::describe(options);
    std::string words[] = {"copy", flag == nullptr ? "--quiet" : flag};
    char* arguments[] = {words[0].data(), words[1].data()};
    parse_command_line(program, 2, arguments, line);
    options.rounds = rounds;
    files = {folder / "a.json", {{folder / "a", "output"}}, {folder / "a.tsv"}};
  }
  ResultsBasis basis() const { return {program, line, {{"input", input}}}; }
  EarlierCase look() { return look_at_case(files, basis(), digests); }
  void write(const EarlierCase& earlier, const std::string& text) {
    Outputs outputs;
    outputs.add(files.outputs[0].path, text_writer(text));
    outputs.add_companion(files.companions[0], text_writer("t"));
    write_case(files, earlier, {basis(), context, outputs, {}, digests}, context);
  }

  std::string input;
  Options options;
  Program program;
  CommandLine line;
  InputDigests digests;
  Context context;
  CaseFiles files;
};

using State = EarlierCase::State;

TEST_CASE("outputs and a record: a flush for each file and each naming, and one for the folder") {
  const Folder folder;
  Run run(folder);
  const EarlierCase earlier = run.look();
  REQUIRE(earlier.state == State::kCompute);
  flushes = 0;
  run.write(earlier, "one");
  CHECK(flushes == 5);  // two outputs, the record twice, their folder
  CHECK(content(folder / "a") == "one");
  CHECK(folder.count() == 4);
  CHECK(Run(folder, 1, "--skip-existing").look().state == State::kSkip);
  CHECK(Run(folder).look().state == State::kOther);
}

TEST_CASE(
    "what appeared after a case was looked at is not replaced, and nothing of the case is left") {
  const Folder folder;
  Run run(folder);
  const EarlierCase earlier = run.look();
  std::ofstream(folder / "a") << "of another run";
  CHECK_THROWS_AS(run.write(earlier, "one"), OutputAppeared);
  CHECK(content(folder / "a") == "of another run");
  CHECK_FALSE(fs::exists(folder / "a.json"));
  CHECK_FALSE(fs::exists(folder / "a.tsv"));
  Run forced(folder, 1, "--force");
  forced.write(forced.look(), "one");
  CHECK(content(folder / "a") == "one");
}

TEST_CASE("outputs get their names while no other run gives names in the folder") {
  const Folder folder;
  Run run(folder);
  const EarlierCase earlier = run.look();
  const int held = open(folder.path.c_str(), O_RDONLY | O_DIRECTORY);  // as another process has it
  REQUIRE(flock(held, LOCK_EX | LOCK_NB) == 0);
  std::atomic<bool> is_released = false;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(200));
    is_released = true;
    close(held);
  });
  run.write(earlier, "one");
  CHECK(is_released);
  other.join();
  CHECK(content(folder / "a") == "one");
}

}  // namespace
}  // namespace larch::detail
