// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/signals.h"

#include <array>
#include <deque>
#include <mutex>

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is of POSIX
#include <unistd.h>

namespace larch::detail {
namespace {

// A handler may only touch lock-free atomics and call async-signal-safe functions such as unlink.
std::atomic<int> stop_code{0};
std::array<std::atomic<const char*>, 512> temporaries{};

void on_signal(int number) {
  int expected = 0;
  if (stop_code.compare_exchange_strong(expected, 128 + number)) return;
  for (const auto& name : temporaries) {
    const char* path = name.load();
    if (path != nullptr) unlink(path);
  }
  _exit(128 + number);
}

}  // namespace

const std::atomic<int>* catch_signals() {
  struct sigaction action {};
  action.sa_handler = on_signal;
  action.sa_flags = SA_RESTART;
  sigaction(SIGINT, &action, nullptr);
  sigaction(SIGTERM, &action, nullptr);
  struct sigaction ignore {};
  ignore.sa_handler = SIG_IGN;
  sigaction(SIGXFSZ, &ignore, nullptr);
  return &stop_code;
}

void remember_temporary(const std::string& path) {
  // Names are kept for good, some bytes each: a handler in another thread may be reading one.
  static std::mutex mutex;
  static auto* const kept = new std::deque<std::string>;
  const std::lock_guard lock(mutex);
  for (auto& slot : temporaries) {
    if (slot.load() != nullptr) continue;
    slot.store(kept->emplace_back(path).c_str());
    return;
  }
}

void forget_temporary(const std::string& path) {
  for (auto& slot : temporaries) {
    const char* name = slot.load();
    if (name != nullptr && path == name) slot.store(nullptr);
  }
}

}  // namespace larch::detail
