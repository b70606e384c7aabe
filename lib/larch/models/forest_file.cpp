// SPDX-FileCopyrightText: The Larch authors
// SPDX-License-Identifier: Apache-2.0
#include "larch/models/forest_file.h"

#include <algorithm>

#include "larch/core/error.h"
#include "larch/models/binary_layout.h"
#include "larch/models/file.h"
#include "larch/models/forest_layout.h"
#include "larch/models/json_layout.h"
#include "larch/models/pbt_file.h"
#include "larch/models/text_layout.h"
#include "larch/tree/forest.h"

namespace larch::models {
namespace {

/// Throws InputError unless the trees of a checkpoint are as growing leaves them.
void check_partial(const forest::PartialForest& partial) {
  for (const tree::ForestTree& tree : partial) {
    size_t next = 1, end_of_level = 1;
    uint32_t level = 0;
    bool fits = tree.rounds <= tree::kMaxForestDepth &&
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
    if (!fits || next != tree.nodes.size()) {
      throw InputError("its tree is not one that training leaves behind; delete it and train anew");
    }
  }
}

}  // namespace

void write_forest(const std::string& path, const forest::Model& model) {
  forest::check_model(model);
  write_container(path, to_container(model));
}

forest::Model read_forest(const std::string& path) {
  return naming_file("model", path, [&] {
    const Container container = read_container(path);
    if (container.kind == kForestCheckpointKind) {
      throw InputError("it is a checkpoint of an unfinished training; continue with --resume");
    }
    auto model = from_container<forest::Model>(container);
    forest::check_model(model);
    tree::run_self_tests(model);
    return model;
  });
}

VoxelModel read_voxel_model(const std::string& path) {
  const std::string kind = naming_file("model", path, [&] { return read_container(path).kind; });
  if (kind == "forest") return read_forest(path);
  return read_model(path);
}

std::string export_forest_json(const forest::Model& model) {
  forest::check_model(model);
  return model_to_json(model).dump(1) + "\n";
}

std::string describe_forest(const forest::Model& model) {
  forest::check_model(model);
  Facts facts;
  if (!model.components.empty()) facts.lines.emplace_back("input", model.components);
  facts.lines.push_back(
      {"trees",
       {std::to_string(model.trees()) + " trees", std::to_string(model.nodes.size()) + " nodes",
        std::to_string(model.leaves()) + " leaves", "depth " + std::to_string(model.depth())}});
  facts.lines.push_back({"trained",
                         {"on " + std::to_string(model.info.volume_digests.size()) + " volumes",
                          "written by Larch " + model.info.tool_version}});
  return description(model, facts);
}

void write_forest_partial(const std::string& path, const forest::PartialForest& partial,
                          const std::string& fingerprint) {
  write_container(path, to_container(ForestCheckpoint{{partial.size(), fingerprint}, partial}));
}

forest::PartialForest read_forest_partial(const std::string& path, const std::string& fingerprint) {
  return naming_file("checkpoint", path, [&] {
    const Container container = read_container(path);
    if (container.kind == "forest") {
      throw InputError("it is a finished model, not a checkpoint; train without --resume");
    }
    auto [progress, partial] = from_container<ForestCheckpoint>(container);
    require_fingerprint(progress.fingerprint, fingerprint);
    check_partial(partial);
    return partial;
  });
}

}  // namespace larch::models
