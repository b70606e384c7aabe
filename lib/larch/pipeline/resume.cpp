// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/resume.h"

#include <algorithm>
#include <fstream>

#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/models/container.h"

namespace larch::pipeline {

bool has_checkpoint_to_resume(const std::string& path, const std::string& start,
                              const Context& context) {
  if (is_file(path)) return true;
  context.warn("--resume: there is no checkpoint '" + path + "': starting from " + start +
               "; unless this is the first run, see whether --checkpoint names the file");
  return false;
}

void remove_checkpoint(const std::string& path, std::initializer_list<std::string_view> kinds) {
  std::string start(models::kHeaderBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  const std::string kind = file ? models::kind_in_header(start) : "";
  if (std::find(kinds.begin(), kinds.end(), kind) != kinds.end()) remove_output(path);
}

}  // namespace larch::pipeline
