// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/resume.h"

#include "larch/files/file.h"

namespace larch::pipeline {

bool has_checkpoint_to_resume(const std::string& path, const std::string& start,
                              const Context& context) {
  if (is_file(path)) return true;
  context.warn("--resume: there is no checkpoint '" + path + "': starting from " + start +
               "; unless this is the first run, see whether --checkpoint names the file");
  return false;
}

}  // namespace larch::pipeline
