// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#define CATCH_CONFIG_RUNNER
#include <cstdio>

#include <catch2/catch.hpp>

#include "larch/core/device.h"

namespace {

/// ctest and scripts/device-tests take this exit code as "skipped" (CMakeLists.txt beside this).
constexpr int kSkipped = 77;

bool only_lists(const Catch::ConfigData& asked) {
  return asked.showHelp || asked.listTests || asked.listTestNamesOnly || asked.listTags ||
         asked.listReporters || asked.libIdentify;
}

}  // namespace

/// Every case of these programs compares a CUDA device with the CPU: without a device none of them
/// runs, and the whole program says that it was skipped.
int main(int argc, char** argv) {
  Catch::Session session;
  const int code = session.applyCommandLine(argc, argv);
  if (code != 0) return code;
  if (!only_lists(session.configData())) {
    if (larch::cuda_device_count() == 0) {
      std::printf("skipped: no CUDA device is visible, or the build has no CUDA code\n");
      return kSkipped;
    }
    larch::choose_device("cuda");  // a device that cannot be used is a failure
  }
  // The number of failures is not the exit code: 77 of them would count as skipped.
  return session.run() == 0 ? 0 : 1;
}
