// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/pipeline/evaluation.h"

#include <algorithm>
#include <atomic>
#include <cmath>
#include <cstdint>
#include <exception>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "larch/cases/case_loop.h"
#include "larch/cases/images.h"
#include "larch/core/error.h"
#include "larch/core/text.h"
#include "larch/files/file.h"
#include "larch/io/markups/markups.h"
#include "larch/io/mesh/mesh_io.h"
#include "larch/mesh/marching_cubes.h"
#include "larch/models/model_file.h"
#include "larch/pose/truth.h"

namespace larch::pipeline {
namespace {

using Json = nlohmann::ordered_json;

/// Bytes per voxel of a label map, and of the masks and mostly the surfaces of a structure.
constexpr int64_t kLabelMap = 4, kMasks = 2, kSurfaces = 2;
/// Bytes per byte of a JSON file that is in memory.
constexpr int64_t kJsonPerByte = 20;
/// Bytes per byte of a file of a mesh that is in memory with its tree and, mostly, its pieces.
constexpr int64_t kMeshPerByte = 20;

/// How the other label map of a case is read, which has to be on the grid of this one; tells the
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

/// Adds a member to a JSON object that has none of the name, or gives its last one, without a
/// search through all of them.
Json& append(Json& object, const std::string& name) {
  auto& members = object.get_ref<Json::object_t&>();
  if (members.empty() || members.back().first != name) members.emplace_back(name, Json());
  return members.back().second;
}

Json to_json(const Case& c, const CaseScores& scored) {
  Json structures = Json::object();
  for (const StructureScores& s : scored.structures) {
    Json& scores = append(structures, s.structure);
    for (const Score& score : s.scores) scores[score.name] = score.value;
  }
  return {
      {"id", c.id}, {"prediction", c.image}, {"reference", c.label}, {"structures", structures}};
}

/// Figures over all cases; the means of the structure `whole` are the metrics of the run.
void add_summary(const std::vector<CaseScores>& scored, const std::string& whole,
                 Outputs& outputs) {
  Json summary = Json::object();
  for (const auto& [structure, score, s] : summarise(scored)) {
    append(summary, structure)[score] = {
        {"cases", s.count},         {"mean", s.mean}, {"sd", s.sd},
        {"median", s.median},       {"p95", s.p95},   {"mean_ci_low", s.ci_low},
        {"mean_ci_high", s.ci_high}};
    if (structure == whole) outputs.metric(score, s.mean);
  }
  outputs.report("summary", summary);
}

std::string missing_text(const EvaluationRequest& request) {
  const auto first = std::ranges::find_if(
      request.cases, [&](const Case& c) { return request.missing.contains(c.id); });
  return std::to_string(request.missing.size()) + " of " + std::to_string(request.cases.size()) +
         " predictions do not exist, such as '" + first->image + "'; they count as Dice 0";
}

int64_t bytes_of_prediction(const EvaluationRequest& request, const Case& c) {
  return request.missing.contains(c.id) ? 0 : file_bytes(c.image);
}

Mesh predicted_mesh(const EvaluationRequest& request, const Case& c) {
  return request.missing.contains(c.id) ? Mesh{} : read_mesh(c.image, request.read.warn);
}

/// Figures of a prediction that is missing: nothing is found, not even the background. Those of
/// poses say so already.
void mark_missing(std::vector<StructureScores>& scores) {
  for (StructureScores& structure : scores) {
    for (auto& [named, value] : structure.scores) {
      const std::string_view name = named;
      if (name == "reference_mm3" || name == "box_iou" || name == "failure") continue;
      if (name == "missed" || name == "false_positive") continue;
      const bool is_share = name == "dice" || name == "jaccard" || name == "total_correct_fraction";
      value = is_share ? 0 : std::nan("");
    }
  }
}

/// Rethrows the failure of the first case in the list among those that failed. One of memory names
/// no file: the case is named for it.
[[noreturn]] void rethrow_first(const std::map<size_t, std::exception_ptr>& failures,
                                const std::vector<Case>& pairs) {
  const auto& [i, error] = *failures.begin();
  try {
    std::rethrow_exception(error);
  } catch (const MemoryError& lack) {
    throw MemoryError("case '" + pairs[i].id + "': " + lack.what());
  }
}

/// Scores each case by `score`, side by side; `size` is as in CaseLoop. The first case of the list
/// among those that fail ends the run.
std::vector<CaseScores> score_cases(
    const EvaluationRequest& request, const std::function<cases::CaseSize(const Case&)>& size,
    const std::function<std::vector<StructureScores>(const Case&, const Context&)>& score,
    const Context& context) {
  const std::vector<Case>& pairs = request.cases;
  std::vector<CaseScores> scored(pairs.size());
  std::mutex failing;
  std::map<size_t, std::exception_ptr> failures;
  std::atomic<size_t> over{0};
  cases::CaseLoop loop;
  loop.count = pairs.size();
  loop.memory_bytes = request.memory_bytes;
  loop.size = [&](size_t i) { return size(pairs[i]); };
  loop.work = [&](size_t i, const Context& c) {
    scored[i] = {escaped(pairs[i].id), score(pairs[i], c)};
    if (request.missing.contains(pairs[i].id)) mark_missing(scored[i].structures);
    const size_t done = ++over;
    context.progress(double(done) / double(pairs.size()), "case '" + pairs[i].id + "'");
  };
  loop.failed = [&](size_t i, const std::exception_ptr& error) {
    const std::lock_guard lock(failing);
    failures.emplace(i, error);
    return false;
  };
  cases::give_memory_back(request.memory_bytes);
  cases::run_case_loop(loop, context);
  if (!failures.empty()) rethrow_first(failures, pairs);
  context.throw_if_stopped("stopped; no output was written");
  return scored;
}

/// Report and table of the scores; `whole` is as in add_summary.
Outputs outputs_of(const EvaluationRequest& request, const std::vector<CaseScores>& scored,
                   const std::string& whole) {
  Outputs outputs;
  add_summary(scored, whole, outputs);
  Json rows = Json::array();
  for (size_t i = 0; i < scored.size(); ++i) rows.push_back(to_json(request.cases[i], scored[i]));
  outputs.report("cases", rows);
  outputs.add(request.table,
              [text = to_tsv(scored)](const std::string& path) { write_file(path, text); });
  if (!request.missing.empty()) outputs.status("rejected", missing_text(request));
  return outputs;
}

/// Looks in the label maps of a run for the labels that it asks for; its members may be called by
/// several threads.
class LabelSearch {
 public:
  /// `config`: without labels all that occur are asked for. 0 is everywhere.
  explicit LabelSearch(LabelScoreConfig config = {})
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

/// Returns a table with a row for each case: the id, and the cells that `row` gives. Throws
/// InputError for labels that `search` found in no case.
Plan plan_cases(const EvaluationRequest& request, std::vector<std::string> header,
                const std::function<std::vector<std::string>(const Case&)>& row,
                const LabelSearch& search, const Context& context) {
  Plan plan;
  plan.table = {std::move(header)};
  for (const Case& c : request.cases) {
    try {
      std::vector<std::string> cells = row(c);
      cells.insert(cells.begin(), c.id);
      plan.table.push_back(std::move(cells));
    } catch (const Error& error) {
      if (plan.problems.empty()) plan.code = error.code();
      plan.problems.push_back("case '" + c.id + "': " + error.what());
    }
    context.throw_if_stopped("stopped");
  }
  if (plan.problems.empty()) search.require_found();
  if (!request.missing.empty()) {
    if (plan.problems.empty()) plan.code = ExitCode::kRejected;
    plan.problems.push_back(missing_text(request));
  }
  return plan;
}

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

/// A structure of the reference, and what the prediction has of it.
struct PosePair {
  std::string name;
  std::optional<Pose> found, truth;
  double confidence;  ///< NaN: unknown
};

/// Returns the poses of a file of poses, or of the structures in a label map.
std::vector<DetectedPose> poses_of(const std::string& path, const hdn::Model* network,
                                   const ReadOptions& read) {
  if (path.ends_with(".json")) return read_poses_or_points(path).poses;
  if (network == nullptr) {
    throw InputError("'" + path +
                     "' is no file of poses (.json); for a label map give --model, to "
                     "whose mean shapes it is fitted");
  }
  const LabelVolume labels = read_labels(path, read);
  std::vector<DetectedPose> poses;
  for (const hdn::Structure& s : network->structures) {
    const Volume<uint8_t> mask = pose::mask_of(labels, s.labels);
    DetectedPose& found = poses.emplace_back();
    found.name = s.name;
    found.has_pose = !mask.empty();
    if (found.has_pose) found.pose = pose::fit_pose(mask, s.mean_distance_mm).pose;
  }
  return poses;
}

std::vector<PosePair> read_pose_pairs(const Case& c, const hdn::Model* network,
                                      const EvaluationRequest& request) {
  const std::vector<DetectedPose> reference = poses_of(c.label, network, request.read);
  std::map<std::string, DetectedPose> found;
  if (!request.missing.contains(c.id)) {
    for (DetectedPose& one : poses_of(c.image, network, request.read)) found[one.name] = one;
  }
  const auto pose_of = [](const DetectedPose& one) {
    return one.has_pose ? std::optional(one.pose) : std::nullopt;
  };
  std::vector<PosePair> pairs;
  for (const DetectedPose& truth : reference) {
    const DetectedPose& one = found[truth.name];
    pairs.push_back({truth.name, pose_of(one), pose_of(truth), one.confidence});
  }
  if (pairs.empty()) throw InputError("'" + c.label + "': it names no structure");
  return pairs;
}

/// By structure: the confidences where it is there and where it is not. A structure that is not
/// found and has no confidence has 0.
struct Confidences {
  std::map<std::string, std::pair<std::vector<double>, std::vector<double>>> of{};

  void add(const PosePair& pair) {
    const bool is_known = !std::isnan(pair.confidence);
    if (!is_known && pair.found) return;
    auto& [there, absent] = of[pair.name];
    (pair.truth ? there : absent).push_back(is_known ? pair.confidence : 0);
  }
  /// Reports the area under the curve of each structure that has both, and their mean.
  void report(Outputs& outputs) const {
    Json areas = Json::object();
    double sum = 0;
    for (const auto& [name, both] : of) {
      const double area = area_under_curve(both.first, both.second);
      if (std::isnan(area)) continue;
      areas[name] = area;
      sum += area;
    }
    if (areas.empty()) return;
    outputs.metric("confidence_auc", sum / static_cast<double>(areas.size()));
    outputs.report("confidence_auc", areas);
  }
};

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
  return plan_cases(request, {"id", "voxels", "spacing_mm"}, row, search, context);
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
  return plan_cases(request, {"id", "vertices", "triangles", "reference"}, row, search, context);
}

namespace {

/// Returns the network of a request, or none.
std::optional<hdn::Model> network_of(const EvaluationRequest& request) {
  if (request.model.empty()) return {};
  return models::read_model<hdn::Model>(request.model);
}

/// Returns the rotations after which a structure looks the same.
std::span<const Quaternion> symmetries_of(const hdn::Model* network, const std::string& name) {
  if (network == nullptr) return {};
  for (const hdn::Structure& s : network->structures) {
    if (s.name == name) return s.symmetries;
  }
  return {};
}

Json to_json(const Pose* pose) {
  if (pose == nullptr) return {};
  const auto& [centre, q, edges] = *pose;
  return {{"center_mm", {centre.x, centre.y, centre.z}},
          {"quaternion_wxyz", {q.w, q.x, q.y, q.z}},
          {"size_mm", {edges.x, edges.y, edges.z}}};
}

}  // namespace

Outputs evaluate_poses(const EvaluationRequest& request, const Context& context) {
  const std::optional<hdn::Model> model = network_of(request);
  const hdn::Model* network = model ? &*model : nullptr;
  std::vector<Json> compared(request.cases.size());
  Confidences confidences;
  std::mutex adding;
  const auto size = [&](const Case& c) {
    const int64_t bytes = bytes_of_prediction(request, c) + file_bytes(c.label);
    return cases::CaseSize{bytes, kJsonPerByte * bytes};
  };
  const auto score = [&](const Case& c, const Context&) {
    std::vector<StructureScores> scores;
    Json& poses = compared[static_cast<size_t>(&c - request.cases.data())];
    for (const PosePair& pair : read_pose_pairs(c, network, request)) {
      const Pose *found = pair.found ? &*pair.found : nullptr,
                 *truth = pair.truth ? &*pair.truth : nullptr;
      scores.push_back(score_pose(pair.name, found, truth, symmetries_of(network, pair.name)));
      poses[pair.name] = {{"prediction", to_json(found)}, {"reference", to_json(truth)}};
      const std::lock_guard lock(adding);
      confidences.add(pair);
    }
    return scores;
  };
  std::vector<CaseScores> scored = score_cases(request, size, score, context);
  Outputs outputs = outputs_of(request, scored, /*whole=*/"");  // no structure has this name
  outputs.report("poses", compared);
  confidences.report(outputs);
  for (CaseScores& c : scored) {
    for (StructureScores& s : c.structures) s.structure = "all";
  }
  for (const SummaryRow& row : summarise(scored)) {
    outputs.metric(row.score, row.summary.mean);
  }
  return outputs;
}

Plan plan_poses(const EvaluationRequest& request, const Context& context) {
  const std::optional<hdn::Model> model = network_of(request);
  const auto row = [&](const Case& c) -> std::vector<std::string> {
    const std::vector<PosePair> pairs = read_pose_pairs(c, model ? &*model : nullptr, request);
    const auto found =
        std::ranges::count_if(pairs, [](const PosePair& pair) { return pair.found.has_value(); });
    return {std::to_string(pairs.size()), std::to_string(found)};
  };
  return plan_cases(request, {"id", "structures", "found"}, row, LabelSearch(), context);
}

}  // namespace larch::pipeline
