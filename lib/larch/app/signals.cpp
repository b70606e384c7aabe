// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/signals.h"

#include <cerrno>
#include <cstring>
#include <ctime>
#include <exception>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is of POSIX
#include <unistd.h>

#include "larch/app/failures.h"
#include "larch/files/temporaries.h"

namespace larch::detail {
namespace {

constexpr unsigned kSecondsToEnd = 8, kSecondsToCommit = 1;

// A handler may only touch lock-free atomics and call async-signal-safe functions.
std::atomic<int> stop_code{0};
std::atomic<int> committing{0};
std::atomic<bool> ending{false}, waited_for_commit{false};

void say(const char* text) {
  // A write that fails is passed over: the process ends in any case.
  [[maybe_unused]] const ssize_t written = write(STDERR_FILENO, text, std::strlen(text));
}

void sleep_milliseconds(long milliseconds) {
  timespec time{0, milliseconds * 1000000};
  nanosleep(&time, nullptr);
}

[[noreturn]] void end_now(int code) {
  remove_own_temporaries();
  // Other threads run on: one may have made a file between its name and the removal.
  sleep_milliseconds(20);
  remove_own_temporaries();
  _exit(code);
}

/// Ends the process, or does so a little later if outputs are getting their names. The order of the
/// two flags, here and in Committing, is what keeps a commit from beginning in between.
void end_or_wait() {
  ending = true;
  if (committing > 0 && !waited_for_commit.exchange(true)) {
    ending = false;
    alarm(kSecondsToCommit);
    return;
  }
  end_now(stop_code);
}

void on_signal(int number) {
  const int saved_errno = errno;
  int expected = 0;
  if (stop_code.compare_exchange_strong(expected, 128 + number)) {
    alarm(kSecondsToEnd);
  } else {
    end_or_wait();
  }
  errno = saved_errno;
}

void on_alarm(int number) {
  const int saved_errno = errno;
  if (stop_code == 0) {  // somebody else's timer, set before this program was started
    signal(number, SIG_DFL);
    raise(number);
    return;
  }
  if (!waited_for_commit) {
    say("warning: what runs now cannot be interrupted; ended without waiting for it\n");
  }
  end_or_wait();
  errno = saved_errno;
}

[[noreturn]] void on_terminate() {
  int code = static_cast<int>(ExitCode::kBug);
  try {
    if (const std::exception_ptr error = std::current_exception()) {
      const Failure failure = failure_of(error);
      code = static_cast<int>(failure.code);
      say(failure.expected ? "error: " : "error: unexpected: ");
      say(failure.chain.front().c_str());
      say("\n");
    }
  } catch (...) {
    code = static_cast<int>(ExitCode::kMemory);
    say("error: out of memory\n");
  }
  end_now(code);
}

void catch_one(int number, void (*handler)(int)) {
  struct sigaction action {};
  action.sa_handler = handler;
  action.sa_flags = SA_RESTART;
  sigaction(number, &action, nullptr);
}

}  // namespace

const std::atomic<int>* catch_signals() {
  catch_one(SIGINT, on_signal);
  catch_one(SIGTERM, on_signal);
  catch_one(SIGALRM, on_alarm);
  catch_one(SIGXFSZ, SIG_IGN);
  catch_one(SIGPIPE, SIG_IGN);
  // Who started the process may have left them blocked.
  sigset_t caught;
  sigemptyset(&caught);
  for (const int number : {SIGINT, SIGTERM, SIGALRM}) sigaddset(&caught, number);
  pthread_sigmask(SIG_UNBLOCK, &caught, nullptr);
  return &stop_code;
}

Committing::Committing() {
  while (true) {
    ++committing;
    if (!ending) return;
    --committing;
    sleep_milliseconds(10);
  }
}

Committing::~Committing() {
  --committing;
}

void catch_terminate() {
  std::set_terminate(on_terminate);
}

}  // namespace larch::detail
