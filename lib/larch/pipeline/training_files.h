// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/case_list.h"
#include "larch/cases/dataset_json.h"
#include "larch/core/context.h"
#include "larch/files/atomic_file.h"
#include "larch/files/temporaries.h"
#include "larch/io/image/image.h"
#include "larch/models/model_file.h"

namespace larch::pipeline {

/// Files and switches of a training run, beside its configuration.
struct TrainingFiles {
  std::vector<Case> cases;             ///< each with a label
  std::string output;                  ///< the model
  std::string plot;                    ///< picture of the training; may be empty
  std::string checkpoint;              ///< written every few seconds and when stopped
  bool resume = false;                 ///< go on from the checkpoint, if it exists
  ReadOptions read;                    ///< of images and labels
  std::vector<DatasetLabel> labels{};  ///< what a data set calls its labels
};

/// Throws UsageError for a name with control characters: it would stand in models and tables.
void check_name(const std::string& name);

/// The labels of a map, of which a training uses no voxel because its data set calls them "ignore"
/// or does not declare them; none of `wanted`, which the configuration names. Adds all to `seen`,
/// and warns of those that are not declared where they come first.
std::vector<int> left_out_labels(const TrainingFiles& files, const Case& c,
                                 const std::set<int>& in_map, const std::vector<int>& wanted,
                                 std::set<int>& seen, const Context& context);

/// Throws InputError for a wanted label that is not among those that were seen; `key`: of the
/// configuration.
void check_labels(const std::vector<int>& wanted, const std::set<int>& seen, const char* key);

/// Tells whether the run goes on from a checkpoint. Where the one that --resume asks for is not
/// there it begins anew, with a warning: jobs that are started again and again give --resume from
/// their first run on, but a name that is mistyped must not pass unseen.
bool has_checkpoint(const TrainingFiles& files, const Context& context);

/// For dry runs: what `look` throws becomes a problem of the plan, whose text `prefix` begins.
void note_failure(Plan& plan, const std::string& prefix, const std::function<void()>& look);

/// Identifies all that a model depends on, so that a checkpoint of something else is told from its
/// own: the settings as JSON, the seed and the digest of each training case.
std::string fingerprint(const std::string& settings, uint64_t seed,
                        const std::vector<std::string>& digests);

/// The checkpoint of a training, one of those that models::write_checkpoint writes: what --resume
/// goes on from, and where the training is kept as it goes.
template <class Partial>
class TrainingCheckpoint {
 public:
  /// `steps`: what a training has done, "3 trees". Throws InputError as models::read_checkpoint.
  TrainingCheckpoint(const TrainingFiles& files, std::string fingerprint,
                     std::string (*steps)(const Partial&), const Context& context)
      : path_(files.checkpoint), fingerprint_(std::move(fingerprint)) {
    if (has_checkpoint(files, context)) {
      resumed_ = models::read_checkpoint<Partial>(path_, fingerprint_);
      context.info("going on from '" + path_ + "', which has " + steps(*resumed_));
    }
    remove_leftovers_once(folder_of(path_), context);
  }
  /// Null: the training begins anew.
  const Partial* resumed() const { return resumed_ ? &*resumed_ : nullptr; }
  void write(const Partial& partial) const {
    models::write_checkpoint(path_, partial, fingerprint_);
  }

 private:
  const std::string path_, fingerprint_;
  std::optional<Partial> resumed_;
};

/// Removes a checkpoint that is not needed any more. Another file, such as a model, which a short
/// run with -f has not replaced, stays.
void remove_checkpoint(const std::string& path);

}  // namespace larch::pipeline
