// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <iterator>
#include <mutex>
#include <utility>

#include "larch/cases/case_loop.h"
#include "larch/cases/images.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/pipeline/evaluation/scored_cases.h"

namespace larch::pipeline {
namespace {

/// Bytes per voxel of a label map, and of the masks and mostly the surfaces of a structure.
constexpr int64_t kLabelMap = 4, kMasks = 2, kSurfaces = 2;
/// Bytes per byte of a file of a mesh that is in memory with its tree and, mostly, its pieces.
constexpr int64_t kMeshPerByte = 20;

/// Returns how the second label map of a case is read, on the grid of the first one; logs the
/// names of its segments.
ReadOptions beside(const std::string& path, const ReadOptions& read, const Context& context) {
  ReadOptions options = read;
  options.warn = nullptr;  // the reading itself will say it
  const ImageInfo info = probe_image(path, options);
  std::string names;
  for (const LabelEntry& segment : info.labels) {
    names += (names.empty() ? "" : ", ") + std::to_string(segment.value) + " " + segment.name;
  }
  if (!names.empty()) context.info("segments of '" + path + "': " + escaped(names));
  options.label_grid = info.grid;
  options.warn = read.warn;
  return options;
}

/// Returns the bytes that the surfaces of a case may take.
int64_t surface_bytes(const EvaluationRequest& request, int64_t voxels) {
  if (request.memory_bytes == 0) return INT64_MAX;
  return request.memory_bytes - (2 * kLabelMap + kMasks) * voxels;
}

Mesh predicted_mesh(const EvaluationRequest& request, const Case& c) {
  return request.missing.contains(c.id) ? Mesh{} : read_mesh(c.image, request.read.warn);
}

/// Looks in the label maps of a run for the labels that it asks for; its members may be called by
/// several threads.
class LabelSearch {
 public:
  /// `config`: without labels all that occur are asked for. 0 is everywhere.
  explicit LabelSearch(LabelScoreConfig config)
      : config_(std::move(config)), missing_(config_.labels) {
    std::erase(missing_, 0);
  }

  /// Warns of what is asked for and the reference of a case lacks, or its prediction, if it is
  /// given. Labels of the reference are not those of the prediction where either has its own, and
  /// where all are merged.
  void look(const Case& c, const std::vector<int32_t>* prediction,
            const std::vector<int32_t>& reference, const Context& context) {
    const std::vector<int32_t> none, &own = config_.prediction_labels;
    const std::vector<int32_t>& comparable = prediction && own.empty() ? *prediction : none;
    const bool all = config_.labels.empty(), any = all && config_.merge;
    const std::lock_guard lock(mutex_);
    warn_of_missing(c.id, "reference '" + c.label, all ? comparable : config_.labels,
                    any ? comparable : reference, context);
    if (prediction != nullptr) {
      const bool has_any = any && !prediction->empty();
      const std::vector<int32_t>& wanted = !own.empty() ? own
                                           : has_any    ? none
                                           : all        ? reference
                                                        : config_.labels;
      warn_of_missing(c.id, "prediction '" + c.image, wanted, *prediction, context);
    }
    std::erase_if(missing_, [&](int32_t label) {
      return std::ranges::binary_search(comparable, label) ||
             std::ranges::binary_search(reference, label);
    });
  }
  /// Throws InputError for labels that no case has: masks that are all empty agree with each other.
  void require_found() const {
    if (missing_.empty()) return;
    throw InputError("--labels: no label map holds " + std::to_string(missing_.front()) +
                     "; check the number, or leave --labels out to score all that occur");
  }

 private:
  /// Returns the first labels of a list, as text.
  static std::string text_of(const std::vector<int32_t>& labels) {
    constexpr size_t kShown = 8;
    std::string text;
    for (size_t i = 0; i < std::min(labels.size(), kShown); ++i) {
      text += (i > 0 ? ", " : "") + std::to_string(labels[i]);
    }
    if (labels.size() > kShown) text += " and " + std::to_string(labels.size() - kShown) + " more";
    return text.empty() ? "none" : text;
  }
  static void warn_of_missing(const std::string& id, const std::string& file,
                              const std::vector<int32_t>& wanted, const std::vector<int32_t>& there,
                              const Context& context) {
    std::vector<int32_t> missing;
    std::ranges::copy_if(wanted, std::back_inserter(missing), [&](int32_t label) {
      return label != 0 && !std::ranges::binary_search(there, label);
    });
    if (missing.empty()) return;
    context.warn("case '" + id + "': the " + file + "' has no label " + text_of(missing) +
                 "; it holds " + text_of(there));
  }

  LabelScoreConfig config_;
  std::vector<int32_t> missing_;
  std::mutex mutex_;
};

/// Reads both label maps of a case, of which a prediction that is missing is empty, and looks for
/// their labels.
std::pair<LabelVolume, LabelVolume> read_label_maps(const Case& c, const EvaluationRequest& request,
                                                    LabelSearch& search, const Context& context) {
  const bool is_missing = request.missing.contains(c.id);
  const ReadOptions read = is_missing ? request.read : beside(c.image, request.read, context);
  if (!is_missing) {
    cases::warn_of_memory(c.image, read.label_grid->voxels(), 2 * kLabelMap, request.memory_bytes,
                          context);
  }
  LabelVolume reference = read_labels(c.label, read);
  LabelVolume prediction = is_missing
                               ? LabelVolume(reference.grid())
                               : read_labels(c.image, beside(c.label, request.read, context));
  cases::require_same_grid(c.image, prediction.grid(), c.label, reference.grid());
  const auto [in_prediction, in_reference] =
      labels_in(prediction, reference, request.config.ignore);
  search.look(c, is_missing ? nullptr : &in_prediction, in_reference, context);
  return {std::move(prediction), std::move(reference)};
}

}  // namespace

Outputs evaluate_labels(const EvaluationRequest& request, const Context& context) {
  const auto size = [&](const Case& c) {
    ReadOptions read = request.read;
    read.warn = nullptr;  // the reading itself will say it
    const int64_t voxels = probe_image(c.label, read).grid.voxels();
    const int64_t bytes = (2 * kLabelMap + kMasks + kSurfaces) * voxels;
    // With a promise a case whose surfaces are measured has all of it, since they are counted only
    // when its masks are there.
    return cases::CaseSize{voxels,
                           request.config.surfaces ? std::max(bytes, request.memory_bytes) : bytes};
  };
  LabelSearch search(request.config);
  const auto score = [&](const Case& c, const Context& at_work) {
    const auto [prediction, reference] = read_label_maps(c, request, search, context);
    return score_labels(prediction, reference, request.config, at_work,
                        surface_bytes(request, prediction.voxels()));
  };
  const std::vector<CaseScores> scored = score_cases(request, size, score, context);
  search.require_found();
  return outputs_of(request, scored, "union");
}

Plan plan_labels(const EvaluationRequest& request, const Context& context) {
  LabelSearch search(request.config);
  const auto row = [&](const Case& c) -> std::vector<std::string> {
    const bool is_missing = request.missing.contains(c.id);
    const Grid grid =
        probe_image(c.label, is_missing ? request.read : beside(c.image, request.read, context))
            .grid;
    if (!is_missing) {
      const ReadOptions read = beside(c.label, request.read, context);
      cases::require_same_grid(c.image, probe_image(c.image, read).grid, c.label, grid);
    }
    if (!request.config.labels.empty()) read_label_maps(c, request, search, context);
    return {cases::size_cell(grid), cases::spacing_cell(grid)};
  };
  return plan_cases(
      request, {"id", "voxels", "spacing_mm"}, row, [&] { search.require_found(); }, context);
}

Outputs evaluate_meshes(const EvaluationRequest& request, const Context& context) {
  const auto size = [&](const Case& c) {
    const bool is_mesh = has_mesh_extension(c.label);
    ReadOptions read = request.read;
    read.warn = nullptr;  // the reading itself will say it
    const int64_t bytes = bytes_of_prediction(request, c) + (is_mesh ? file_bytes(c.label) : 0);
    const int64_t voxels = is_mesh ? 0 : probe_image(c.label, read).grid.voxels();
    const int64_t per_voxel = kLabelMap + kMasks + kSurfaces;
    return cases::CaseSize{bytes + voxels, kMeshPerByte * bytes + per_voxel * voxels};
  };
  LabelSearch search(request.config);
  const auto score = [&](const Case& c, const Context& at_work) {
    const Mesh prediction = predicted_mesh(request, c);
    if (has_mesh_extension(c.label)) {
      return std::vector{score_mesh(prediction, read_mesh(c.label, request.read.warn), at_work)};
    }
    const LabelVolume reference = read_labels(c.label, request.read);
    search.look(c, nullptr, labels_in(reference, reference).second, context);
    return std::vector{score_mesh(prediction, reference, request.config.labels, at_work)};
  };
  const std::vector<CaseScores> scored = score_cases(request, size, score, context);
  search.require_found();
  return outputs_of(request, scored, "surface");
}

Plan plan_meshes(const EvaluationRequest& request, const Context& context) {
  const auto size_of = [](const Mesh& mesh) -> mesh::SurfaceSize {
    return {int64_t(mesh.vertices_mm.size()), int64_t(mesh.triangles.size())};
  };
  LabelSearch search(request.config);
  const auto row = [&](const Case& c) -> std::vector<std::string> {
    const auto [vertices, triangles] = size_of(predicted_mesh(request, c));
    if (!request.config.labels.empty() && !has_mesh_extension(c.label)) {
      const LabelVolume reference = read_labels(c.label, request.read);
      search.look(c, nullptr, labels_in(reference, reference).second, context);
    }
    return {std::to_string(vertices), std::to_string(triangles),
            has_mesh_extension(c.label)
                ? mesh::describe(size_of(read_mesh(c.label, request.read.warn)))
                : describe(probe_image(c.label, request.read).grid)};
  };
  return plan_cases(
      request, {"id", "vertices", "triangles", "reference"}, row, [&] { search.require_found(); },
      context);
}
}  // namespace larch::pipeline
