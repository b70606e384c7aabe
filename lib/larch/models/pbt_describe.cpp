// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include <string>
#include <vector>

#include "larch/models/pbt_file.h"
#include "larch/models/pbt_layout.h"
#include "larch/models/text_layout.h"

namespace larch::models {
namespace {

std::string count_of(size_t count, const char* what) {
  return std::to_string(count) + " " + what;
}

/// The probability of each node and, for an ensemble, its tree; trees are counted from 1.
std::vector<Column> computed_columns(const pbt::Model& model) {
  Column tree{"tree", {}}, probability{"q", {}};
  const std::vector<uint32_t> q = tree::node_probabilities(model);
  for (size_t t = 0; t < model.trees(); ++t) {
    for (size_t n = model.roots[t]; n < model.end_of_tree(t); ++n) {
      tree.cells.push_back(std::to_string(t + 1));
      probability.cells.push_back(decimal(q[n] * 0x1.0p-30));
    }
  }
  if (model.trees() > 1) return {tree, probability};
  return {probability};
}

/// How many features there are on each channel, and how far they reach.
std::vector<std::string> channel_use(const pbt::Model& model) {
  std::vector<size_t> used(model.channels.size(), 0);
  for (const auto& feature : model.features) ++used[feature.channel];
  std::vector<std::string> phrases{
      count_of(model.features.size(), "features"),
      "reach " + count_of(static_cast<size_t>(model.reach()), "voxels of their level")};
  for (size_t c = 0; c < used.size(); ++c) {
    phrases.push_back(count_of(used[c], "on channel ") + std::to_string(c));
  }
  return phrases;
}

/// The volumes that a model was trained on. Older models do not tell how many were held out.
std::string volumes_of(const pbt::ModelInfo& info) {
  const size_t all = info.volume_digests.size();
  const double held_out = info.measured("volumes").value_or(0);
  if (!(held_out >= 1 && held_out <= static_cast<double>(all))) {
    return "on " + count_of(all, "volumes");
  }
  const auto held = static_cast<size_t>(held_out);
  return "on " + count_of(all - held, "volumes, ") + count_of(held, "held out");
}

Facts facts_of(const pbt::Model& model) {
  Facts facts;
  const std::string trees =
      count_of(model.trees(),
               model.trees() > 1 ? "probabilistic boosting trees" : "probabilistic boosting tree");
  facts.lines = {
      {"trees",
       {trees, count_of(model.nodes.size(), "nodes"), "depth " + std::to_string(model.depth()),
        count_of(model.weaks.size(), "weak classifiers"),
        count_of(model.self_tests.size(), "self-test vectors")}},
      {"trained", {volumes_of(model.info), "written by Larch " + model.info.tool_version}},
      {"use of channels", channel_use(model)}};
  facts.columns["nodes"] = computed_columns(model);
  return facts;
}

}  // namespace

std::string describe_model(const pbt::Model& model) {
  pbt::check_model(model);
  return description(model, facts_of(model));
}

}  // namespace larch::models
