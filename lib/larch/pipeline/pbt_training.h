// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <string>
#include <vector>

#include "larch/app/outputs/outputs.h"
#include "larch/core/context.h"
#include "larch/io/image/image.h"
#include "larch/io/table/case_list.h"
#include "larch/pbt/train/train.h"

namespace larch::pipeline {

/// Files and switches of a training run, beside its configuration.
struct TrainingFiles {
  std::vector<Case> cases;  ///< each with a label
  std::string output;       ///< the model
  std::string plot;         ///< picture of the training; may be empty
  std::string checkpoint;   ///< written every few seconds and when stopped
  bool resume = false;      ///< go on from the checkpoint, if it exists
  ReadOptions read;         ///< of images and labels
};

/// From lists of images and labels to a model: reads, brings to model space (the median spacing of
/// the images, unless configured), and trains; the outputs are the model and the picture, with
/// figures. The model depends on the voxels, the configuration and context.seed alone.
/// Throws InputError (files, grids, a label that never occurs), UsageError (configuration, an
/// output that is one of the volumes), MemoryError, and Stopped after a checkpoint.
Outputs train_pbt(const TrainingFiles& files, const pbt::TrainConfig& config,
                  const Context& context);

/// Removes a checkpoint that is not needed any more. Another file, such as a model, which a short
/// run with -f has not replaced, stays.
void remove_checkpoint(const std::string& path);

/// The picture of the training of a model, to be written to `path`; none if that is empty.
void add_plot(const std::string& path, const pbt::Model& model, Outputs& outputs);

/// Finds by the label maps and the headers of the images what train_pbt would refuse before the
/// training begins, and makes a table of the cases. Problems of single cases are in the plan;
/// throws the rest.
Plan plan_training(const TrainingFiles& files, const pbt::TrainConfig& config,
                   const Context& context);

}  // namespace larch::pipeline
