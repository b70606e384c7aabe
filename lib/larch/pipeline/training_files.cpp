// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/training_files.h"

#include <algorithm>
#include <exception>
#include <utility>

#include "larch/app/build_info.h"
#include "larch/app/failures.h"
#include "larch/core/error.h"
#include "larch/files/file.h"
#include "larch/models/container.h"
#include "larch/pipeline/components.h"

namespace larch::pipeline {

std::vector<int> left_out_labels(const TrainingFiles& files, const Case& c,
                                 const std::set<int>& in_map, const std::vector<int>& wanted,
                                 std::set<int>& seen, const Context& context) {
  std::set<int> declared{0}, ignored;
  for (const DatasetLabel& label : files.labels) {
    declared.insert(label.values.begin(), label.values.end());
    if (label.name == kIgnoreName) ignored.insert(label.values.begin(), label.values.end());
  }
  std::vector<int> left_out;
  std::string unknown;
  for (const int label : in_map) {
    const bool is_new = seen.insert(label).second, is_declared = declared.contains(label);
    if (files.labels.empty() || (is_declared && !ignored.contains(label)) ||
        std::find(wanted.begin(), wanted.end(), label) != wanted.end()) {
      continue;
    }
    left_out.push_back(label);
    if (is_declared || !is_new || unknown.size() > 60) continue;
    unknown += (unknown.empty() ? "" : ", ") + std::to_string(label);
  }
  constexpr size_t kMaximum = 256;
  if (left_out.size() > kMaximum) {
    throw InputError("'" + c.label + "' holds " + std::to_string(left_out.size()) +
                     " values that its dataset.json does not declare; is it a label map?");
  }
  if (!unknown.empty()) {
    context.warn("case '" + c.id + "': '" + c.label + "' holds " + unknown +
                 ", which its dataset.json does not declare; voxels with such labels are left out");
  }
  return left_out;
}

TrainingCases training_cases(const TrainingFiles& files, std::vector<std::string> components,
                             std::function<TrainingCase(const Case&, const Grid&)> truth) {
  TrainingCases cases;
  for (const Case& c : files.cases) cases.ids.push_back(c.id);
  cases.read = [&files, components = std::move(components), truth = std::move(truth)](size_t i) {
    const Case& c = files.cases[i];
    return naming_case(c, [&] {
      std::vector<Volume<float>> images = read_components(c, components, files.read);
      TrainingCase read = truth(c, images[0].grid());
      read.images = std::move(images);
      read.group = c.cell(kGroupColumn);
      return read;
    });
  };
  cases.declared = files.labels;
  return cases;
}

TrainingRun training_run(const TrainingFiles& files, const Context& context) {
  const bool is_there = is_file(files.checkpoint);
  if (files.resume && !is_there) {
    context.warn("--resume: there is no checkpoint '" + files.checkpoint +
                 "': starting from the root; unless this is the first run, see whether "
                 "--checkpoint names the file");
  }
  return {files.checkpoint, files.resume && is_there, version(), files.card};
}

Outputs training_outputs(const TrainingFiles& files, const TrainResult& result) {
  Outputs outputs;
  for (const auto& [name, value] : result.figures) outputs.metric(name, value);
  outputs.add(files.output,
              [model = result.model](const std::string& path) { write_model(path, *model); });
  return outputs;
}

std::string image_and_label(const Case& c) {
  return c.label.empty() ? c.image : c.image + ", " + c.label;
}

void note_failure(Plan& plan, const std::string& prefix, const std::function<void()>& look) {
  try {
    look();
  } catch (const Stopped&) {
    throw;
  } catch (...) {
    const detail::Failure failure = detail::failure_of(std::current_exception());
    if (plan.problems.empty()) plan.code = failure.code;
    plan.problems.push_back(prefix + detail::in_one_line(failure));
  }
}

void remove_checkpoint(const std::string& path) {
  std::string file = path;
  for (int next = 2; models::is_checkpoint(models::kind_of_file(file)); ++next) {
    remove_output(file);
    file = path + "." + std::to_string(next);
  }
}

}  // namespace larch::pipeline
