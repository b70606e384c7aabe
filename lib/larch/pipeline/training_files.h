// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <exception>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/cases/case_list.h"
#include "larch/cases/dataset_json.h"
#include "larch/core/context.h"
#include "larch/core/error.h"
#include "larch/io/image/image.h"
#include "larch/train.h"

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
  ModelCard card{};                    ///< what the model says of itself
  std::string held_out{};              ///< folder of the page of held-out cases; may be empty
  std::string command{};               ///< for that page
};

/// Returns the labels of a map, of which a training uses no voxel because its data set calls them
/// "ignore" or does not declare them; none of `wanted`, which the configuration names. Adds all to
/// `seen`, and warns of those that are not declared where they come first.
std::vector<int> left_out_labels(const TrainingFiles& files, const Case& c,
                                 const std::set<int>& in_map, const std::vector<int>& wanted,
                                 std::set<int>& seen, const Context& context);

/// The image of a case and its label map, if it has one, for messages.
std::string image_and_label(const Case& c);

/// Calls `read`, whose errors get the names of the case and its files.
template <class Read>
auto naming_case(const Case& c, const Read& read) {
  try {
    return read();
  } catch (const Error& error) {
    std::throw_with_nested(
        Error(error.code(), "cannot use the case '" + c.id + "' (" + image_and_label(c) + ")"));
  }
}

/// For dry runs: what `look` throws becomes a problem of the plan, whose text `prefix` begins.
void note_failure(Plan& plan, const std::string& prefix, const std::function<void()>& look);

/// Returns the cases of a training: images of these components (read_components), each with what
/// `truth` says of it on its grid. Errors name files. `files` must outlive them.
TrainingCases training_cases(const TrainingFiles& files, std::vector<std::string> components,
                             std::function<TrainingCase(const Case&, const Grid&)> truth);

/// How a training is kept. Where the checkpoint that --resume asks for is not there it begins anew,
/// with a warning: jobs that are started again and again give --resume from their first run on, but
/// a name that is mistyped must not pass unseen.
TrainingRun training_run(const TrainingFiles& files, const Context& context);

/// Returns the model and the figures of a training.
Outputs training_outputs(const TrainingFiles& files, const TrainResult& result);

/// The cell of a list with what makes cases alike, such as the patient: no case is searched by
/// classifiers that learned from its group.
inline constexpr const char* kGroupColumn = "group";

/// Removes a checkpoint that is not needed any more, and those of further structures. Another file,
/// such as a model, which a short run with -f has not replaced, stays.
void remove_checkpoint(const std::string& path);

}  // namespace larch::pipeline
