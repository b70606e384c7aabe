// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/process.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <exception>

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is of POSIX
#include <sys/resource.h>
#include <unistd.h>

#include "larch/app/failures.h"
#include "larch/core/error.h"
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

namespace {

constexpr int kMaximumThreads = 4096;

std::optional<int> thread_number(const char* text) {
  int number = 0;
  const char* last = text + std::strlen(text);
  const auto [end, error] = std::from_chars(text, last, number);
  const bool good = error == std::errc{} && end == last && number >= 1 && number <= kMaximumThreads;
  return good ? std::optional<int>(number) : std::nullopt;
}

int allowed_processors() {
  cpu_set_t set;
  CPU_ZERO(&set);
  if (sched_getaffinity(0, sizeof set, &set) != 0) return 1;
  return std::max(1, CPU_COUNT(&set));
}

/// Touches the stack page by page, so that the kernel maps it now.
void touch_stack() {
  constexpr size_t kPage = 4096, kBytes = size_t{512} << 10;
  char stack[kBytes];
  volatile char* const touched = stack;
  for (size_t i = 0; i < kBytes; i += kPage) touched[kBytes - 1 - i] = 0;
}

}  // namespace

const char* variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr || *value == '\0' ? nullptr : value;
}

int choose_threads(const std::optional<int>& flag) {
  if (flag) return *flag;
  if (const char* text = variable("LARCH_THREADS")) {
    const std::optional<int> number = thread_number(text);
    if (!number) {
      throw UsageError(std::string("LARCH_THREADS: '") + text + "' is not a number in [1, 4096]");
    }
    return *number;
  }
  if (const char* text = variable("SLURM_CPUS_PER_TASK")) {
    if (const std::optional<int> number = thread_number(text)) return *number;
  }
  return allowed_processors();
}

void open_standard_streams() {
  for (int file = STDIN_FILENO; file <= STDERR_FILENO; ++file) {
    if (::fcntl(file, F_GETFD) >= 0 || errno != EBADF) continue;
    // Results for a closed standard output must fail; log lines for nobody need not.
    ::open("/dev/null", file == STDERR_FILENO ? O_WRONLY : O_RDONLY);
  }
}

void prepare_for_limits() {
  rlimit limit{};
  getrlimit(RLIMIT_STACK, &limit);
  constexpr rlim_t kEnough = rlim_t{2} << 20;
  if (limit.rlim_cur >= kEnough) touch_stack();
  getrlimit(RLIMIT_AS, &limit);
  if (limit.rlim_cur != RLIM_INFINITY) mallopt(M_ARENA_MAX, 1);
}

ChosenDevice choose_run_device(const std::string& flag, const std::string& cpu_alone) {
  ChosenDevice chosen;
  const char* environment = variable("LARCH_DEVICE");
  const std::string source = !flag.empty() ? "--device" : environment ? "LARCH_DEVICE" : "auto";
  const std::string text = !flag.empty() ? flag : environment ? environment : "auto";
  if (!cpu_alone.empty()) {
    const std::string why = cpu_alone + " runs on the CPU alone";
    if (text == "auto") return {Device::cpu(), "auto: " + why};
    if (text.rfind("cuda", 0) == 0) {
      throw DeviceError(source + " " + text + ": " + why + "; use auto or cpu");
    }
  }
  const bool takes_all = text == "cuda:all";
  std::string why;
  try {
    chosen.device = choose_device(takes_all ? "cuda" : text, &why);
    for (int i = 1; takes_all && i < cuda_device_count(); ++i) {
      chosen.more_devices.push_back(Device::cuda(i));
    }
  } catch (const UsageError& error) {
    throw UsageError(source + ": " + error.what());
  }
  chosen.reason = text == "auto" ? "auto: " + why : source + " " + text;
  if (takes_all) chosen.reason += ", " + std::to_string(chosen.more_devices.size() + 1) + " in all";
  return chosen;
}

}  // namespace larch::detail
