// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <new>
#include <system_error>
#include <thread>

#include <catch2/catch.hpp>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "larch/app/console.h"
#include "larch/app/failures.h"
#include "larch/app/outputs/outputs.h"
#include "larch/app/process.h"
#include "larch/app/records/results_record.h"
#include "larch/core/digest.h"
#include "larch/core/parallel.h"
#include "larch/files/atomic_file.h"
#include "larch/files/temporaries.h"
#include "tests/unit/failure.h"
#include "tests/unit/folder.h"

namespace larch::detail {
namespace {

namespace fs = std::filesystem;
using test::content;
using test::failure_from;
using test::Folder;

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
  InputDigests digests;
  CHECK(digests.record(folder / "d")["SHA256"] == sha256_of(rows));
  CHECK(digests.record("/dev/null") == config::Json::object());
}

TEST_CASE("a digest that a reader tells is recorded, unless the file changes after it was noted") {
  const Folder folder;
  const std::string path = folder / "model";
  std::ofstream(path) << "1";
  InputDigests digests;
  digests.know(path, "of a file that nobody noted");
  digests.note(path);
  CHECK(digests.record(path)["SHA256"] == sha256_of("1"));
  InputDigests told;
  told.note(path);
  told.know(path, "what the reader says");
  CHECK(told.record(path)["SHA256"] == "what the reader says");
  std::ofstream(path) << "22";
  CHECK(told.record(path)["ChangedDuringRun"] == true);
}

}  // namespace
}  // namespace larch::detail
