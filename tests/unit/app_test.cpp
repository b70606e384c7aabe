// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <optional>
#include <sstream>
#include <system_error>
#include <thread>

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/app/outputs/file_set.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/records/input_digests.h"
#include "larch/app/records/shared_folder.h"
#include "larch/app/records/sidecar.h"
#include "larch/app/records/sidecar_commit.h"
#include "larch/app/resources.h"
#include "larch/app/signals.h"
#include "larch/core/digest.h"
#include "larch/core/parallel.h"
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

Failure failure_from(const std::function<void()>& body) {
  try {
    body();
  } catch (...) {
    return failure_of(std::current_exception());
  }
  return {};
}

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

TEST_CASE("the code of a failure is that of the outermost Larch error; the chain is whole") {
  const Failure nested = failure_from([] {
    try {
      throw DeviceError("inner");
    } catch (...) {
      std::throw_with_nested(InputError("outer"));
    }
  });
  CHECK(nested.code == ExitCode::kInput);
  CHECK(nested.chain == std::vector<std::string>{"outer", "inner"});
  const Failure foreign = failure_from([] {
    try {
      throw MemoryError("inner");
    } catch (...) {
      std::throw_with_nested(std::runtime_error("outer"));
    }
  });
  CHECK(foreign.code == ExitCode::kMemory);
  CHECK(failure_from([] { throw std::bad_alloc(); }).code == ExitCode::kMemory);
  CHECK(failure_from([] { throw std::runtime_error("x"); }).code == ExitCode::kBug);
  CHECK(failure_from([] { throw 5; }).code == ExitCode::kBug);
  CHECK(failure_from([] { throw Stopped("x"); }).stopped);
}

TEST_CASE("threads: flag, LARCH_THREADS, SLURM_CPUS_PER_TASK, affinity") {
  setenv("SLURM_CPUS_PER_TASK", "7", 1);
  setenv("LARCH_THREADS", "5", 1);
  CHECK(choose_threads(3) == 3);
  CHECK(std::string(std::getenv("ITK_GLOBAL_DEFAULT_NUMBER_OF_THREADS")) == "3");
  CHECK(choose_threads(std::nullopt) == 5);
  for (const char* wrong : {"0", "-1", "2x", "5000", "99999999999"}) {
    setenv("LARCH_THREADS", wrong, 1);
    CHECK_THROWS_AS(choose_threads(std::nullopt), UsageError);
  }
  setenv("LARCH_THREADS", "", 1);
  CHECK(choose_threads(std::nullopt) == 7);
  setenv("SLURM_CPUS_PER_TASK", "many", 1);
  const int allowed = choose_threads(std::nullopt);
  CHECK(allowed >= 1);
  CHECK(allowed <= sysconf(_SC_NPROCESSORS_CONF));
  unsetenv("SLURM_CPUS_PER_TASK");
  unsetenv("LARCH_THREADS");
}

TEST_CASE("device: flag, LARCH_DEVICE, auto") {
  unsetenv("LARCH_DEVICE");
  CHECK(choose_run_device("").reason.rfind("auto: ", 0) == 0);
  setenv("LARCH_DEVICE", "cpu", 1);
  CHECK(choose_run_device("").reason == "LARCH_DEVICE cpu");
  setenv("LARCH_DEVICE", "gpu", 1);
  CHECK(choose_run_device("cpu").reason == "--device cpu");
  CHECK_THROWS_WITH(choose_run_device(""), Catch::StartsWith("LARCH_DEVICE: "));
  unsetenv("LARCH_DEVICE");
}

TEST_CASE("log levels: flags win over LARCH_LOGLEVEL") {
  setenv("LARCH_LOGLEVEL", "error", 1);
  CHECK(choose_log_level(false, 0) == LogLevel::kError);
  CHECK(choose_log_level(true, 0) == LogLevel::kWarning);
  CHECK(choose_log_level(false, 2) == LogLevel::kDebug);
  CHECK_THROWS_AS(choose_log_level(true, 1), UsageError);
  setenv("LARCH_LOGLEVEL", "warnings", 1);
  CHECK_THROWS_WITH(choose_log_level(false, 0), Catch::Contains("did you mean 'warning'?"));
  unsetenv("LARCH_LOGLEVEL");
  CHECK(choose_log_level(false, 0) == LogLevel::kInfo);
}

/// Runs `body` in a child process and returns how that ended, as the shell says it.
int exit_code_of(const std::function<void()>& body) {
  const pid_t child = fork();
  if (child == 0) {
    body();
    _exit(99);
  }
  int status = 0;
  REQUIRE(waitpid(child, &status, 0) == child);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

TEST_CASE("a signal ends the process in time, and removes temporaries, but tears no commit") {
  const Folder folder;
  const std::string temporary = folder / "t", committed = folder / "c";
  const int code = exit_code_of([&] {
    catch_signals();
    std::ofstream(temporary) << "half";
    remember_temporary(temporary);
    {
      const Committing not_torn;
      raise(SIGTERM);
      raise(SIGTERM);  // would end the process at once
      std::ofstream(committed) << "whole";
    }
    while (true) pause();
  });
  CHECK(code == 143);
  CHECK(fs::exists(committed));
  CHECK_FALSE(fs::exists(temporary));
}

TEST_CASE("a commit that hangs does not keep the process for ever") {
  CHECK(exit_code_of([] {
          catch_signals();
          const Committing never_over;
          raise(SIGINT);
          raise(SIGINT);
          while (true) pause();
        }) == 130);
}

TEST_CASE("an exception that nobody can catch ends the process with its code") {
  const Folder folder;
  const std::string temporary = folder / "t";
  const auto thrower = [&](auto error) {
    return [=] {
      catch_terminate();
      std::ofstream(temporary) << "half";
      remember_temporary(temporary);
      std::thread([=] { throw error; }).join();
    };
  };
  CHECK(exit_code_of(thrower(std::bad_alloc())) == 5);
  CHECK_FALSE(fs::exists(temporary));
  CHECK(exit_code_of(thrower(std::system_error(EAGAIN, std::generic_category()))) == 5);
  CHECK(exit_code_of(thrower(InputError("x"))) == 3);
  CHECK(exit_code_of(thrower(std::logic_error("x"))) == 1);
}

#ifndef __SANITIZE_ADDRESS__  // which takes memory, and address space, of its own
TEST_CASE("operator new says how much was asked for") {
  constexpr size_t kTooMuch = size_t{1} << 46;
  const Failure failure = failure_from([] { std::vector<char> v(kTooMuch); });
  CHECK(failure.code == ExitCode::kMemory);
  CHECK(failure.chain.front().find("(70368744177664 bytes) needed") != std::string::npos);
}
#endif

#ifndef __SANITIZE_ADDRESS__  // which takes memory, and address space, of its own
TEST_CASE("threads that cannot be had are an error of memory, with numbers") {
  const int code = exit_code_of([] {
    rlimit limit{};
    getrlimit(RLIMIT_AS, &limit);
    limit.rlim_cur = size_t{600} << 20;
    setrlimit(RLIMIT_AS, &limit);
    try {
      start_threads(1000);
    } catch (const MemoryError& error) {
      const bool numbers = std::string(error.what()).find("1000 needed, ") != std::string::npos;
      std::atomic<int> sum{0};
      parallel_for(8, 100, 1, [&](int64_t, int64_t) { ++sum; });  // with those that there are
      _exit(numbers && sum == 100 ? 5 : 98);
    }
  });
  CHECK(code == 5);
}
#endif

TEST_CASE("a line of progress is due after 10 % or 30 s, whichever is later") {
  CHECK(progress_line_is_due(0.1, 0.0, 30));
  CHECK_FALSE(progress_line_is_due(0.9, 0.0, 29.9));
  CHECK_FALSE(progress_line_is_due(0.09, 0.0, 300));
  CHECK(progress_line_is_due(0.3, 0.2, 31));
}

TEST_CASE("the digest of a folder depends on names and contents, not on their order on disk") {
  const Folder folder;
  fs::create_directories(folder / "d/sub");
  std::ofstream(folder / "d/sub/b") << "2";
  std::ofstream(folder / "d/a") << "1";
  const std::string rows =
      sha256_of_file(folder / "d/a") + "  a\n" + sha256_of_file(folder / "d/sub/b") + "  sub/b\n";
  Sha256 sum;
  sum.update(rows.data(), rows.size());
  CHECK(input_digest(folder / "d") == hex(sum.digest()));
  CHECK(input_digest("/dev/null").empty());
}

TEST_CASE("a folder is known again by names, sizes, both times and inodes of its files") {
  const Folder folder;
  fs::create_directories(folder / "d/sub");
  const std::string slice = folder / "d/sub/b";
  std::ofstream(slice) << "old";
  std::ofstream(folder / "d/a") << "1";
  const config::Json before = input_stamp(folder / "d");
  CHECK(input_stamp(folder / "d") == before);
  const std::string digest = input_digest(folder / "d");
  const auto put_back_time = [&slice, time = fs::last_write_time(slice)] {
    fs::last_write_time(slice, time);
  };
  // The times of files advance in ticks of the kernel.
  const auto change = [&](const std::function<void()>& how) {
    for (int i = 0; i < 1000 && input_stamp(folder / "d") == before; ++i) {
      how();
      put_back_time();
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
  };
  change([&] { std::ofstream(slice) << "new"; });
  CHECK(input_stamp(folder / "d") != before);
  CHECK(input_digest(folder / "d") != digest);
}

TEST_CASE("an input that is written over during the run has changed, whatever its size and time") {
  const Folder folder;
  fs::create_directories(folder / "d");
  const std::string slice = folder / "d/a";
  std::ofstream(slice) << "old";
  const auto time = fs::last_write_time(slice);
  for (const std::string& input : {slice, std::string(folder / "d")}) {
    InputDigests digests;
    digests.note(input);
    // The times of files advance in ticks of the kernel.
    const config::Json before = input_stamp(input);
    for (int i = 0; i < 1000 && input_stamp(input) == before; ++i) {
      std::ofstream(slice) << "new";
      fs::last_write_time(slice, time);
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    }
    const config::Json record = digests.record(input);
    CHECK(record.value("ChangedDuringRun", false));
    CHECK_FALSE(record.contains("SHA256"));
  }
}

TEST_CASE("an input that was not there when it was noted has changed during the run") {
  const Folder folder;
  InputDigests digests;
  digests.note(folder / "a");
  CHECK(digests.record(folder / "a") == config::Json::object());
  std::ofstream(folder / "a") << "1";
  CHECK(digests.record(folder / "a").value("ChangedDuringRun", false));
}

}  // namespace
}  // namespace larch::detail
