// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/resources.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include <fcntl.h>
#include <malloc.h>
#include <sched.h>
#include <sys/resource.h>
#include <unistd.h>

#include "larch/core/error.h"

namespace larch::detail {
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
  std::string why;
  try {
    chosen.device = choose_device(text, &why);
  } catch (const UsageError& error) {
    throw UsageError(source + ": " + error.what());
  }
  chosen.reason = text == "auto" ? "auto: " + why : source + " " + text;
  return chosen;
}

}  // namespace larch::detail
