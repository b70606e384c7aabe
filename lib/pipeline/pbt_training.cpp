// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/pbt_training.h"

#include <algorithm>
#include <exception>
#include <set>

#include "larch/app/build_info.h"
#include "larch/config/config.h"
#include "larch/core/atomic_file.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/temporaries.h"
#include "larch/io/file.h"
#include "larch/io/image.h"
#include "larch/models/pbt_file.h"

namespace larch::pipeline {
namespace {

void check_cases(const std::vector<Case>& cases) {
  if (cases.empty()) throw InputError("the list of training volumes is empty");
  for (const Case& c : cases) {
    if (c.label.empty()) {
      throw InputError("'" + c.image + "' has no label file: training needs the column 'label'");
    }
  }
}

image::ModelSpace model_space(const TrainingFiles& files, const pbt::SpaceConfig& config) {
  image::ModelSpace space;
  space.orientation = config.orientation;
  space.intensity = config.intensity;
  if (!config.spacing_mm.empty()) {
    space.spacing_mm = {config.spacing_mm[0], config.spacing_mm[1], config.spacing_mm[2]};
    return space;
  }
  // In model space the axes may be permuted, so the spacing is taken after that. The size is of no
  // interest here, and not to be believed before the file is read.
  std::vector<double> along[3];
  ReadOptions read = files.read;
  read.warn = nullptr;  // the reading itself will say it
  for (const Case& c : files.cases) {
    image::ModelSpace as_stored = space;
    Grid grid = probe_image(c.image, read).grid;
    grid.size = {1, 1, 1};
    as_stored.spacing_mm = grid.spacing_mm;
    const Grid turned = image::model_grid(grid, as_stored);
    for (int axis = 0; axis < 3; ++axis) {
      along[axis].push_back(turned.spacing_mm[axis]);
    }
  }
  for (int axis = 0; axis < 3; ++axis) {
    std::sort(along[axis].begin(), along[axis].end());
    space.spacing_mm[axis] = along[axis][along[axis].size() / 2];
  }
  return space;
}

/// Reads one case; adds the label values that occur to `seen`.
pbt::TrainingVolume read_case(const Case& c, const TrainingFiles& files,
                              const image::ModelSpace& space, const pbt::LabelConfig& labels,
                              std::set<int>& seen, const Context& context) {
  try {
    const Volume<float> image = read_volume<float>(c.image, files.read);
    const LabelVolume label = read_labels(c.label, label_options(files.read));
    seen.insert(label.begin(), label.end());
    return pbt::make_training_volume(c.image, image, label, space, labels, context);
  } catch (const Error& error) {
    std::throw_with_nested(Error(
        error.code(), "cannot use the case '" + c.id + "' (" + c.image + ", " + c.label + ")"));
  }
}

void check_labels(const std::vector<int>& wanted, const std::set<int>& seen, const char* key) {
  for (const int value : wanted) {
    if (seen.count(value) > 0) continue;
    std::string found;
    for (const int s : seen) found += (found.empty() ? "" : ", ") + std::to_string(s);
    throw InputError(std::string(key) + ": the label " + std::to_string(value) +
                     " never occurs in the training labels, which hold " + found);
  }
}

/// Identifies all that the result depends on.
std::string fingerprint(const std::vector<pbt::TrainingVolume>& volumes, const std::string& config,
                        const Context& context) {
  std::string text = config + "\nseed " + std::to_string(context.seed);
  for (const auto& volume : volumes) text += "\n" + volume.digest;
  Sha256 sha;
  sha.update(text.data(), text.size());
  return hex(sha.digest());
}

}  // namespace

pbt::Model train_pbt(const TrainingFiles& files, const pbt::TrainConfig& config,
                     pbt::TrainReport* report, const Context& context) {
  check_cases(files.cases);
  pbt::check_config(config, context.seed);
  const image::ModelSpace space = model_space(files, config.space);
  std::vector<pbt::TrainingVolume> volumes;
  std::set<int> seen;
  for (const Case& c : files.cases) {
    context.progress(0, "reading " + c.id);
    volumes.push_back(read_case(c, files, space, config.labels, seen, context));
    if (context.stop_requested()) {
      throw Stopped("stopped while reading", static_cast<ExitCode>(context.stop->load()));
    }
  }
  check_labels(config.labels.positive, seen, "labels/positive");
  pbt::sort_by_digest(volumes);

  const std::string config_json = config::to_json(config).dump();
  const std::string print = fingerprint(volumes, config_json, context);
  pbt::TrainHooks hooks;
  pbt::PartialModel resumed;
  if (files.resume && !files.checkpoint.empty() && is_file(files.checkpoint)) {
    resumed = models::read_partial(files.checkpoint, print);
    hooks.resume = &resumed;
    context.info("going on from '" + files.checkpoint + "', which has " +
                 std::to_string(resumed.finished) + " nodes");
  } else if (files.resume) {
    context.info("there is no checkpoint '" + files.checkpoint + "': starting from the root");
  }
  if (!files.checkpoint.empty()) {
    hooks.seconds = 5;
    remove_leftovers_once(folder_of(files.checkpoint), context);
    hooks.after_node = [&](const pbt::PartialModel& partial) {
      write_atomically(files.checkpoint, [&](const std::string& temporary) {
        models::write_partial(temporary, partial, print);
      });
    };
  }
  pbt::TrainReport own_report;
  if (report == nullptr) report = &own_report;
  pbt::Model model = pbt::train(volumes, space, config, hooks, report, context);
  if (config.validation.fraction > 0 && report->held_out_volumes == 0) {
    context.warn("validation/fraction: " + std::to_string(volumes.size()) +
                 " volumes are too few to hold one out; the model is not validated or pruned");
  }
  model.info.tool_version = version();
  model.info.training_config_json = config_json;
  return model;
}

}  // namespace larch::pipeline
