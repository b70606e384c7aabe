// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "larch/core/context.h"
#include "larch/core/digest.h"
#include "larch/files/atomic_file.h"
#include "larch/files/temporaries.h"
#include "larch/learning/train_hooks.h"
#include "larch/models/model_file.h"

namespace larch::models {

/// Identifies all that a model depends on, so that a checkpoint of something else is told from its
/// own: the settings as JSON, the seed and the digest of each training case.
inline std::string fingerprint(const std::string& settings, uint64_t seed,
                               const std::vector<std::string>& digests) {
  std::string text = settings + "\nseed " + std::to_string(seed);
  for (const std::string& digest : digests) text += "\n" + digest;
  return sha256_of(text);
}

/// Returns what a model says of itself; `digests`: those of its training cases, in its order.
inline ModelAbout about_model(const ModelCard& card, const std::vector<std::string>& digests) {
  std::string lines;
  for (const std::string& digest : digests) lines += digest + "\n";
  return {card, sha256_of(lines)};
}

/// The checkpoint of a training, one of those that write_checkpoint writes: what it goes on from,
/// and where it is kept as it goes.
template <class Partial>
class TrainingCheckpoint {
 public:
  /// `path`: empty for none. `steps`: what a training has done, "3 trees". Throws InputError as
  /// read_checkpoint.
  TrainingCheckpoint(std::string path, bool resume, std::string fingerprint,
                     std::string (*steps)(const Partial&), const Context& context)
      : path_(std::move(path)), fingerprint_(std::move(fingerprint)) {
    if (path_.empty()) return;
    if (resume) {
      resumed_ = read_checkpoint<Partial>(path_, fingerprint_);
      context.info("going on from '" + path_ + "', which has " + steps(*resumed_));
    }
    remove_leftovers_once(folder_of(path_), context);
  }
  /// Returns those that keep the training here, which must outlive them.
  learning::TrainHooks<Partial> hooks() const {
    learning::TrainHooks<Partial> hooks;
    if (path_.empty()) return hooks;
    hooks.after_step = [this](const Partial& partial) {
      write_checkpoint(path_, partial, fingerprint_);
    };
    hooks.resume = resumed_ ? &*resumed_ : nullptr;
    hooks.seconds = 5;
    return hooks;
  }

 private:
  const std::string path_, fingerprint_;
  std::optional<Partial> resumed_;
};

}  // namespace larch::models
