// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/signals.h"

#include <array>
#include <cstdlib>
#include <cstring>

#include <signal.h>
#include <unistd.h>

namespace larch::detail {
namespace {

// A handler may only touch lock-free atomics and call async-signal-safe functions such as unlink.
std::atomic<int> stop_code{0};
std::array<std::atomic<char*>, 512> temporaries{};

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
  char* copy = strdup(path.c_str());
  for (auto& slot : temporaries) {
    char* empty = nullptr;
    if (slot.compare_exchange_strong(empty, copy)) return;
  }
  std::free(copy);
}

void forget_temporary(const std::string& path) {
  for (auto& slot : temporaries) {
    char* name = slot.load();
    // The few bytes are kept: a handler in another thread may be reading them.
    if (name != nullptr && path == name) slot.store(nullptr);
  }
}

}  // namespace larch::detail
