// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/signals.h"

#include <signal.h>  // NOLINT(modernize-deprecated-headers): sigaction is of POSIX
#include <unistd.h>

#include "larch/core/temporaries.h"

namespace larch::detail {
namespace {

// A handler may only touch lock-free atomics and call async-signal-safe functions.
std::atomic<int> stop_code{0};

void on_signal(int number) {
  int expected = 0;
  if (stop_code.compare_exchange_strong(expected, 128 + number)) return;
  remove_own_temporaries();
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
  sigaction(SIGPIPE, &ignore, nullptr);
  return &stop_code;
}

}  // namespace larch::detail
