// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/training_files.h"

#include <algorithm>

#include "larch/app/failures.h"
#include "larch/core/digest.h"
#include "larch/core/error.h"
#include "larch/core/escaped.h"
#include "larch/files/file.h"
#include "larch/models/container.h"

namespace larch::pipeline {

void check_name(const std::string& name) {
  if (escaped(name) == name) return;
  throw UsageError("the name '" + name +
                   "' of a label or structure has control characters; give it another");
}

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
  constexpr size_t kMost = 256;
  if (left_out.size() > kMost) {
    throw InputError("'" + c.label + "' holds " + std::to_string(left_out.size()) +
                     " values that its dataset.json does not declare; is it a label map?");
  }
  if (!unknown.empty()) {
    context.warn("case '" + c.id + "': '" + c.label + "' holds " + unknown +
                 ", which its dataset.json does not declare; voxels with such labels are left out");
  }
  return left_out;
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

bool has_checkpoint(const TrainingFiles& files, const Context& context) {
  if (!files.resume) return false;
  if (is_file(files.checkpoint)) return true;
  context.warn("--resume: there is no checkpoint '" + files.checkpoint +
               "': starting from the root; unless this is the first run, see whether --checkpoint "
               "names the file");
  return false;
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

std::string fingerprint(const std::string& settings, uint64_t seed,
                        const std::vector<std::string>& digests) {
  std::string text = settings + "\nseed " + std::to_string(seed);
  for (const std::string& digest : digests) text += "\n" + digest;
  return sha256_of(text);
}

void remove_checkpoint(const std::string& path) {
  if (models::is_checkpoint(models::kind_of_file(path))) remove_output(path);
}

}  // namespace larch::pipeline
