// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/training_files.h"

#include <fstream>

#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/files/atomic_file.h"
#include "larch/files/file.h"
#include "larch/models/boundary_file.h"
#include "larch/models/container.h"
#include "larch/models/forest_file.h"
#include "larch/models/hdn_file.h"
#include "larch/models/pbt_file.h"

namespace larch::pipeline {

void check_labels(const std::vector<int>& wanted, const std::set<int>& seen, const char* key) {
  for (const int value : wanted) {
    if (seen.count(value) > 0) continue;
    std::string found;
    for (const int s : seen) found += (found.empty() ? "" : ", ") + std::to_string(s);
    throw InputError(std::string(key) + ": the label " + std::to_string(value) +
                     " never occurs in the training labels, which hold " + found);
  }
}

bool has_checkpoint(const TrainingFiles& files, const Context& context) {
  if (!files.resume) return false;
  if (is_file(files.checkpoint)) return true;
  context.warn("--resume: there is no checkpoint '" + files.checkpoint +
               "': starting from the root; unless this is the first run, see whether --checkpoint "
               "names the file");
  return false;
}

std::string fingerprint(const std::string& settings, uint64_t seed,
                        const std::vector<std::string>& digests) {
  std::string text = settings + "\nseed " + std::to_string(seed);
  for (const std::string& digest : digests) text += "\n" + digest;
  return sha256_of(text);
}

void remove_checkpoint(const std::string& path) {
  std::string start(models::kHeaderBytes, '\0');
  std::ifstream file(path, std::ios::binary);
  file.read(start.data(), static_cast<std::streamsize>(start.size()));
  const std::string kind = file ? models::kind_in_header(start) : "";
  if (kind == models::kPbtCheckpointKind || kind == models::kNetworkCheckpointKind ||
      kind == models::kBoundaryCheckpointKind || kind == models::kForestCheckpointKind) {
    remove_output(path);
  }
}

}  // namespace larch::pipeline
