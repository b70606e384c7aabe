// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/model_file.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/mesh/sphere_template.h"
#include "larch/models/binary_layout.h"
#include "larch/models/boundary_layout.h"
#include "larch/models/hdn_layout.h"
#include "larch/models/json_layout.h"
#include "larch/models/text_layout.h"
#include "larch/models/voxels_layout.h"
#include "larch/tree/check.h"
#include "larch/tree/forest.h"

namespace larch::models {
namespace {

void run_self_tests(const pbt::Model& model) {
  tree::run_self_tests(model, model.features.size());
}

void run_self_tests(const forest::Model& model) {
  tree::run_self_tests(model);
}

template <class F>
void for_each_detector(const hdn::Model& model, F&& f) {
  for (const hdn::Structure& s : model.structures) {
    for (const hdn::Detector& d : s.detectors) f(d);
    for (const hdn::Detector& d : s.root_position) f(d);
  }
}

void run_self_tests(const hdn::Model& model) {
  for_each_detector(model, [](const hdn::Detector& d) {
    if (d.is_forest()) return tree::run_self_tests(d.forest);
    tree::run_self_tests(d.trees, std::max(d.haar.size(), d.steerable.size()));
  });
}

void run_self_tests(const boundary::Model& model) {
  for (const boundary::Stage& stage : model.stages) {
    tree::run_self_tests(stage.trees, stage.features.size());
  }
}

void run_self_tests(const boundary::Models& models) {
  for (const boundary::Model& model : models.structures) run_self_tests(model);
}

/// Runs `read` and begins every error with "cannot read the `what` 'path': ".
template <class F>
auto naming_file(const char* what, const std::string& path, F&& read) {
  try {
    return read();
  } catch (const Error& error) {
    throw InputError(std::string("cannot read the ") + what + " '" + path + "': " + error.what());
  }
}

template <class M>
M tested_model(const Container& container) {
  auto model = decode_model<M>(container);
  run_self_tests(model);
  return model;
}

[[noreturn]] void refuse_checkpoint() {
  throw InputError("it is not what training leaves behind; delete it and train anew");
}

/// Throws InputError unless the nodes of the last tree of a checkpoint are as growing leaves them:
/// those before `finished` have children exactly when they have been grown, numbered in order; the
/// others have none.
void check_partial(const pbt::PartialModel& partial) {
  const pbt::Model& model = partial.model;
  pbt::check_model(model);
  const size_t root = model.roots.back();
  if (partial.finished > model.nodes.size() || partial.finished < root) refuse_checkpoint();
  auto next = static_cast<int32_t>(root) + 1;
  for (size_t n = root; n < model.nodes.size(); ++n) {
    const tree::Node& node = model.nodes[n];
    const bool grown = n < partial.finished && node.reason == tree::NodeReason::kGrown;
    if (grown == node.is_leaf()) refuse_checkpoint();
    if (!grown) continue;
    if (node.left != next || node.right != next + 1) refuse_checkpoint();
    next += 2;
  }
  if (static_cast<size_t>(next) != model.nodes.size()) refuse_checkpoint();
}

/// Throws InputError unless the trees of a checkpoint are as growing leaves them.
void check_partial(const forest::PartialForest& partial) {
  for (const tree::ForestTree& tree : partial) {
    size_t next = 1, end_of_level = 1;
    uint32_t level = 0;
    bool fits = tree.rounds <= tree::kMaximumForestDepth &&
                std::is_sorted(tree.picked.begin(), tree.picked.end(),
                               [](const auto& a, const auto& b) { return a.round < b.round; });
    for (size_t n = 0; n < tree.nodes.size() && fits; ++n) {
      if (n == end_of_level) ++level, end_of_level = next;
      const tree::ForestNode& node = tree.nodes[n];
      if (node.is_leaf()) continue;
      fits = static_cast<size_t>(node.left) == next && n < next && level < tree.rounds &&
             node.feature < tree.picked.size() && tree.picked[node.feature].round == level;
      next += 2;
    }
    if (!fits || next != tree.nodes.size()) refuse_checkpoint();
  }
}

/// Throws InputError unless what a training found is such that it can go on.
void check_partial(const hdn::PartialTraining& training) {
  hdn::check_model(training.model, /*is_finished=*/false);
  run_self_tests(training.model);
  size_t detectors = 0;
  for_each_detector(training.model, [&](const auto&) { ++detectors; });
  const size_t structures = training.model.structures.size();
  if (training.found.size() != structures || training.elsewhere.size() != structures ||
      training.report.stages.size() != detectors) {
    refuse_checkpoint();
  }
  const auto check_cases = [&](const std::vector<hdn::CaseState>& cases) {
    if (cases.size() != training.found[0].size()) refuse_checkpoint();
    for (const hdn::CaseState& state : cases) {
      if (state.candidates.size() > pose::kMaximumCandidates ||
          state.clusters.size() > pose::kMaximumClusters || !std::isfinite(state.log_odds)) {
        refuse_checkpoint();
      }
      for (const hdn::Candidate& c : state.candidates) {
        check_pose(c.pose, "a candidate");
        if (!(c.probability >= 0 && c.probability <= 1) || !std::isfinite(c.score)) {
          refuse_checkpoint();
        }
      }
      for (const hdn::Cluster& c : state.clusters) check_pose(c.pose, "a cluster");
    }
  };
  for (const auto& cases : training.found) check_cases(cases);
  for (const auto& cases : training.elsewhere) check_cases(cases);
}

/// Throws InputError unless the meshes of a training are those after its last level.
void check_partial(const boundary::PartialTraining& training) {
  boundary::check_model(training.model);
  run_self_tests(training.model);
  const size_t levels = training.model.stages.size();
  bool is_good = levels > 0 && training.report.size() == levels && !training.meshes.empty() &&
                 training.astray.size() == training.meshes.size();
  for (const auto& of_case : training.meshes) {
    is_good = is_good && !of_case.empty() && of_case.size() == training.meshes[0].size();
  }
  for (const boundary::Meshes* meshes : {&training.meshes, &training.astray}) {
    for (const auto& of_case : *meshes) {
      for (const auto& mesh : of_case) {
        is_good =
            is_good && mesh.size() == static_cast<size_t>(mesh::kTemplateVertices[levels - 1]);
        for (const Vec3d& at : mesh) is_good = is_good && std::sqrt(dot(at, at)) <= kFarthestMm;
      }
    }
  }
  if (!is_good) refuse_checkpoint();
}

}  // namespace

template <class M>
Container encode_model(const M& model) {
  check_model(model);
  return to_container(model);
}

template <class M>
M decode_model(const Container& container) {
  auto model = from_container<M>(container);
  if constexpr (std::is_same_v<M, boundary::Models>) {
    for (boundary::Model& one : model.structures) {
      if (one.stages.empty()) throw InputError("it has no level; it is not finished");
      one.space = model.space;
    }
  }
  check_model(model);
  return model;
}

template <class M>
void write_model(const std::string& path, const M& model) {
  write_container(path, encode_model(model));
}

template <class M>
M read_model(const std::string& path, const DigestSink& digest) {
  return naming_file("model", path, [&] { return tested_model<M>(read_container(path, digest)); });
}

VoxelModel read_voxel_model(const std::string& path, const DigestSink& digest) {
  return naming_file("model", path, [&]() -> VoxelModel {
    const Container container = read_container(path, digest);
    if (container.kind == "forest") return tested_model<forest::Model>(container);
    return tested_model<pbt::Model>(container);
  });
}

AnyModel read_any_model(const std::string& path, const DigestSink& digest) {
  return naming_file("model", path, [&]() -> AnyModel {
    const Container container = read_container(path, digest);
    if (container.kind == "pbt") return tested_model<pbt::Model>(container);
    if (container.kind == "forest") return tested_model<forest::Model>(container);
    if (container.kind == kNetworkKind.name) return tested_model<hdn::Model>(container);
    if (container.kind == kBoundaryKind.name) return tested_model<boundary::Models>(container);
    throw InputError("it is of the kind '" + container.kind + "'; " + use_of_kind(container.kind));
  });
}

std::string export_json(const AnyModel& model) {
  return std::visit([](const auto& m) { return model_to_json(m).dump(1) + "\n"; }, model);
}

std::string describe_model(const AnyModel& model) {
  return std::visit([](const auto& m) { return description(m); }, model);
}

template <class Partial>
void write_checkpoint(const std::string& path, const Partial& partial,
                      const std::string& fingerprint) {
  write_container(path, to_container(Checkpoint<Partial>{fingerprint, partial}));
}

template <class Partial>
Partial read_checkpoint(const std::string& path, const std::string& fingerprint) {
  return naming_file("checkpoint", path, [&] {
    const Container container = read_container(path);
    if (!is_checkpoint(container.kind)) {
      throw InputError("it is a finished model, not a checkpoint; train without --resume");
    }
    auto [found, partial] = from_container<Checkpoint<Partial>>(container);
    if (found != fingerprint) {
      throw InputError(
          "it was written with other settings or other training data; give the same ones, or "
          "delete it and train anew");
    }
    check_partial(partial);
    return std::move(partial);
  });
}

// Each kind, its model and its training.
#define LARCH_MODEL_FILES(M, Partial)                                                     \
  template void write_model(const std::string&, const M&);                                \
  template M read_model(const std::string&, const DigestSink&);                           \
  template Container encode_model(const M&);                                              \
  template M decode_model(const Container&);                                              \
  template void write_checkpoint(const std::string&, const Partial&, const std::string&); \
  template Partial read_checkpoint(const std::string&, const std::string&);
LARCH_MODEL_FILES(pbt::Model, pbt::PartialModel)
LARCH_MODEL_FILES(forest::Model, forest::PartialForest)
LARCH_MODEL_FILES(hdn::Model, hdn::PartialTraining)
LARCH_MODEL_FILES(boundary::Models, boundary::PartialTraining)
#undef LARCH_MODEL_FILES

}  // namespace larch::models
