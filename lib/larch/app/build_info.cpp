// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/app/build_info.h"

#include "larch_build.h"

#include "larch/core/device.h"

namespace larch {

std::string version() {
  return LARCH_VERSION;
}

config::Json build_info() {
#ifdef __clang__
  const std::string compiler = "clang " __clang_version__;
#else
  const std::string compiler = "gcc " __VERSION__;
#endif
  return {{"Version", version()},
          {"GitRevision", git_revision()},
          {"Compiler", compiler},
          {"CUDA", built_with_cuda()}};
}

}  // namespace larch
