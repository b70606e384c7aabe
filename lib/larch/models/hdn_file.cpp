// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/hdn_file.h"

#include <algorithm>
#include <cmath>

#include "larch/core/error.h"
#include "larch/models/binary_layout.h"
#include "larch/models/file.h"
#include "larch/models/hdn_layout.h"
#include "larch/models/json_layout.h"
#include "larch/models/text_layout.h"
#include "larch/tree/self_test.h"

namespace larch::models {
namespace {

template <class F>
void for_each_detector(const hdn::Model& model, F&& f) {
  for (const hdn::Structure& s : model.structures) {
    for (const hdn::Detector& d : s.detectors) f(s, d);
    for (const hdn::Detector& d : s.root_position) f(s, d);
  }
}

void run_self_tests(const hdn::Model& model) {
  for_each_detector(model, [](const hdn::Structure&, const hdn::Detector& d) {
    if (d.is_forest()) return tree::run_self_tests(d.forest);
    tree::run_self_tests(d.trees, std::max(d.haar.size(), d.steerable.size()));
  });
}

/// Throws InputError unless what a training found is such that it can go on.
void check_training(const hdn::PartialTraining& training) {
  const auto refuse = [] {
    throw InputError("it is not what training leaves behind; delete it and train anew");
  };
  size_t detectors = 0;
  for_each_detector(training.model, [&](const auto&, const auto&) { ++detectors; });
  const size_t structures = training.model.structures.size();
  if (training.found.size() != structures || training.elsewhere.size() != structures ||
      training.report.stages.size() != detectors) {
    refuse();
  }
  const auto check_cases = [&](const std::vector<hdn::CaseState>& cases) {
    if (cases.size() != training.found[0].size()) refuse();
    for (const hdn::CaseState& state : cases) {
      if (state.candidates.size() > pose::kMostCandidates ||
          state.clusters.size() > pose::kMostClusters || !std::isfinite(state.log_odds)) {
        refuse();
      }
      for (const hdn::Candidate& c : state.candidates) {
        check_pose(c.pose, "a candidate");
        if (!(c.probability >= 0 && c.probability <= 1) || !std::isfinite(c.score)) refuse();
      }
      for (const hdn::Cluster& c : state.clusters) check_pose(c.pose, "a cluster");
    }
  };
  for (const auto& cases : training.found) check_cases(cases);
  for (const auto& cases : training.elsewhere) check_cases(cases);
}

}  // namespace

void write_network(const std::string& path, const hdn::Model& model) {
  hdn::check_model(model);
  write_container(path, to_container(model));
}

hdn::Model read_network(const std::string& path) {
  return naming_file("model", path, [&] {
    auto model = from_container<hdn::Model>(read_container(path));
    hdn::check_model(model);
    run_self_tests(model);
    return model;
  });
}

void write_training(const std::string& path, const hdn::PartialTraining& training,
                    const std::string& fingerprint) {
  write_container(path, to_container(NetworkCheckpoint{fingerprint, training}));
}

hdn::PartialTraining read_training(const std::string& path, const std::string& fingerprint) {
  return naming_file("checkpoint", path, [&] {
    const Container container = read_container(path);
    if (container.kind == kNetworkKind.name) {
      throw InputError("it is a finished model, not a checkpoint; train without --resume");
    }
    auto [found, training] = from_container<NetworkCheckpoint>(container);
    require_fingerprint(found, fingerprint);
    hdn::check_model(training.model, /*is_finished=*/false);
    run_self_tests(training.model);
    check_training(training);
    return std::move(training);
  });
}

std::string export_network_json(const hdn::Model& model) {
  hdn::check_model(model);
  return model_to_json(model).dump(1) + "\n";
}

std::string describe_network(const hdn::Model& model) {
  hdn::check_model(model);
  std::vector<Column> columns{{"structure", {}}, {"level", {}}, {"stage", {}},
                              {"keep", {}},      {"tried", {}}, {"features", {}},
                              {"trees", {}},     {"nodes", {}}, {"weak classifiers", {}}};
  for_each_detector(model, [&](const hdn::Structure& s, const hdn::Detector& d) {
    const bool is_root = !s.root_position.empty() && &d == &s.root_position[0];
    const std::string cells[] = {
        s.name,
        std::to_string(d.stage.level),
        is_root ? "everywhere" : enumerator_name(d.stage.kind),
        std::to_string(d.stage.keep),
        d.stage.kind == hdn::StageKind::kPosition
            ? ""
            : std::to_string(d.stage.rotations.size() + d.stage.log_scales.size()),
        std::to_string(d.haar.size() + d.steerable.size()),
        std::to_string(d.is_forest() ? d.forest.trees() : d.trees.trees()),
        std::to_string(d.trees.nodes.size() + d.forest.nodes.size()),
        std::to_string(d.trees.weaks.size())};
    for (size_t i = 0; i < columns.size(); ++i) columns[i].cells.push_back(cells[i]);
  });
  Facts facts;
  facts.lines = {{"trained",
                  {"on " + std::to_string(model.info.case_digests.size()) + " cases",
                   "written by Larch " + model.info.tool_version}}};
  // The description changes nothing.
  return description(NetworkHead{const_cast<hdn::Model&>(model)}, facts) + "\ndetectors\n" +
         table(columns);
}

}  // namespace larch::models
