// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/survey.h"

#include <algorithm>
#include <cstdio>
#include <exception>

#include "larch/app/failures.h"
#include "larch/cases/stages.h"
#include "larch/files/file.h"

namespace larch::pipeline {
namespace {

/// A label map while it is read: as stored, and as 32-bit labels.
constexpr int64_t kBytesPerVoxel = 8;

LabelCounts count_labels(const LabelVolume& volume) {
  LabelCounts counts;
  // Neighbours mostly have the same label: runs are counted, not voxels.
  for (int64_t i = 0; i < volume.voxels();) {
    const int32_t label = volume[i];
    const int64_t begin = i;
    while (i < volume.voxels() && volume[i] == label) ++i;
    counts[label] += i - begin;
  }
  return counts;
}

/// What a header tells of why read_volume will refuse the image.
void check_header(const std::string& path, const ImageInfo& info, const ReadOptions& read) {
  if (info.frames > 1) {
    throw InputError("'" + path + "' has " + std::to_string(info.frames) +
                     " volumes along a fourth dimension, of which one is needed; " +
                     (read.has_frame_flag ? "choose it with --frame, or " : "") +
                     "write it to a file of its own");
  }
  const std::string ending = file_extension(path);
  const bool picture = ending == ".png" || ending == ".jpg" || ending == ".jpeg" ||
                       ending == ".tif" || ending == ".tiff";
  if (info.components > 1 && !picture) {
    throw InputError("'" + path + "' has " + std::to_string(info.components) +
                     " values per voxel; give an image with one channel");
  }
}

void look_at(const Case& c, const SurveyRequest& request, SurveyedCase& found) {
  found.image = probe_image(c.image, request.read);
  if (request.image_is_labels) {
    found.image_labels = count_labels(read_labels(c.image, request.read));
  } else {
    check_header(c.image, found.image, request.read);
  }
  if (!request.labels || c.label.empty()) return;
  const LabelVolume labels = read_labels(c.label, label_options(request.read));
  found.labels = count_labels(labels);
  const std::string difference =
      describe_difference(found.image.grid, labels.grid(), request.tolerance_mm);
  if (!difference.empty()) {
    throw InputError("'" + c.image + "' and '" + c.label +
                     "' are not on the same grid: " + difference + "; resample one of them");
  }
}

void look_at_safely(const Case& c, const SurveyRequest& request, SurveyedCase& found) {
  try {
    look_at(c, request, found);
  } catch (...) {
    const detail::Failure failure = detail::failure_of(std::current_exception());
    found.code = failure.code;
    for (const std::string& part : failure.chain) {
      found.problem += (found.problem.empty() ? "" : ": ") + part;
    }
  }
}

int64_t bytes_of(const Case& c, const SurveyRequest& request) {
  if (!request.labels && !request.image_is_labels) return 0;
  ReadOptions read = request.read;
  read.warn = nullptr;  // looking at it will say it
  try {
    return kBytesPerVoxel * probe_image(c.image, read).grid.voxels();
  } catch (const std::exception&) {
    return 0;  // looking at it will say what is wrong
  }
}

std::string cell(const char* pattern, double a, double b, double c) {
  char text[96];
  std::snprintf(text, sizeof text, pattern, a, b, c);
  return text;
}

}  // namespace

std::vector<SurveyedCase> survey(const std::vector<Case>& cases, const SurveyRequest& request,
                                 const Context& context) {
  std::vector<SurveyedCase> found(cases.size());
  size_t over = 0;
  cases::Stages stages;
  stages.need = [&](size_t i) { return cases::MemoryNeed{.reading = bytes_of(cases[i], request)}; };
  stages.read = [&](size_t i) {
    look_at_safely(cases[i], request, found[i]);
    return true;
  };
  stages.compute = [&](size_t i) {
    ++over;
    context.progress(static_cast<double>(over) / static_cast<double>(cases.size()),
                     "looking at '" + cases[i].id + "'");
    return false;  // it ends here
  };
  cases::StageLimits limits;
  limits.readers = context.threads > 1 ? std::min(context.threads, 16) : 0;
  limits.ahead = static_cast<size_t>(limits.readers) + 1;
  limits.bytes = static_cast<int64_t>(free_memory_bytes(Device::cpu()) / 2);
  cases::run_stages(cases.size(), stages, limits, [&] { return context.stop_requested(); });
  if (context.stop_requested()) {
    throw Stopped("stopped after " + std::to_string(over) + " of " + std::to_string(cases.size()) +
                      " cases were looked at",
                  static_cast<ExitCode>(context.stop->load()));
  }
  return found;
}

std::string size_cell(const Grid& grid) {
  if (grid.size.x == 0) return "n/a";  // of an image that cannot be read
  return cell("%.0fx%.0fx%.0f", grid.size.x, grid.size.y, grid.size.z);
}

std::string spacing_cell(const Grid& grid) {
  if (grid.size.x == 0) return "n/a";
  return cell("%.4gx%.4gx%.4g", grid.spacing_mm.x, grid.spacing_mm.y, grid.spacing_mm.z);
}

std::string labels_cell(const LabelCounts& counts) {
  constexpr int kMost = 8;
  std::string text;
  int shown = 0;
  for (const auto& [label, voxels] : counts) {
    if (shown++ == kMost) return text + ",...";
    text += (text.empty() ? "" : ",") + std::to_string(label);
  }
  return text.empty() ? "-" : text;
}

void add_problems(const std::vector<Case>& cases, const std::vector<SurveyedCase>& surveyed,
                  Plan& plan) {
  for (size_t i = 0; i < cases.size(); ++i) {
    if (surveyed[i].problem.empty()) continue;
    if (plan.problems.empty()) plan.code = surveyed[i].code;
    plan.problems.push_back("case '" + cases[i].id + "': " + surveyed[i].problem);
  }
}

}  // namespace larch::pipeline
